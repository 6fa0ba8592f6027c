"""The node's side of the launcher: asking for templates, and hearing that they run or could not be made."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotbed.errors import TemplateFailed
from hotbed.guest import frames
from hotbed.runtime import launcher, probe
from hotbed.runtime.templates import TemplateProcess

log = logging.getLogger(__name__)

_MESSAGE_LIMIT = 1 << 18
_START_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A template's process, as the launcher sees it."""

    pid: int
    pidfd: int


class Launching:
    """One launcher. Made before the event loop starts; `attach` joins it to the loop."""

    def __init__(self) -> None:
        self._process, self._control = launcher.spawn()
        self._answers: dict[int, asyncio.Future[Started]] = {}
        self._keys = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def pid(self) -> int:
        """The launcher's process."""
        return self._process.pid

    def attach(self) -> None:
        """Listen from the running loop."""
        self._loop = asyncio.get_running_loop()
        self._control.setblocking(False)
        self._loop.add_reader(self._control.fileno(), self._on_readable)

    async def start(
        self, plan: Mapping[str, Any], config: Mapping[str, Any], groups: Sequence[int] = ()
    ) -> TemplateProcess:
        """A template process that has been told its config; it is not warm yet. `groups` are what it is to join."""
        if self._control.fileno() < 0:
            self._respawn()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        log_fd = os.memfd_create("hotbed-template-log", os.MFD_CLOEXEC)
        process = TemplateProcess(ours, log_fd)
        process.configure(config)
        self._keys += 1
        key = self._keys
        answer = self._answers[key] = asyncio.get_running_loop().create_future()
        try:
            message = json.dumps({"op": "start", "key": key, "plan": plan}).encode()
            await self._send(message, theirs.fileno(), log_fd, *groups)
            started = await asyncio.wait_for(answer, _START_TIMEOUT_S)
        except BaseException:
            process.kill("it could not be started")
            raise
        finally:
            self._answers.pop(key, None)
            theirs.close()
        process.attach(started.pid, started.pidfd)
        return process

    async def supervise(self, over: str = "replay") -> socket.socket:
        """The node's end of a channel to a new supervisor, of `hotbed.runtime.replay`, `.livefork` or `.egress`."""
        kind = socket.SOCK_STREAM if over == "egress" else socket.SOCK_SEQPACKET
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        with theirs:
            try:
                await self._send(json.dumps({"op": "supervise", "over": over}).encode(), theirs.fileno())
            except BaseException:
                ours.close()
                raise
        return ours

    async def _send(self, message: bytes, *fds: int) -> None:
        while True:
            try:
                socket.send_fds(self._control, [message], list(fds))
                return
            except BlockingIOError:
                await asyncio.sleep(0.005)
            except OSError as error:
                self._lost()
                raise TemplateFailed(f"the launcher is gone: {error}") from None

    def _on_readable(self) -> None:
        try:
            data, ancillary, _, _ = self._control.recvmsg(_MESSAGE_LIMIT, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        fds = frames.unpack_fds(ancillary)
        if not data:
            self._lost()
            return
        message = json.loads(data)
        answer = self._answers.get(message["key"])
        if message["op"] == "started" and answer is not None and not answer.done():
            answer.set_result(Started(pid=message["pid"], pidfd=fds.pop()))
        elif message["op"] == "failed" and answer is not None and not answer.done():
            answer.set_exception(probe.refusal(message["message"]))
        for fd in fds:
            os.close(fd)

    def _respawn(self) -> None:
        """The launcher was killed: start another. Its templates died with it."""
        log.warning("event=launcher_lost pid=%d", self._process.pid)
        self._process.wait(_END_TIMEOUT_S)
        self._process, self._control = launcher.spawn()
        self.attach()

    def _lost(self) -> None:
        if self._control.fileno() >= 0:
            if self._loop is not None:
                self._loop.remove_reader(self._control.fileno())
            self._control.close()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(TemplateFailed("the launcher has ended"))

    def close(self) -> None:
        """End the launcher, and with it whatever it started. Blocks briefly; idempotent."""
        if self._control.fileno() >= 0:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.remove_reader(self._control.fileno())
            self._control.close()
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
