"""Templates of images: what a bake costs beside umoci, and whether a fork knows how large its image is."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import statistics
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

from benchmarks.rows import Row
from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.base import BoxRequest, ExecRequest, Template, TemplateSpec
from hotbed.runtime.images.building import Builder
from hotbed.runtime.images.store import Store

SIZES_MB = (10, 200, 2000)
_FILE = 1 << 20
_INDEPENDENT = 1.2


def run(*, count: int) -> list[Row]:
    """One round; nothing where there is no static busybox to put into an image."""
    busybox = shutil.which("busybox")
    if busybox is None:
        return []
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        roots = {size: root_tar(Path(place), Path(busybox), size) for size in SIZES_MB}
        return asyncio.run(measured(Path(place), roots, forks=max(20, count // 4)))


def root_tar(place: Path, busybox: Path, size_mb: int) -> Path:
    """A root of about that size, in files of a megabyte."""
    path = place / f"{size_mb}.tar"
    with tarfile.open(path, "w") as tar:
        tar.add(busybox, "bin/busybox")
        for name in ("sh", "true"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.LNKTYPE, "bin/busybox"
            tar.addfile(link)
        block = os.urandom(_FILE)
        for number in range(size_mb):
            entry = tarfile.TarInfo(f"data/{number % 100}/{number}")
            entry.size = _FILE
            tar.addfile(entry, io.BytesIO(block))
    return path


async def measured(place: Path, roots: dict[int, Path], *, forks: int) -> list[Row]:
    """Unpack each, then fork them in turn, so that whatever else the machine does meets all alike."""
    backend = ForkBackend(ForkSettings(spares=0, run_dir=str(place), images=str(place / "images")))
    await backend.start()
    rows: list[Row] = []
    try:
        templates: dict[int, Template] = {}
        for size, path in roots.items():
            record = await backend.builder.build(f"rootfs:{path}", lambda about: None)
            templates[size] = await backend.template(TemplateSpec(name=f"s{size}", image=record.digest, programs=()))
        rows += await beside_umoci(backend, place, roots[SIZES_MB[1]])
        times: dict[int, list[float]] = {size: [] for size in templates}
        for _ in range(forks):
            for size, template in templates.items():
                times[size].append(await fork_ms(template))
        p50 = {size: statistics.median(found) for size, found in times.items()}
        rows += [Row(name=f"fork and true, image of {size} MB", value=value, unit="ms") for size, value in p50.items()]
        ratio = max(p50.values()) / min(p50.values())
        rows.append(Row(name="slowest fork by image size / fastest", value=ratio, unit="x", bar=_INDEPENDENT))
    finally:
        await backend.close()
    return rows


async def fork_ms(template: Template) -> float:
    """One sandbox, one command, without the teardown."""
    begun = time.perf_counter()
    box = await template.fork(BoxRequest(use_spare=False))
    await box.exec(ExecRequest(kind="commands", argv=(("/bin/true",),)))
    took = (time.perf_counter() - begun) * 1e3
    await box.kill()
    return took


async def beside_umoci(backend: ForkBackend, place: Path, root: Path) -> list[Row]:
    """One image, made by umoci, unpacked by both."""
    if shutil.which("umoci") is None or os.geteuid() != 0:
        return []
    image, bundle = f"{place}/layout:a", place / "bundle"
    for words in (
        ["umoci", "init", "--layout", str(place / "layout")],
        ["umoci", "new", "--image", image],
        ["umoci", "raw", "add-layer", "--image", image, str(root)],
    ):
        subprocess.run(words, check=True, capture_output=True)
    begun = time.perf_counter()
    subprocess.run(["umoci", "unpack", "--image", image, str(bundle)], check=True, capture_output=True)
    umoci_s = time.perf_counter() - begun
    begun = time.perf_counter()
    await Builder(backend.launching.supervise, Store(place / "other")).build(f"oci:{image}", lambda about: None)
    took_s = time.perf_counter() - begun
    return [Row(name=f"unpack {SIZES_MB[1]} MB", value=took_s, unit="s", ratio=took_s / umoci_s, of="umoci unpack")]
