"""The node's side of building an image: one process for one image, heard until it is done, ended when given up."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hotbed.errors import BadImage, Error
from hotbed.runtime.images.record import ImageRecord
from hotbed.runtime.images.store import Store
from hotbed.runtime.images.unpacking import BYTES_LIMIT, ENTRIES_LIMIT
from hotbed.runtime.linux import identity

_MESSAGE_LIMIT = 1 << 20

Supervise = Callable[[str], Awaitable[socket.socket]]
OnProgress = Callable[[Mapping[str, Any]], None]


class Builder:
    """Builds images into one store."""

    def __init__(self, supervise: Supervise, store: Store, *, most_bytes: int = BYTES_LIMIT) -> None:
        self._supervise = supervise
        self.store = store
        self.most_bytes = most_bytes

    async def build(self, source: str, on_progress: OnProgress, *, stranger: bool = False) -> ImageRecord:
        """Have a source's image in the store. A `stranger` gets none of this user's credentials.

        Raises `BadImage`, `NoSpace`; given up (cancelled), nothing of it goes on, and what was complete is kept.
        """
        told = await self._ask({"op": "import", "source": source, "stranger": stranger}, on_progress)
        return ImageRecord.from_plain(told["record"])

    def packages(self, name: str) -> Path:
        """The folder of Python packages that `install` makes."""
        return self.store.home / "packages" / name

    async def install(self, packages: Sequence[str], name: str) -> None:
        """Have Python packages in a folder of the node's. Raises `BadImage`."""
        job = {"op": "install", "packages": list(packages), "target": str(self.packages(name))}
        await self._ask(job, lambda about: None)

    async def extend(
        self, parent: ImageRecord, recipe: str, layer: int, *, mounted: Iterable[str], on_progress: OnProgress
    ) -> ImageRecord:
        """Put a saved layer, which the descriptor yields, over an image.

        `recipe` is all that went into it; `mounted` are the top folders where sandboxes have something mounted.
        """
        job = {"op": "extend", "parent": parent.to_plain(), "recipe": recipe, "mounted": sorted(mounted)}
        return ImageRecord.from_plain((await self._ask(job, on_progress, layer))["record"])

    async def _ask(self, job: Mapping[str, Any], on_progress: OnProgress, *fds: int) -> Mapping[str, Any]:
        ids = identity.mine()
        plain = {
            **job,
            "store": str(self.store.home),
            "ids": {"uid": ids.uid, "gid": ids.gid, "count": ids.count},
            "bytes": self.most_bytes,
            "entries": ENTRIES_LIMIT,
        }
        with await self._supervise("images") as channel:
            socket.send_fds(channel, [json.dumps(plain).encode()], list(fds))
            channel.setblocking(False)
            while True:
                data = await _receive(channel)
                message: dict[str, Any] = json.loads(data) if data else {"op": "failed", "message": "the builder died"}
                if message["op"] == "done":
                    return message
                if message["op"] == "failed":
                    code = message.get("code", BadImage.code)
                    raise Error.from_wire(code, message["message"], hint=message.get("hint"))
                on_progress(message)


async def _receive(channel: socket.socket) -> bytes:
    """A message; none when the process is gone."""
    try:
        return await asyncio.get_running_loop().sock_recv(channel, _MESSAGE_LIMIT)
    except ConnectionResetError:
        return b""
