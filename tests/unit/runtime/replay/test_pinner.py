"""One supervisor for a backend: made when needed, and made again when lost."""

from __future__ import annotations

import asyncio
import os
import signal
import socket

import pytest

from hotbed.errors import SandboxFailed
from hotbed.runtime.replay import supervisor
from hotbed.runtime.replay.pinner import Pinner
from hotbed.runtime.replay.request import PinRequest

REQUEST = PinRequest(seed=bytes(range(32)))


class Starter:
    """Starts supervisors as a launcher would, and remembers them."""

    def __init__(self) -> None:
        self.pids: list[int] = []

    async def __call__(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            ours.close()
            supervisor.run(theirs)
        theirs.close()
        self.pids.append(pid)
        return ours


def test_the_supervisor_is_started_once_for_all() -> None:
    """Also when the first two rollouts come at the same time."""
    starter = Starter()

    async def main() -> None:
        pinner = Pinner(starter)
        for pinned in await asyncio.gather(*(pinner.begin(REQUEST, pytest.fail) for _ in range(3))):
            with pinned:
                pinned.sent()
        pinner.close()
        pinner.close()

    asyncio.run(main())
    os.waitpid(starter.pids[0], 0)

    assert len(starter.pids) == 1


def test_a_lost_supervisor_is_replaced_for_those_who_come_after() -> None:
    """Those whom it served have failed; nobody else does."""
    starter, told = Starter(), list[str]()

    async def main() -> None:
        pinner = Pinner(starter)
        with await pinner.begin(REQUEST, told.append) as lost:
            lost.sent()
            os.kill(starter.pids[0], signal.SIGKILL)
            with pytest.raises(SandboxFailed):
                await lost.report()
        with await pinner.begin(REQUEST, pytest.fail) as found:
            found.sent()
            assert (await found.report()).ack == "no-ack"
        pinner.close()

    asyncio.run(main())
    for pid in starter.pids:
        os.waitpid(pid, 0)

    assert (len(starter.pids), len(told)) == (2, 1)
