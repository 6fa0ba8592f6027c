"""Programs that are run to make something of packages: an image of Debian's, a folder of Python's.

They run in the process that builds images, as this machine's user and with its settings (mirrors, proxies). What they
print is told when they fail.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hotbed.runtime.images import programs
from hotbed.runtime.images.manifests import BadImage

_TIMEOUT_S = 1800.0
_TAIL = 600
_RELEASE = "bookworm"
_OS_RELEASE = Path("/etc/os-release")

Tick = Callable[[int], Any]


def debian_root(packages: Sequence[str], target: Path, tick: Tick) -> None:
    """A tar of a small Debian with these packages, configured. Raises `BadImage`."""
    path = shutil.which("mmdebstrap")
    if path is None:
        raise BadImage(
            "an image of Debian packages needs mmdebstrap, which is not installed (apt-get install mmdebstrap)"
        )
    options = ["--quiet", "--mode=auto", "--variant=essential", f"--include={','.join(packages)}"]
    _run([path, *options, release(), str(target)], target, tick)


def release(file: Path = _OS_RELEASE) -> str:
    """The Debian release of this machine, so that what it has fetched before fits; else one that we know."""
    try:
        pairs = dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
    except OSError:
        return _RELEASE
    return pairs.get("VERSION_CODENAME", _RELEASE) if pairs.get("ID") == "debian" else _RELEASE


def python_packages(packages: Sequence[str], target: Path, tick: Tick) -> None:
    """A folder with these of PyPI for the Python that this process runs on; whole or not there. Raises `BadImage`.

    By one process at a time: what another left half done, having been killed, is removed.
    """
    if target.is_dir():
        return
    partial = target.with_name(f".{target.name}")
    shutil.rmtree(partial, ignore_errors=True)
    words = ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--target", str(partial)]
    try:
        _run([sys.executable, *words, *packages], partial, tick)
        os.rename(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _run(command: Sequence[str], target: Path, tick: Tick) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    ended = programs.run(
        command,
        tick=lambda: tick(target.stat().st_size if target.exists() else 0),
        patience_s=_TIMEOUT_S,
    )
    if ended.returncode != 0:
        words = ended.stderr.decode(errors="replace").strip()[-_TAIL:]
        raise BadImage(f"{os.path.basename(command[0])} ended with {ended.returncode}: {words}")
