"""A runner forked ahead of the request, so that the first `code` exec of a parked sandbox waits for no fork.

It has done all that does not depend on the request and waits for it on a socket. It is used only if the whole request
fits into that socket, so that handing it over cannot block, whatever was done to the spare meanwhile.

It may be told to be pinned before there is any work: then it waits in its first draw until the supervisor knows the
seed, and is for such work only. So may the starter of a command (see `pinned_spawn`), which waits here too.
"""

from __future__ import annotations

import marshal
import os
import signal
import socket
import sys
from typing import Any, Callable, List, NamedTuple, NoReturn, Optional, Sequence, Set

from .. import frames
from . import pinned_spawn, runner
from .box import NULL, Box
from .capture import pipes
from .child import become
from .forking import fork
from .orderlog import OrderLog
from .pinned_spawn import Starter
from .pinning import NotPinned
from .request import Refused
from .runner import Work
from .stdio import Stdio

_MOST_BYTES = 60 << 10  # well below what a socket holds (net.core.wmem_default is 208 KiB)
_FDS_ROOM = socket.CMSG_SPACE(4)
_BE_PINNED = b"\0" * 8  # where the size of the work would be


class Spare(NamedTuple):
    """A waiting runner and our ends of what it has.

    One that is pinned already, `ahead`, says over `order` what shows that it is; that stays open until somebody asks.
    """

    pid: int
    ends: Sequence[int]
    log: OrderLog
    mark: Optional[int]
    order: int
    ahead: bool = False


class Parking:
    """Where the spare waits, if there is one, and the starter of a command."""

    def __init__(self, box: Box, stdio: Stdio) -> None:
        self.stdio = stdio
        self._box = box
        box.spare_pids = self.pids
        self._spare: Optional[Spare] = None
        self._starter: Optional[Starter] = None

    @property
    def filled(self) -> bool:
        """Whether one waits."""
        return self._spare is not None

    @property
    def holds_starter(self) -> bool:
        """Whether the starter of a command waits."""
        return self._starter is not None

    def fill(self, rehearse: Callable[[], None]) -> None:
        """Fork a runner that rehearses and waits, if one is wanted. A refused fork is no harm: the exec forks then."""
        if not self._box.config.get("runner", True):
            return
        try:
            self._spare = park(self._box, self.stdio, rehearse)
        except OSError:
            self._spare = None

    def park(self, spare: Spare) -> None:
        """Let this one wait here."""
        self._spare = spare

    def pids(self) -> Set[int]:
        """Of who waits here."""
        return {self._spare.pid} if self._spare is not None else set()

    def pin(self, channel: int, kind: str) -> bool:
        """Have the starter of a command pinned over a copy of the channel, or the spare; whether it could be."""
        return self._pin_starter(channel) if kind == "command" else self._pin_spare(channel)

    def _pin_spare(self, channel: int) -> bool:
        spare = self._spare
        if spare is None or spare.ahead:
            return False
        try:
            os.write(spare.order, _BE_PINNED)
            send_fd(spare.order, channel)
        except OSError:
            return False
        self._spare = spare._replace(ahead=True)
        return True

    def _pin_starter(self, channel: int) -> bool:
        if self._starter is not None:
            return False
        if not self.filled:
            pinned_spawn.spend_a_number(os.environ)
        try:
            self._starter = pinned_spawn.begin_ahead(runner.PINNING, channel)
        except OSError:
            return False
        return True

    def take_starter(self) -> Optional[Starter]:
        """The starter that waits."""
        starter, self._starter = self._starter, None
        return starter

    def clear_for(self, header: frames.Header) -> None:
        """Before anything but what the starter waits for, let it go: no thread may be left when the agent forks."""
        starter = None if header.get("ahead") else self.take_starter()
        if starter is not None:
            try:
                starter.let_go()
            except NotPinned as error:
                self._starter = starter
                raise Refused("busy", str(error)) from None

    def take(self, work: Work, channel: Optional[int] = None) -> Optional[Spare]:
        """The spare, with the work already its own; None if there is none or the work does not fit."""
        spare, self._spare = self._spare, None
        if spare is None:
            return None
        if spare.ahead != work.ahead:
            os.kill(spare.pid, signal.SIGKILL)  # it may be waiting for a seed that will never come
        elif hand_over(spare, work, channel):
            if not spare.ahead:
                os.close(spare.order)
            return spare
        for fd in (*spare.ends, spare.order):
            os.close(fd)
        spare.log.close()
        return None


def park(box: Box, stdio: Stdio, rehearse: Callable[[], None]) -> Spare:
    """Fork a runner. Raises OSError."""
    mark = box.marks.next()
    log = OrderLog()
    ends, outs = pipes()
    request, order = (end.detach() for end in socket.socketpair())
    os.set_blocking(order, False)
    pid = fork()
    if pid == 0:
        wait(stdio, log, (NULL, *outs), request, rehearse)
    for fd in (*outs, request):
        os.close(fd)
    return Spare(pid, ends, log, mark, order)


def wait(stdio: Stdio, log: OrderLog, fds: Sequence[int], request: int, rehearse: Callable[[], None]) -> NoReturn:
    """In the spare: become a runner, wait for work, do it. Never returns."""
    try:
        rehearse()
        agent = become(*fds, keep=request)
        assert agent is not None
        head, entropy = read(agent, 8), None
        if head == _BE_PINNED:
            check, entropy = runner.wait_pinned(receive_fd(agent))
            os.write(agent, check)
            head = read(agent, 8)
        work = Work(*marshal.loads(read(agent, int.from_bytes(head, "big"))))
        channel = None if work.pin is None or work.ahead else receive_fd(agent)
        if entropy is not None:
            work = work._replace(entropy=entropy)
        os.close(agent)
        os.chdir(work.cwd)
        runner.run(work, stdio, log, channel)
    finally:
        os._exit(70)


def read(agent: int, size: int) -> bytes:
    """Exactly so many bytes: a descriptor may follow, and would be lost if it were read over."""
    data = b""
    while len(data) < size:
        more = os.read(agent, size - len(data))
        if not more:
            os._exit(0)  # the agent is gone
        data += more
    return data


def receive_fd(agent: int) -> int:
    """The channel that comes with a pinned request."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, agent)
    _, ancillary, _, _ = sock.recvmsg(1, _FDS_ROOM, socket.MSG_CMSG_CLOEXEC)
    sock.detach()
    return frames.unpack_fds(ancillary)[0]


def hand_over(spare: Spare, work: Work, channel: Optional[int] = None) -> bool:
    """Give the spare its work; whether it could be. If not, the spare ends."""
    plain: List[Any] = [work.source, list(work.args), dict(work.env), work.cwd, work.entropy]
    if work.pin is not None:
        plain += [work.pin, work.ahead]
    data = marshal.dumps(plain)
    data = len(data).to_bytes(8, "big") + data
    try:
        if len(data) > _MOST_BYTES or os.write(spare.order, data) < len(data):
            return False
        if channel is not None:
            send_fd(spare.order, channel)
        return True
    except OSError:  # it was killed, or its socket holds less than usual
        return False


def send_fd(order: int, channel: int) -> None:
    """Let a descriptor follow the request."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, order)
    try:
        sock.sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, channel.to_bytes(4, sys.byteorder))])
    finally:
        sock.detach()
