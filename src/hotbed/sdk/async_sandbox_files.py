"""A sandbox's files, for asyncio. The twin of `sandbox_files.py`."""

from __future__ import annotations

import os
from io import BytesIO
from typing import BinaryIO

from hotbed.sdk import calls
from hotbed.sdk.living import AsyncLivingSandbox
from hotbed.sdk.programs import Text
from hotbed.sdk.sandbox_plan import found_entry
from hotbed.sdk.streams import opened_source, opened_target
from hotbed.wire.checks import require_path
from hotbed.wire.sandboxes import FileAnswer, FileEntry, FileVerb


class AsyncSandboxFiles(AsyncLivingSandbox):
    """What an `AsyncSandbox` can do with files."""

    async def upload_bytes(self, path: str, data: Text, *, mode: int = 0o644) -> None:
        """Write a file, exactly these bytes. Its directories are made."""
        require_path(path)
        link = await self._live()
        await link.asend(calls.put_bytes(self._plan.live_id(), path, data, mode=mode))

    async def upload(self, path: str, source: str | os.PathLike[str] | BinaryIO, *, mode: int = 0o644) -> None:
        """Write a file of any size from a local path or an open binary file, streamed."""
        require_path(path)
        link = await self._live()
        with opened_source(source) as (chunks, length):
            await link.asend(calls.put_file(self._plan.live_id(), path, chunks, length, mode=mode))

    async def download(self, path: str) -> bytes:
        """A file's bytes."""
        kept = BytesIO()
        link = await self._live()
        await link.asend(calls.get_file(self._plan.live_id(), path, kept))
        return kept.getvalue()

    async def download_to(self, path: str, target: str | os.PathLike[str] | BinaryIO) -> None:
        """Stream a file of any size to a local path or an open binary file."""
        require_path(path)
        link = await self._live()
        with opened_target(target) as sink:
            await link.asend(calls.get_file(self._plan.live_id(), path, sink))

    async def upload_dir(self, source: str | os.PathLike[str], path: str) -> int:
        """Copy what is in a local directory below `path`; how many files and directories."""
        from hotbed.sdk.trees import pack_tree  # tarfile is not for those who do not use it

        link = await self._live()
        written = await link.asend(calls.put_tree(self._plan.live_id(), path, pack_tree(source)))
        return written.files

    async def download_dir(self, path: str, target: str | os.PathLike[str]) -> tuple[str, ...]:
        """Copy what is below `path` into a local directory; the names that were left out.

        Files, directories and links that stay inside the directory are made; devices, pipes and links that lead out of
        it are not. The sandbox's content cannot make this write anywhere else.
        """
        link = await self._live()
        import asyncio  # nor asyncio

        from hotbed.sdk.trees import new_spool, unpack_tree  # tarfile is not for those who do not use it

        with new_spool() as spool:
            await link.asend(calls.get_tree(self._plan.live_id(), path, spool))
            return await asyncio.to_thread(unpack_tree, spool, target)

    async def stat(self, path: str) -> FileEntry:
        """What a path is: type, size, mode."""
        answer = await self._files("stat", path)
        return found_entry(answer, path)

    async def list_dir(self, path: str) -> tuple[FileEntry, ...]:
        """What a directory holds."""
        answer = await self._files("list", path)
        return answer.entries

    async def mkdir(self, path: str) -> None:
        """Make a directory and those above it."""
        await self._files("mkdir", path)

    async def remove(self, path: str) -> None:
        """Remove a file, or a directory and all below it."""
        await self._files("remove", path)

    async def _files(self, operation: FileVerb, path: str) -> FileAnswer:
        link = await self._live()
        return await link.asend(calls.files(self._plan.live_id(), operation, path))
