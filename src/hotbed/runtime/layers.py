"""Layers, the node's side: taken of sandboxes that are held still, kept as descriptors, stood on by new sandboxes.

One copy serves any number of children: each stands on the same tree and pays for what it changes. `end=True` needs not
even that copy: the sandbox ends, and its own file system becomes the layer. The memory of a layer is counted once, for
as long as anything stands on it: a child keeps the layers below it, whoever freed the snapshots that they came from.

What a layer is to the kernel, and why nothing can be left of one, is in `hotbed.guest.template.layers`.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakSet

from hotbed.errors import SandboxFailed, SandboxGone, SnapshotUnsupported
from hotbed.guest import frames
from hotbed.guest.template.layers import MOST
from hotbed.runtime import answers, bounds
from hotbed.runtime.frost import Frost, How
from hotbed.runtime.groups import Groups
from hotbed.runtime.sandboxes import ForkBox
from hotbed.runtime.templates import TemplateProcess

_COPY_S = 120.0
_LOOK_S = 20.0


class LayerFiles:
    """The files of a sandbox at one moment, as a descriptor of the namespace that holds them."""

    def __init__(
        self, fd: int, *, home: TemplateProcess, below: LayerFiles | None, size: int, how: How, skipped: tuple[str, ...]
    ) -> None:
        self._fd = fd
        self.home = home
        self.below = below
        self.size = size
        self.how: str = how
        self.skipped = skipped
        self.depth: int = 1 + (below.depth if below is not None else 0)

    def is_alive(self) -> bool:
        """Whether sandboxes can still be made with it."""
        return self._fd >= 0 and self.home.is_alive()

    def descriptor(self) -> int:
        """A copy of the descriptor, the caller's. Raises `SandboxGone`."""
        if not self.is_alive():
            raise SandboxGone("the snapshot was freed, or its template has ended")
        return os.dup(self._fd)

    def close(self) -> None:
        """Let go of it. Idempotent."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class Layers:
    """Takes layers."""

    def __init__(self, frost: Frost, groups: Groups | None = None) -> None:
        self.frost = frost
        self._groups = groups
        self._known: WeakSet[LayerFiles] = WeakSet()
        self._seen: dict[int, tuple[str, ...]] = {}  # in those that are held still, whose agents cannot be asked

    @property
    def size(self) -> int:
        """Bytes of all layers that anything stands on or could."""
        return sum(layer.size for layer in self._known)

    def __len__(self) -> int:
        return len(self._known)

    async def freeze(self, box: ForkBox) -> str:
        """Hold it still until `thaw`; how."""
        self._seen[box.id] = await self._look(box)
        return await self.frost.begin(box)

    async def thaw(self, box: ForkBox) -> None:
        """Let it go on."""
        self._seen.pop(box.id, None)
        await self.frost.end(box)

    async def _look(self, box: ForkBox) -> tuple[str, ...]:
        """What is in it and no file."""
        await box.ready()
        seen = self._seen.get(box.id)
        return seen if seen is not None else left_behind(await box.ask_plainly("look", _LOOK_S))

    async def reclaim(self, box: ForkBox) -> int | None:
        """Have the kernel take back what memory it can; bytes, or None where it cannot be asked to."""
        return await self.frost.reclaim(box)

    def stand_on(self, home: TemplateProcess) -> bool:
        """Whether sandboxes could still be made with a layer of this template's process."""
        return any(layer.home is home and layer.is_alive() for layer in self._known)

    def close(self) -> None:
        """Let go of all of them."""
        for layer in self._known:
            layer.close()

    def forget(self, box: Any) -> None:
        """A sandbox has ended, and stands on nothing any more."""
        self.frost.forget(box.id)
        self._seen.pop(box.id, None)
        if box.request.layer is not None:
            box.request = replace(box.request, layer=None)

    async def take(self, box: ForkBox, *, end: bool = False) -> LayerFiles:
        """The files of a sandbox at one moment, at which its processes are held still. With `end` it is its last."""
        home = box.home
        assert isinstance(home, TemplateProcess), "every sandbox of this backend is of a template's process"
        below = box.request.layer
        assert below is None or isinstance(below, LayerFiles), "and stands on its backend's layers"
        depth = 1 + (below.depth if below is not None else 0)
        if depth > MOST:
            raise SnapshotUnsupported(
                f"this sandbox is the {MOST}th fork of a fork", hint="start a fresh one and copy its files there"
            )
        skipped = await self._look(box)
        how = await self.frost.begin(box)
        try:
            async with self._group(box, end=end) as joins:
                fd, told = await _hold(box, home, depth, joins, restack=end)
        except BaseException:
            await asyncio.shield(self.frost.end(box))
            raise
        layer = LayerFiles(fd, home=home, below=below, size=told, how=how, skipped=skipped)
        self._known.add(layer)
        try:
            await (box.kill() if end else asyncio.shield(self.frost.end(box)))
        except BaseException:  # also when cancelled: nobody else knows of it
            layer.close()
            raise
        return layer

    @asynccontextmanager
    async def _group(self, box: ForkBox, *, end: bool) -> AsyncIterator[Sequence[int]]:
        """A group for who copies its files: they are memory, and not the template's. Where nothing is copied, none."""
        slot = (
            await self._groups.set_apart(bounds.of_copy(box.limits)) if self._groups is not None and not end else None
        )
        try:
            yield slot.procs if slot is not None else ()
        finally:
            if slot is not None and self._groups is not None:
                self._groups.discard(slot)


