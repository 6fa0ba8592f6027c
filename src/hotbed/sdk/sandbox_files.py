"""A sandbox's files."""

from __future__ import annotations

import os
from io import BytesIO
from typing import BinaryIO

from hotbed.sdk import calls
from hotbed.sdk.living import LivingSandbox
from hotbed.sdk.programs import Text
from hotbed.sdk.sandbox_plan import found_entry
from hotbed.sdk.streams import opened_source, opened_target
from hotbed.wire.checks import require_path
from hotbed.wire.sandboxes import FileAnswer, FileEntry, FileVerb


class SandboxFiles(LivingSandbox):
    """What a `Sandbox` can do with files."""

    def upload_bytes(self, path: str, data: Text, *, mode: int = 0o644) -> None:
        """Write a file, exactly these bytes. Its directories are made."""
        require_path(path)
        link = self._live()
        link.send(calls.put_bytes(self._plan.live_id(), path, data, mode=mode))

    def upload(self, path: str, source: str | os.PathLike[str] | BinaryIO, *, mode: int = 0o644) -> None:
        """Write a file of any size from a local path or an open binary file, streamed."""
        require_path(path)
        link = self._live()
        with opened_source(source) as (chunks, length):
            link.send(calls.put_file(self._plan.live_id(), path, chunks, length, mode=mode))

    def download(self, path: str) -> bytes:
        """A file's bytes."""
        kept = BytesIO()
        link = self._live()
        link.send(calls.get_file(self._plan.live_id(), path, kept))
        return kept.getvalue()

    def download_to(self, path: str, target: str | os.PathLike[str] | BinaryIO) -> None:
        """Stream a file of any size to a local path or an open binary file."""
        require_path(path)
        link = self._live()
        with opened_target(target) as sink:
            link.send(calls.get_file(self._plan.live_id(), path, sink))

    def upload_dir(self, source: str | os.PathLike[str], path: str) -> int:
        """Copy what is in a local directory below `path`; how many files and directories."""
        from hotbed.sdk.trees import pack_tree  # tarfile is not for those who do not use it

        link = self._live()
        written = link.send(calls.put_tree(self._plan.live_id(), path, pack_tree(source)))
        return written.files

    def download_dir(self, path: str, target: str | os.PathLike[str]) -> tuple[str, ...]:
        """Copy what is below `path` into a local directory; the names that were left out.

        Files, directories and links that stay inside the directory are made; devices, pipes and links that lead out of
        it are not. The sandbox's content cannot make this write anywhere else.
        """
        link = self._live()
        from hotbed.sdk.trees import new_spool, unpack_tree  # tarfile is not for those who do not use it

        with new_spool() as spool:
            link.send(calls.get_tree(self._plan.live_id(), path, spool))
            return unpack_tree(spool, target)

    def stat(self, path: str) -> FileEntry:
        """What a path is: type, size, mode."""
        answer = self._files("stat", path)
        return found_entry(answer, path)

    def list_dir(self, path: str) -> tuple[FileEntry, ...]:
        """What a directory holds."""
        answer = self._files("list", path)
        return answer.entries

    def mkdir(self, path: str) -> None:
        """Make a directory and those above it."""
        self._files("mkdir", path)

    def remove(self, path: str) -> None:
        """Remove a file, or a directory and all below it."""
        self._files("remove", path)

    def _files(self, operation: FileVerb, path: str) -> FileAnswer:
        link = self._live()
        return link.send(calls.files(self._plan.live_id(), operation, path))
