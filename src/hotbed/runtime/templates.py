"""The node's side of one template process: its control channel, what it was asked to fork, and its end.

Spawns asked for within one turn of the event loop travel in one message. The channel carries no payload, so a message
is small; descriptors ride along. When the template ends, for whatever reason, the kernel has killed every sandbox in
its pid namespace, and each of them is told.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from hotbed.errors import TemplateFailed
from hotbed.guest import frames, kernel
from hotbed.guest.template import control, newborn

log = logging.getLogger(__name__)

_MESSAGE_LIMIT = 1 << 16
_BATCH_BYTES = 48 << 10
_BATCH_FDS = 200
_LOG_TAIL = 4000
_ONE_FD = socket.CMSG_SPACE(4)
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a sandbox's pid 1 ended. `status` is wait(2)'s; None when its template went first or it never began."""

    status: int | None
    reason: str
    maxrss_kib: int = 0
    cpu_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawn:
    """One sandbox to fork. The first descriptor is the agent's socket; it is closed here once it is sent.

    So is the last one if it is `grounded`: it is a copy of that of the layers which the sandbox stands on.
    """

    id: int
    header: Mapping[str, Any]
    fds: tuple[int, ...]
    on_end: Callable[[Ended], None]
    grounded: bool = False

    def close(self) -> None:
        """It is sent, or never will be."""
        os.close(self.fds[0])
        if self.grounded:
            os.close(self.fds[-1])


