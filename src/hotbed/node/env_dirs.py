"""The environment directories that a node holds, by the SHA-256 of their tar.

A directory appears whole or not at all: it is unpacked beside its place and renamed into it. When more than `keep`
are held, those that nobody has used for a day are removed, the longest unused first. Another node of the same user may
share the place, and its uses show only in the times.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from hotbed.errors import BadEnvDir, NotFound, TooLarge
from hotbed.pools import archive
from hotbed.wire.pools import EnvDir, require_digest

KEPT = 64
UNUSED_S = 24 * 3600.0
_ABOUT = "about.json"
_TREE = "tree"

log = logging.getLogger(__name__)


class EnvDirs:
    """Directories below one of the node's own."""

    def __init__(self, home: Path, *, keep: int = KEPT) -> None:
        self._home = home
        self._keep = keep

    def get(self, digest: str) -> EnvDir:
        """What is held under a digest. Raises `NotFound`."""
        require_digest(digest)
        try:
            about = json.loads((self._home / digest / _ABOUT).read_text())
        except (FileNotFoundError, ValueError):
            raise NotFound("no such environment directory here", hint="send it with PUT first") from None
        os.utime(self._home / digest)
        return EnvDir(digest=digest, files=about["files"], size=about["size"])

    def tree(self, digest: str) -> Path:
        """Where it is, to be seen at /env."""
        self.get(digest)
        return self._home / digest / _TREE

    async def put(self, digest: str, body: AsyncIterator[bytes]) -> EnvDir:
        """Take a directory's tar. Raises `BadEnvDir` when it is not what its digest says, or no environment."""
        require_digest(digest)
        with TemporaryFile() as spool:
            await _spool(body, spool, digest)
            found = await asyncio.to_thread(self._unpack, digest, spool)
        log.info("event=env_dir digest=%s files=%d bytes=%d", digest[:12], found.files, found.size)
        return found

    def _unpack(self, digest: str, spool: IO[bytes]) -> EnvDir:
        self._home.mkdir(mode=0o755, parents=True, exist_ok=True)
        fresh = self._home / f".{digest}.{os.getpid()}.{os.urandom(4).hex()}"
        fresh.mkdir(mode=0o755)
        try:
            size = spool.seek(0, os.SEEK_END)
            spool.seek(0)
            files = archive.unpack(spool, fresh / _TREE)
            (fresh / _ABOUT).write_text(json.dumps({"files": files, "size": size}))
            try:
                fresh.rename(self._home / digest)
            except OSError:  # somebody else was faster, with the same bytes
                if not (self._home / digest / _ABOUT).exists():
                    raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        self._prune()
        return EnvDir(digest=digest, files=files, size=size)

    def _prune(self) -> None:
        held = [(path.stat().st_mtime, path) for path in self._home.iterdir() if not path.name.startswith(".")]
        unused = [
            (when, path) for when, path in sorted(held, reverse=True)[self._keep :] if when < time.time() - UNUSED_S
        ]
        for _, path in unused:
            shutil.rmtree(path, ignore_errors=True)


async def _spool(body: AsyncIterator[bytes], spool: IO[bytes], digest: str) -> None:
    found, size = hashlib.sha256(), 0
    async for chunk in body:
        size += len(chunk)
        if size > 2 * archive.SIZE_LIMIT:
            raise TooLarge(f"an environment directory of over {archive.SIZE_LIMIT >> 20} MiB")
        found.update(chunk)
        spool.write(chunk)
    if found.hexdigest() != digest:
        raise BadEnvDir("the tar is not what its digest says", hint="it was cut short or changed while it was sent")
