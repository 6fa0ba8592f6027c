"""Snapshots of running environments, the node's side: asks the keeper for memory and the sandboxes for their files.

A *snapshot* is memory, registers and open files in the keeper, and the file layer in a sealed memory file here; both
are taken while the environment is stopped and nothing else runs in its sandbox, so they are of one moment. *Restoring*
makes a vessel of a fresh sandbox of the same template: files first, so that open files can be opened again, then the
rest. A snapshot depends on nothing but its template's process: not on the sandbox it was taken of, nor on what was
restored from it.
"""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import json
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hotbed.errors import Error, SandboxFailed, SandboxGone, SnapshotUnsupported
from hotbed.guest import kernel
from hotbed.runtime.livefork import keeper
from hotbed.runtime.programs import RunningProgram
from hotbed.runtime.sandboxes import ForkBox
from hotbed.runtime.templates import TemplateProcess

_ANSWER_S = 90.0
_SPLICE = 1 << 20
_PROGRAM = "env_server"
_USUAL_PID = 2  # of an environment that is the first program of its sandbox
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL

Answer = dict[str, Any]


@dataclass(slots=True, kw_only=True, eq=False)
class Snapshot:
    """A moment of an environment. `release` frees it."""

    id: int
    home: TemplateProcess
    pid: int
    memory_bytes: int
    layer: int
    layer_bytes: int
    needs_files: bool
    skipped: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return self.memory_bytes + self.layer_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Vessel:
    """A program that waits to become another one, or has; and our end of its lane."""

    program: RunningProgram
    lane: socket.socket


async def _start_vessel(box: ForkBox, pid: int) -> Vessel:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        return Vessel(program=await box.start(_PROGRAM, {"vessel": True}, theirs, as_pid=pid), lane=ours)
    except BaseException:
        ours.close()
        raise