class TemplateProcess:
    """A living template. Made by `Launching`; owns its descriptors."""

    def __init__(self, control: socket.socket, log_fd: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._control = control
        self._log_fd = log_fd
        self._pidfd: int | None = None
        self._waiting: deque[Spawn] = deque()
        self._flushing = False
        self._boxes: dict[int, Callable[[Ended], None]] = {}
        self._ready: asyncio.Future[Mapping[str, Any]] = self._loop.create_future()
        self.gone: asyncio.Future[str] = self._loop.create_future()
        self._witness: asyncio.Future[int] | None = None
        self.pid = 0
        self._last_words = ""
        control.setblocking(False)
        self._loop.add_reader(control.fileno(), self._on_readable)

    def boxes(self) -> int:
        """How many sandboxes of it are alive or asked for."""
        return len(self._boxes)

    def is_alive(self) -> bool:
        """Whether it may still be asked for forks."""
        return not self.gone.done()

    def attach(self, pid: int, pidfd: int) -> None:
        """It has exec-ed; this is its process."""
        self.pid, self._pidfd = pid, pidfd

    def configure(self, config: Mapping[str, Any]) -> None:
        """Send the first message."""
        self._control.send(json.dumps(config).encode())

    async def ready(self, timeout_s: float) -> Mapping[str, Any]:
        """Wait until it is warm; what it said. Raises `TemplateFailed` with the tail of its traceback or log."""
        try:
            return await asyncio.wait_for(asyncio.shield(self._ready), timeout_s)
        except asyncio.TimeoutError:
            self.kill("not ready in time")
            raise TemplateFailed(f"the template was not ready after {timeout_s:.0f} s\n{self.log_tail()}") from None

    def spawn(self, order: Spawn) -> None:
        """Fork a sandbox. `on_end` is called exactly once, later."""
        if not self.is_alive():
            order.close()
            self._loop.call_soon(order.on_end, Ended(status=None, reason="its template has ended"))
            return
        self._boxes[order.id] = order.on_end
        self._waiting.append(order)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    async def witness(self) -> int:
        """A pidfd of the fork of it that never runs, made on first use. The caller closes it."""
        if self._witness is None:
            self._witness = self._loop.create_future()
            self._control.send(b'{"op":"witness"}')
        return os.dup(await asyncio.shield(self._witness))

    def hold(self, order: Mapping[str, Any], sock: int, *groups: int) -> None:
        """Have a layer made of a sandbox, within `groups`; the answer comes on the other end of `sock`."""
        try:
            socket.send_fds(self._control, [_encode({"op": "hold", **order})], [sock, *groups])
        except OSError as error:  # the channel is full for a moment only, and then of what would come first
            raise TemplateFailed(f"the template takes no orders: {error}") from None

    def wire(self, box_id: int, ports: Sequence[int], channel: int) -> None:
        """Have doors made in a sandbox and sent over a channel, which is closed here. Its fork goes first."""
        self._flush()
        message = _encode({"op": "wire", "id": box_id, "ports": list(ports)})
        try:
            if self._waiting:
                raise BlockingIOError
            if self.is_alive():
                socket.send_fds(self._control, [message], [channel])
        except BlockingIOError:
            self._loop.call_later(0.001, self.wire, box_id, ports, channel)
            return
        except OSError as error:
            self._end(f"its control channel broke: {error}")
        os.close(channel)

    def kill_box(self, box_id: int) -> None:
        """SIGKILL one sandbox's pid 1, and with it everything in it."""
        if box_id in self._boxes and self.is_alive():
            try:
                self._control.send(control.KILL.pack(0, box_id))
            except BlockingIOError:
                self._loop.call_later(0.001, self.kill_box, box_id)
            except OSError:
                self._end("its control channel broke")

    def kill(self, reason: str) -> None:
        """SIGKILL the template, and with it every sandbox of it. Idempotent."""
        if self._pidfd is not None and self.is_alive():
            try:
                kernel.pidfd_kill(self._pidfd, 9)
            except ProcessLookupError:
                pass
        self._end(reason)

    def log_tail(self) -> str:
        """The end of what it wrote to its stdout and stderr."""
        if self.gone.done():
            return self._last_words
        size = os.fstat(self._log_fd).st_size
        return os.pread(self._log_fd, _LOG_TAIL, max(0, size - _LOG_TAIL)).decode(errors="replace")

    def _flush(self) -> None:
        """Send what waits, in as few messages as fit."""
        while self._waiting and self.is_alive():
            batch = self._next_batch()
            if not self._send_batch(batch):
                self._waiting.extendleft(reversed(batch))
                self._loop.call_later(0.001, self._flush)
                return
            for order in batch:
                order.close()
        self._flushing = False

    def _next_batch(self) -> list[Spawn]:
        batch: list[Spawn] = []
        room, slots = _BATCH_BYTES, _BATCH_FDS
        while self._waiting:
            order = self._waiting[0]
            room -= 1024
            slots -= len(order.fds)
            if batch and (room < 0 or slots < 0):
                break
            batch.append(self._waiting.popleft())
        return batch

    def _send_batch(self, batch: Sequence[Spawn]) -> bool:
        """Whether it went out; False to try again. A broken channel ends the template."""
        data = _encode([newborn.order(each.id, len(each.fds), each.header) for each in batch])
        try:
            socket.send_fds(self._control, [data], [fd for order in batch for fd in order.fds])
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._end(f"its control channel broke: {error}")
        return True

    def _on_readable(self) -> None:
        for _ in range(64):
            try:
                data, ancillary, _, _ = self._control.recvmsg(_MESSAGE_LIMIT, _ONE_FD, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return
            except OSError:
                data, ancillary = b"", []
            if not data:
                self._end("it exited")
                return
            if data[0] == 0:
                self._on_exit(*control.EXIT.unpack(data)[1:])
                continue
            message = _decoded(data)
            if message["op"] == "witness":
                self._on_witness(frames.unpack_fds(ancillary))
            else:
                self._on_message(message)

    def _on_message(self, message: Mapping[str, Any]) -> None:
        op = message["op"]
        if op == "failed":
            self._box_ended(message["id"], Ended(status=None, reason=message["message"]))
        elif op == "ready" and not self._ready.done():
            self._ready.set_result(message)
        elif op == "broken" and not self._ready.done():
            self._ready.set_exception(TemplateFailed(f"the template could not be warmed:\n{message['message']}"))

    def _on_exit(self, box_id: int, status: int, maxrss_kib: int, cpu_us: int) -> None:
        reason = describe_status(status)
        self._box_ended(box_id, Ended(status=status, reason=reason, maxrss_kib=maxrss_kib, cpu_us=cpu_us))

    def _on_witness(self, fds: Sequence[int]) -> None:
        if self._witness is not None and not self._witness.done():
            self._witness.set_result(fds[0])

    def _box_ended(self, box_id: int, ended: Ended) -> None:
        on_end = self._boxes.pop(box_id, None)
        if on_end is not None:
            on_end(ended)

    def _end(self, reason: str) -> None:
        if self.gone.done():
            return
        self._last_words = self.log_tail()
        self.gone.set_result(reason)
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        self._end_witness()
        if not self._ready.done():
            self._ready.set_exception(TemplateFailed(f"the template ended before it was ready\n{self.log_tail()}"))
            self._ready.exception()  # also when nobody waits for it
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        for order in self._waiting:
            order.close()
        self._waiting.clear()
        boxes, self._boxes = self._boxes, {}
        for on_end in boxes.values():
            on_end(Ended(status=None, reason=f"its template has ended: {reason}"))
        os.close(self._log_fd)

    def _end_witness(self) -> None:
        if self._witness is None:
            return
        if self._witness.done() and not self._witness.exception():
            os.close(self._witness.result())
        elif not self._witness.done():
            self._witness.set_exception(TemplateFailed("the template has ended"))
            self._witness.exception()  # also when nobody waits for it
        self._witness = None


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return json.loads(data)  # lone surrogates: a traceback may hold what a file name held


def describe_status(status: int) -> str:
    """A wait status in words."""
    if os.WIFSIGNALED(status):
        return f"killed by signal {os.WTERMSIG(status)}"
    return f"exited with {os.WEXITSTATUS(status)}"
