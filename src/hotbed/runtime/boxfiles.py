"""A sandbox's files and ports, through its agent: descriptors of files and connections, tar streams, what is where.

The agent opens; the node gets descriptors and reads or writes them itself. So no path is ever followed by the node, and
what comes back is checked to be what it must be: a regular file of the sandbox's own disk, or a pipe.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any, Literal

from hotbed.runtime import answers
from hotbed.runtime.base import check_path
from hotbed.runtime.conversations import Conversation, only
from hotbed.runtime.link import close_all

_QUICK_S = 30.0
_TRANSFER_S = 3600.0


class BoxFiles:
    """What a sandbox can do with files. `talk` is the conversation with its agent."""

    talk: Conversation

    async def open(self, path: str, mode: Literal["r", "w", "a"], perm: int = 0o644) -> tuple[int, int]:
        """A descriptor of a regular file, and its size."""
        check_path(path)
        header = {"op": "open", "path": path, "mode": mode, "perm": perm, "parents": mode != "r"}
        answer = await self.talk.ask(header, timeout_s=_QUICK_S)
        with self.talk.blame(answer):
            fd = only(answer[2])
            size = answers.check_regular(fd)
        os.set_blocking(fd, True)
        return fd, size

    async def ask_plainly(self, op: str, timeout_s: float) -> Mapping[str, Any]:
        """Have the agent do something that needs no more than its name; its answer."""
        header, _, fds = await self.talk.ask({"op": op}, timeout_s=timeout_s)
        close_all(fds)
        return header

    async def pass_layer(self, op: Literal["save_layer", "restore_layer"], fd: int) -> Mapping[str, Any]:
        """Have the file layer written to a descriptor, or read from one. The caller closes it."""
        answer = await self.talk.ask({"op": op}, fds=(fd,), timeout_s=_TRANSFER_S)
        close_all(answer[2])
        return answer[0]

    async def pack(self, path: str) -> int:
        """A pipe that yields a tar of `path`."""
        check_path(path)
        answer = await self.talk.ask({"op": "pack", "path": path}, timeout_s=_QUICK_S)
        with self.talk.blame(answer):
            fd = only(answer[2])
            answers.check_pipe(fd)
        return fd

    async def unpack(self, path: str, source: int) -> int:
        """Extract the tar that `source` yields; how many members."""
        try:
            check_path(path)
            answer = await self.talk.ask({"op": "unpack", "path": path}, fds=(source,), timeout_s=_TRANSFER_S)
        finally:
            os.close(source)
        close_all(answer[2])
        files = answer[0].get("files", 0)
        return files if type(files) is int else 0

    async def dial(self, port: int) -> socket.socket:
        """A connection to a port inside, which leads nowhere else."""
        answer = await self.talk.ask({"op": "dial", "port": port}, timeout_s=_QUICK_S)
        with self.talk.blame(answer):
            fd = only(answer[2])
            answers.check_connection(fd)
        connection = socket.socket(fileno=fd)
        connection.setblocking(False)
        return connection

    async def files(self, operation: Literal["stat", "list", "remove", "mkdir"], path: str) -> Mapping[str, Any]:
        """Look at or change files."""
        check_path(path)
        header, _, fds = await self.talk.ask({"op": operation, "path": path}, timeout_s=_QUICK_S)
        close_all(fds)
        return {key: value for key, value in header.items() if key not in ("op", "id")}