async def _hold(
    box: ForkBox, home: TemplateProcess, depth: int, joins: Sequence[int], *, restack: bool
) -> tuple[int, int]:
    """Have the template make the layer; the namespace's descriptor and the layer's size."""
    ours, theirs = socket.socketpair()
    ours.settimeout(_COPY_S)
    limits = box.limits
    order = {"box": box.id, "depth": depth, "restack": restack, "disk_mib": limits.disk_mib, "files": limits.files}
    with ours:
        try:
            home.hold(order, theirs.fileno(), *joins)
        finally:
            theirs.close()
        receiving = asyncio.get_running_loop().run_in_executor(None, _receive, ours)
        try:
            return await asyncio.shield(receiving)
        except asyncio.CancelledError:
            ours.shutdown(socket.SHUT_RDWR)
            receiving.add_done_callback(_close_unwanted)
            raise


def _receive(sock: socket.socket) -> tuple[int, int]:
    connection = frames.Connection(sock)
    try:
        header, _, fds = connection.receive()
    except (frames.Closed, OSError) as error:
        raise SandboxGone(f"no layer could be made: {error}") from None
    if header.get("op") == "error":
        raise answers.error_of(header)
    if len(fds) != 1:
        raise SandboxFailed("the template answered without a layer")
    return fds[0], int(header["bytes"])


def _close_unwanted(receiving: asyncio.Future[tuple[int, int]]) -> None:
    if not receiving.cancelled() and receiving.exception() is None:
        os.close(receiving.result()[0])


def left_behind(told: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of what is in a sandbox and no file: children do not have it. What the agent says is only ever shown."""
    count, names = told.get("count"), _texts(told.get("processes"))
    found = []
    if type(count) is int and count > 0:
        more = f" and {count - len(names)} more" if count > len(names) else ""
        found.append(f"{count} running processes ({', '.join(names)}{more})")
    ports = told.get("ports")
    found += [f"listening port {port}" for port in ports if type(port) is int] if isinstance(ports, list) else []
    return (*found, *(f"System V {kind}" for kind in _texts(told.get("ipc"))))


def _texts(value: object) -> list[str]:
    return [item[:64] for item in value if isinstance(item, str)][:64] if isinstance(value, list) else []