class LiveFork:
    """The keeper of one backend, started on first use and again after it was lost, with everything it held."""

    def __init__(self, supervise: Callable[[str], Awaitable[socket.socket]]) -> None:
        self._supervise = supervise
        self._channel: socket.socket | None = None
        self._opening = asyncio.Lock()
        self._keys = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._templates: dict[TemplateProcess, asyncio.Future[int]] = {}
        self._snapshots: dict[int, Snapshot] = {}
        self._parked: dict[int, Vessel] = {}

    def __len__(self) -> int:
        return len(self._snapshots)

    @property
    def size(self) -> int:
        """Bytes held by all snapshots."""
        return sum(snapshot.size for snapshot in self._snapshots.values())

    async def snapshot(
        self, box: ForkBox, program: RunningProgram, *, skip: bool = False, verify: bool = False
    ) -> Snapshot:
        """Take one of an idle environment, which runs on. Raises `SnapshotUnsupported` with what stands in the way."""
        if not kernel.SUPPORTED:
            raise SnapshotUnsupported("live fork is made for x86_64 only")
        if not box.request.forkable:
            raise SnapshotUnsupported("this sandbox was not made to be forked")
        template = await self._witness(_home_of(box))
        if program.handle is None:
            raise SandboxGone("the environment has ended")
        layer = os.memfd_create("hotbed-layer", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            await self._ask({"op": "stop", "box": box.id, "template": template}, program.handle)
            return await self._take(box, template, layer, skip=skip, verify=verify)
        except BaseException:
            os.close(layer)
            raise

    async def _take(self, box: ForkBox, template: int, layer: int, *, skip: bool, verify: bool) -> Snapshot:
        number = next(self._keys)
        request = {"op": "take", "box": box.id, "template": template, "snapshot": number, "skip": skip}
        taking = asyncio.ensure_future(self._ask({**request, "verify": verify}))
        saving = asyncio.ensure_future(_save_layer(box, layer))
        try:
            await asyncio.gather(taking, saving, return_exceptions=True)
        finally:
            await asyncio.shield(self._ask({"op": "go", "box": box.id}))
        memory = taking.result()
        try:
            skipped = [*memory["skipped"], *_left_behind(saving.result(), skip=skip)]
        except BaseException:
            await self._ask({"op": "forget", "snapshot": number})
            raise
        fcntl.fcntl(layer, fcntl.F_ADD_SEALS, _SEALS)
        snapshot = Snapshot(
            id=number,
            home=_home_of(box),
            pid=memory["number"],
            memory_bytes=memory["size"],
            layer=layer,
            layer_bytes=os.fstat(layer).st_size,
            needs_files=memory["files"],
            skipped=tuple(skipped),
        )
        self._snapshots[number] = snapshot
        return snapshot

    async def restore(self, snapshot: Snapshot, box: ForkBox, *, verify: bool = False) -> Vessel:
        """Make a fresh sandbox of the same template what the snapshot was taken of; its program and its lane.

        `verify` compares every page, of a snapshot that was taken with `verify` too.
        """
        if not self.is_alive(snapshot):
            raise SandboxGone("the snapshot was freed, or its template has ended")
        if box.home is not snapshot.home:
            raise SnapshotUnsupported("the snapshot is of another template, or of one that has ended since")
        vessel = self._parked.pop(box.id, None)
        if vessel is not None and snapshot.pid != _USUAL_PID:
            vessel.lane.close()
            vessel = None
        if vessel is None:
            vessel = await _start_vessel(box, snapshot.pid)
        try:
            await self._fill(snapshot, box, vessel.program, verify=verify)
        except BaseException:
            vessel.lane.close()
            raise
        return vessel

    async def _fill(self, snapshot: Snapshot, box: ForkBox, program: RunningProgram, *, verify: bool) -> None:
        """Files and memory. At the same time where memory needs no file: nobody has asked the copy for anything yet."""
        files = asyncio.ensure_future(_restore_layer(snapshot, box))
        try:
            if snapshot.needs_files:
                await files
            if program.handle is None:
                raise SandboxGone("the vessel has ended")
            request = {"op": "restore", "box": box.id, "snapshot": snapshot.id, "verify": verify}
            await self._ask(request, program.handle)
        finally:
            await files

    async def park(self, box: ForkBox) -> None:
        """Start the vessel in a fresh sandbox ahead of the copy that it will become."""
        vessel = await _start_vessel(box, _USUAL_PID)
        self._parked[box.id] = vessel
        vessel.program.end.add_done_callback(lambda _: self._unpark(box.id))
        witness = self._templates.get(_home_of(box))
        if witness is not None and witness.done() and vessel.program.handle is not None:
            try:
                await self._ask({"op": "look", "box": box.id, "template": witness.result()}, vessel.program.handle)
            except Error:
                pass  # it is only looked at ahead; whoever needs it will look again, and say what is wrong

    def _unpark(self, box_id: int) -> None:
        vessel = self._parked.pop(box_id, None)
        if vessel is not None:
            vessel.lane.close()
            self._post({"op": "forget", "box": box_id})

    async def release(self, snapshot: Snapshot) -> None:
        """Free it. Idempotent."""
        if self._snapshots.pop(snapshot.id, None) is not None:
            os.close(snapshot.layer)
            if self._channel is not None:
                await self._ask({"op": "forget", "snapshot": snapshot.id})

    def close(self) -> None:
        """End the keeper and free everything. Idempotent."""
        self._lose("the backend was closed")

    async def _witness(self, home: TemplateProcess) -> int:
        """The keeper's number of a template, whose witness it has."""
        known = self._templates.get(home)
        if known is None:
            known = self._templates[home] = asyncio.get_running_loop().create_future()
            try:
                known.set_result(await self._introduce(home))
            except BaseException as error:
                del self._templates[home]
                known.set_exception(error)
                known.exception()
                raise
        return await asyncio.shield(known)

    async def _introduce(self, home: TemplateProcess) -> int:
        number = next(self._keys)
        pidfd = await home.witness()
        try:
            await self._ask({"op": "witness", "template": number}, pidfd)
        finally:
            os.close(pidfd)
        home.gone.add_done_callback(lambda _: self._forget_template(home, number))
        return number

    def _forget_template(self, home: TemplateProcess, number: int) -> None:
        self._templates.pop(home, None)
        for snapshot in [one for one in self._snapshots.values() if one.home is home]:
            del self._snapshots[snapshot.id]
            os.close(snapshot.layer)
            self._post({"op": "forget", "snapshot": snapshot.id})
        self._post({"op": "forget", "template": number})

    def is_alive(self, snapshot: Snapshot) -> bool:
        """Whether it can still be restored."""
        return snapshot.id in self._snapshots

    # --- the channel ---

    async def _ask(self, message: Answer, *fds: int) -> Answer:
        async with self._opening:
            if self._channel is None:
                await self._open()
        key = next(self._keys)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[key] = answer
        try:
            self._send({**message, "key": key}, *fds)
            found: Answer = await asyncio.wait_for(answer, _ANSWER_S)
        except asyncio.TimeoutError:
            self._lose("the keeper gave no answer")
            raise SandboxFailed("the keeper of snapshots gave no answer") from None
        finally:
            self._answers.pop(key, None)
        if "error" in found:
            raise _error_of(found)
        return found

    def _post(self, message: Answer) -> None:
        if self._channel is not None:
            self._send({**message, "key": 0})

    def _send(self, message: Answer, *fds: int) -> None:
        if self._channel is None:
            raise SandboxFailed("the keeper of snapshots is gone")
        try:
            socket.send_fds(self._channel, [json.dumps(message).encode()], list(fds))
        except OSError as error:
            self._lose(str(error))
            raise SandboxFailed(f"the keeper of snapshots is gone: {error}") from None

    async def _open(self) -> None:
        self._channel = await self._supervise("livefork")
        self._channel.setblocking(False)
        asyncio.get_running_loop().add_reader(self._channel.fileno(), self._on_readable)

    def _on_readable(self) -> None:
        assert self._channel is not None
        try:
            data = self._channel.recv(keeper.MESSAGE_LIMIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose("the keeper has ended")
            return
        answer: Answer = json.loads(data)
        waiting = self._answers.get(answer["key"])
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _lose(self, reason: str) -> None:
        if self._channel is None:
            return
        asyncio.get_running_loop().remove_reader(self._channel.fileno())
        self._channel.close()
        self._channel = None
        self._templates.clear()
        for snapshot in self._snapshots.values():
            os.close(snapshot.layer)
        self._snapshots.clear()
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(SandboxFailed(reason))


async def _restore_layer(snapshot: Snapshot, box: ForkBox) -> None:
    if not snapshot.layer_bytes:
        return
    source = os.open(f"/proc/self/fd/{snapshot.layer}", os.O_RDONLY | os.O_CLOEXEC)  # an offset of its own
    try:
        await box.pass_layer("restore_layer", source)
    finally:
        os.close(source)


async def _save_layer(box: ForkBox, layer: int) -> Mapping[str, Any]:
    """Have the sandbox write its file layer, and keep it; what it told.

    Through a pipe: what a sandbox writes to a memory file itself counts as its own memory, on top of the files.
    """
    source, sink = os.pipe2(os.O_CLOEXEC)
    loop = asyncio.get_running_loop()
    keeping = loop.run_in_executor(None, _keep, source, layer)
    try:
        return await box.pass_layer("save_layer", sink)
    finally:
        os.close(sink)
        await keeping


def _keep(source: int, layer: int) -> None:
    try:
        while os.splice(source, layer, _SPLICE):
            pass
    finally:
        os.close(source)


def _left_behind(told: Mapping[str, Any], *, skip: bool) -> list[str]:
    """Names of what the agent saw that is neither memory of the environment nor a file."""
    kinds = told.get("ipc")
    names = [f"System V {kind}" for kind in ("shm", "msg", "sem") if isinstance(kinds, list) and kind in kinds]
    if names and not skip:
        raise _error_of({"error": "unsupported", "message": "; ".join(names)})
    return names


def _home_of(box: ForkBox) -> TemplateProcess:
    assert isinstance(box.home, TemplateProcess), "only a template's sandboxes are forkable"
    return box.home


def _error_of(answer: Answer) -> Error:
    if answer["error"] == "unsupported":
        return SnapshotUnsupported(
            f"it cannot be carried over: {answer['message']}", hint="close it, or ask for it to be skipped"
        )
    if answer["error"] == "busy":
        return SnapshotUnsupported(f"the environment is busy: {answer['message']}")
    if "has ended" in answer["message"]:
        return SandboxGone(answer["message"])
    return SandboxFailed(f"live fork: {answer['message']}")
