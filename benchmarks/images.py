"""Templates of images: what a bake costs beside umoci and podman, and whether a fork knows how large its image is."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import statistics
import tarfile
import tempfile
import time
from pathlib import Path

from benchmarks import image_peers
from benchmarks.rows import Row
from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.base import BoxRequest, ExecRequest, Template, TemplateSpec

SIZES_MB = (10, 200, 2000)
_FILE = 1 << 20
_INDEPENDENT = 1.2
_MEMORY_MIB = 200


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
            link.type, link.linkname, link.mode = tarfile.LNKTYPE, "bin/busybox", 0o755
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
        host = await backend.template(TemplateSpec(name="host", programs=()))
        templates: dict[int, Template] = {0: host}
        watch = Watch(backend.launching.pid)
        watching = asyncio.ensure_future(watch.run())
        for size, path in roots.items():
            record = await backend.builder.build(f"rootfs:{path}", lambda about: None)
            templates[size] = await backend.template(TemplateSpec(name=f"s{size}", image=record.digest, programs=()))
        watching.cancel()
        rows.append(Row(name=f"memory to unpack {SIZES_MB[-1]} MB", value=watch.most_mib, unit="MiB", bar=_MEMORY_MIB))
        rows += await image_peers.beside(backend, place, roots[SIZES_MB[1]], SIZES_MB[1])
        rows += fork_rows(await fork_times(templates, forks))
    finally:
        await backend.close()
    return rows


async def fork_times(templates: dict[int, Template], forks: int) -> dict[int, float]:
    """The middle of the milliseconds of each, in turns."""
    times: dict[int, list[float]] = {size: [] for size in templates}
    for _ in range(forks):
        for size, template in templates.items():
            times[size].append(await fork_ms(template))
    return {size: statistics.median(found) for size, found in times.items()}


def fork_rows(p50: dict[int, float]) -> list[Row]:
    """Each beside the host's own template, in the same turns: an image costs a fork nothing."""
    host = p50.pop(0)
    rows = [Row(name="fork and true, the host's template", value=host, unit="ms")]
    rows += [
        Row(name=f"fork and true, image of {size} MB", value=value, unit="ms", ratio=value / host, of="the host's")
        for size, value in p50.items()
    ]
    ratio = max(p50.values()) / min(p50.values())
    return [*rows, Row(name="slowest fork by image size / fastest", value=ratio, unit="x", bar=_INDEPENDENT)]


async def fork_ms(template: Template) -> float:
    """One sandbox, one command, without the teardown."""
    begun = time.perf_counter()
    box = await template.fork(BoxRequest(use_spare=False))
    await box.exec(ExecRequest(kind="commands", argv=(("/bin/true",),)))
    took = (time.perf_counter() - begun) * 1e3
    await box.kill()
    return took


class Watch:
    """The most memory that any process below the launcher had while something was built."""

    def __init__(self, launcher: int) -> None:
        self._launcher = launcher
        self.most_mib = 0.0

    async def run(self) -> None:
        """Look again and again, until it is cancelled."""
        while True:
            for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
                try:
                    text = Path(f"/proc/{pid}/status").read_text()
                    about = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
                    parent = int(about["PPid"])
                    if self._launcher in (parent, _parent_of(parent)):
                        self.most_mib = max(self.most_mib, int(about["VmHWM"].split()[0]) / 1024)
                except (OSError, KeyError, ValueError):
                    continue  # it ended while we looked
            await asyncio.sleep(0.1)


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
