"""The same image unpacked by umoci, and pulled and started by podman, where these are installed and run."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from benchmarks.rows import Row
from hotbed.runtime.backends.fork import ForkBackend
from hotbed.runtime.base import BoxRequest, ExecRequest, TemplateSpec
from hotbed.runtime.images.building import Builder
from hotbed.runtime.images.store import Store

_RUN = ("run", "--rm", "--network=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1000:1000")


async def beside(backend: ForkBackend, place: Path, root: Path, size_mb: int) -> list[Row]:
    """One image of one layer, which umoci makes of a root. Nothing without umoci, or without root's rights."""
    if shutil.which("umoci") is None or os.geteuid() != 0:
        return []
    image = f"{place}/layout:a"
    for words in (
        ["umoci", "init", "--layout", str(place / "layout")],
        ["umoci", "new", "--image", image],
        ["umoci", "raw", "add-layer", "--image", image, str(root)],
    ):
        subprocess.run(words, check=True, capture_output=True)
    umoci_s = ran_s("umoci", "unpack", "--image", image, str(place / "bundle"))
    begun = time.perf_counter()
    builder = Builder(backend.launching.supervise, Store(place / "other"))
    await builder.build(f"oci:{image}", lambda about: None)
    unpacked_s = time.perf_counter() - begun
    started_s = await started(backend, f"oci:{image}")
    return [
        Row(name=f"unpack {size_mb} MB", value=unpacked_s, unit="s", ratio=unpacked_s / umoci_s, of="umoci unpack"),
        beside_podman(place, image, f"unpack {size_mb} MB and run true", started_s),
    ]


async def started(backend: ForkBackend, source: str) -> float:
    """Seconds from an image that is not here to the end of a command in it."""
    begun = time.perf_counter()
    record = await backend.builder.build(source, lambda about: None)
    template = await backend.template(TemplateSpec(name="peer", image=record.digest, programs=()))
    box = await template.fork(BoxRequest(use_spare=False))
    await box.exec(ExecRequest(kind="commands", argv=(("/bin/true",),)))
    took = time.perf_counter() - begun
    await box.kill()
    return took


def beside_podman(place: Path, image: str, name: str, ours_s: float) -> Row:
    """With a store of its own, which goes with the place. Where podman does not run, the row says so."""
    podman = ("podman", "--root", str(place / "podman"), "--runroot", str(place / "podman-run"))
    if shutil.which("podman") is None:
        return Row(name=name, value=ours_s, unit="s", note="podman is not installed")
    took, problem = 0.0, ""
    for runtime in ([], ["--runtime", "runc"]):  # its usual one refuses a hybrid cgroup layout
        begun = time.perf_counter()
        problem = pulled_and_run([*podman, *runtime], image)
        took = time.perf_counter() - begun
        subprocess.run([*podman, "rmi", "--all", "--force"], capture_output=True, check=False)
        if not problem:
            break
    subprocess.run(["umount", str(place / "podman/overlay")], capture_output=True, check=False)
    if problem:
        return Row(name=name, value=ours_s, unit="s", note=f"podman does not run here: {problem}")
    return Row(name=name, value=ours_s, unit="s", ratio=ours_s / took, of="podman pull and run")


def pulled_and_run(podman: list[str], image: str) -> str:
    """What podman complains of, if it does."""
    pulled = subprocess.run([*podman, "pull", "-q", f"oci:{image}"], capture_output=True, text=True, check=False)
    if pulled.returncode != 0:
        return pulled.stderr.strip()[-120:]
    run = [*podman, *_RUN, pulled.stdout.strip(), "/bin/true"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[-1][-120:] if done.returncode != 0 else ""


def ran_s(*words: str) -> float:
    """Seconds that a command takes."""
    begun = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True)
    return time.perf_counter() - begun
