"""The packages of an environment's requirements.txt, installed once and kept by what they were asked for.

Only wheels are installed: building a source distribution runs its code on the node itself, outside any sandbox. For the
same reason a line may name a package, its versions and its hashes, and nothing else; where packages come from is the
node's own pip configuration.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import sys
import sysconfig
from pathlib import Path

from hotbed.errors import BadEnvDir, TemplateFailed

INSIDE = "/opt/requirements"
FILE = "requirements.txt"
INSTALL_TIMEOUT_S = 600.0
SIZE_LIMIT = 256 << 10

_LINE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[A-Za-z0-9._,\s-]*\])?\s*"  # name and extras
    r"([(]?\s*(==|===|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+\s*[)]?\s*,?\s*)*"  # versions
    r"(;[^;#@]*?)?(\s+--hash=\w+:[0-9a-fA-F]+)*"  # a marker, hashes
)


class Requirements:
    """The installed sets of one node."""

    def __init__(self, directory: Path, *, python: str = sys.executable) -> None:
        self._directory = directory
        self._python = python
        self._installing: dict[str, asyncio.Lock] = {}

    async def installed(self, env_dir: Path) -> Path | None:
        """Where the packages of this directory's requirements are; None when it has none.

        Raises `BadEnvDir` on a line that is not allowed, `TemplateFailed` with pip's own words when it cannot be done.
        """
        file = env_dir / FILE
        if not file.is_file() or not (lines := allowed_lines(file)):
            return None
        key = set_key(lines)
        target = self._directory / key
        async with self._installing.setdefault(key, asyncio.Lock()):
            if not target.is_dir():
                await self._install(lines, target)
        return target

    async def _install(self, lines: list[str], target: Path) -> None:
        self._directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        fresh = target.with_suffix(f".{os.getpid()}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o755)
        asked = target.with_suffix(".txt")
        asked.write_text("\n".join(lines) + "\n")
        try:
            await self._pip(asked, fresh)
            fresh.rename(target)
        finally:
            await asyncio.to_thread(shutil.rmtree, fresh, ignore_errors=True)

    async def _pip(self, asked: Path, target: Path) -> None:
        arguments = ["install", "--target", str(target), "--only-binary", ":all:", "-r", str(asked)]
        quiet = ["--no-input", "--disable-pip-version-check", "--no-warn-script-location", "--quiet"]
        process = await asyncio.create_subprocess_exec(
            *(self._python, "-m", "pip", *arguments, *quiet),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, said = await asyncio.wait_for(process.communicate(), INSTALL_TIMEOUT_S)
        except BaseException:
            process.kill()
            await process.wait()
            raise
        if process.returncode:
            hint = "only wheels are installed, from where the node's pip configuration says"
            raise TemplateFailed(f"the requirements cannot be installed: {_errors(said)}", hint=hint)


def allowed_lines(file: Path) -> list[str]:
    """The requirement lines of a file, without comments. Raises `BadEnvDir` on one that may not be there."""
    if file.stat().st_size > SIZE_LIMIT:
        raise BadEnvDir(f"{FILE} is over {SIZE_LIMIT >> 10} KiB")
    text = file.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ")
    lines = [" ".join(re.sub(r"(^|\s)#.*", "", line).split()) for line in text.splitlines()]
    for line in filter(None, lines):
        if not _LINE.fullmatch(line):
            raise BadEnvDir(
                f"{FILE}: {line[:80]!r} is not a package with versions",
                hint="no options, URLs or paths: where packages come from is the node's pip configuration",
            )
    return [line for line in lines if line]


def _errors(said: bytes) -> str:
    """What pip calls errors; all that it said if it calls nothing so."""
    lines = said.decode(errors="replace").strip().splitlines()
    return "\n".join([line for line in lines if line.startswith("ERROR")] or lines)[-2000:]


def set_key(lines: list[str]) -> str:
    """The name of an installed set: what was asked for, and for which interpreter."""
    about = [sys.implementation.cache_tag or "", sysconfig.get_platform(), *sorted(lines)]
    return hashlib.sha256("\n".join(about).encode()).hexdigest()[:32]


def top_level_names(target: Path) -> tuple[str, ...]:
    """The modules and packages of an installed set."""
    names = {path.name.partition(".")[0] for path in target.iterdir() if path.suffix in (".py", ".so", "")}
    return tuple(sorted(name for name in names if name.isidentifier() and name not in ("bin", "__pycache__")))
