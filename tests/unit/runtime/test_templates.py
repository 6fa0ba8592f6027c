"""The node's side of a template: batches go out, ends come back, and its death is told to each of its sandboxes."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hotbed.errors import TemplateFailed
from hotbed.guest.frames import unpack_fds
from hotbed.guest.template import control, isolate
from hotbed.runtime.templates import Ended, Spawn, TemplateProcess, describe_status

LIMITS = {"memory_mib": 64, "pids": 7, "disk_mib": 16, "files": 100, "open_files": 99}


class Peer:
    """The template's end, played by the test."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    async def receive(self) -> tuple[Any, list[int]]:
        """One message and its descriptors."""
        loop = asyncio.get_running_loop()
        data, ancillary, _, _ = await loop.run_in_executor(None, self.sock.recvmsg, 1 << 16, 4096)
        return json.loads(data), unpack_fds(ancillary)

    def say(self, **message: Any) -> None:
        """Send one message."""
        self.sock.send(json.dumps(message).encode())


def with_template(test: Callable[[TemplateProcess, Peer], Awaitable[None]]) -> None:
    """Run a test with a template process whose other end it plays."""

    async def run() -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs.settimeout(5)
        log_fd = os.memfd_create("log")
        os.write(log_fd, b"what it printed last")
        process = TemplateProcess(ours, log_fd)
        with theirs:
            await test(process, Peer(theirs))
        process.kill("over")

    asyncio.run(run())


def spawn(number: int, ended: list[tuple[int, Ended]]) -> Spawn:
    """An order for one sandbox with one descriptor."""
    fd = os.open("/dev/null", os.O_RDONLY)
    header = {"hostname": "x", "limits": LIMITS, "events": ["pids"], "cgroups": 0}
    return Spawn(id=number, header=header, fds=(fd,), on_end=lambda end: ended.append((number, end)))


def test_spawns_of_one_turn_travel_in_one_message() -> None:
    """And their descriptors with them, in order."""

    async def test(process: TemplateProcess, peer: Peer) -> None:
        ended: list[tuple[int, Ended]] = []
        for number in (1, 2, 3):
            process.spawn(spawn(number, ended))
        message, fds = await peer.receive()
        for fd in fds:
            os.close(fd)

        assert [order[:2] for order in message] == [[1, 1], [2, 1], [3, 1]]
        assert len(fds) == 3 and process.boxes() == 3

    with_template(test)


def test_an_order_says_how_the_sandbox_is_shut_in_and_what_its_agent_is_told() -> None:
    """The one by place, worked out here; the other by name."""

    async def test(process: TemplateProcess, peer: Peer) -> None:
        order = spawn(1, [])
        process.spawn(order)
        [[number, fds, groups, shape, box]], received = await peer.receive()
        os.close(received[0])

        assert (number, fds, groups) == (1, 1, 0)
        assert shape == json.loads(json.dumps(isolate.shape(order.header)))
        assert box == {"hostname": "x", "limits": LIMITS, "events": ["pids"]}

    with_template(test)


def test_a_box_is_killed_by_its_number() -> None:
    """In a few bytes: it is said for each."""

    async def test(process: TemplateProcess, peer: Peer) -> None:
        process.spawn(spawn(3, []))
        _, fds = await peer.receive()
        os.close(fds[0])
        process.kill_box(3)

        assert control.KILL.unpack(peer.sock.recv(64)) == (0, 3)

    with_template(test)


def test_many_spawns_are_split_below_the_kernels_limits() -> None:
    """253 descriptors and 64 KiB a message."""

    async def test(process: TemplateProcess, peer: Peer) -> None:
        ended: list[tuple[int, Ended]] = []
        for number in range(120):
            process.spawn(spawn(number, ended))
        seen = 0
        while seen < 120:
            message, fds = await peer.receive()
            assert len(fds) == len(message) <= 200
            seen += len(fds)
            for fd in fds:
                os.close(fd)

    with_template(test)


def test_end_of_a_sandbox_is_told_to_its_owner_only() -> None:
    """With what it used."""

    async def test(process: TemplateProcess, peer: Peer) -> None:
        ended: list[tuple[int, Ended]] = []
        process.spawn(spawn(1, ended))
        process.spawn(spawn(2, ended))
        _, fds = await peer.receive()
        for fd in fds:
            os.close(fd)
        peer.sock.send(control.EXIT.pack(0, 2, 9, 10, 7))
        while not ended:
            await asyncio.sleep(0.001)

        assert ended == [(2, Ended(status=9, reason="killed by signal 9", maxrss_kib=10, cpu_us=7))]

    with_template(test)


def test_failed_fork_ends_its_sandbox() -> None:
    """There was never a process, so there is no status."""

    async def test(process: TemplateProcess, peer: Peer) -> None:
        ended: list[tuple[int, Ended]] = []
        process.spawn(spawn(1, ended))
        _, fds = await peer.receive()
        os.close(fds[0])
        peer.say(op="failed", id=1, message="fork: no memory")
        while not ended:
            await asyncio.sleep(0.001)

        assert ended[0][1] == Ended(status=None, reason="fork: no memory")

    with_template(test)


def test_death_of_the_template_ends_every_sandbox_of_it() -> None:
    """The kernel has killed them; spawns that come later end at once."""

    async def test(process: TemplateProcess, peer: Peer) -> None:
        ended: list[tuple[int, Ended]] = []
        process.spawn(spawn(1, ended))
        await asyncio.sleep(0)
        peer.sock.close()
        await asyncio.wait_for(asyncio.shield(process.gone), 5)
        process.spawn(spawn(2, ended))
        while len(ended) < 2:
            await asyncio.sleep(0.001)

        assert not process.is_alive()
        assert all(end.status is None and "template has ended" in end.reason for _, end in ended)

    with_template(test)


def test_template_that_cannot_be_warmed_says_why() -> None:
    """The tail of its traceback."""

    async def test(process: TemplateProcess, peer: Peer) -> None:
        peer.say(op="broken", message="Traceback ...\nImportError: no")

        with pytest.raises(TemplateFailed, match="ImportError: no"):
            await process.ready(5)

    with_template(test)


def test_template_that_dies_early_shows_what_it_printed() -> None:
    """A missing library speaks to stderr only."""

    async def test(process: TemplateProcess, peer: Peer) -> None:
        peer.sock.close()

        with pytest.raises(TemplateFailed, match="what it printed last"):
            await process.ready(5)

    with_template(test)


def test_template_that_is_never_ready_is_ended() -> None:
    """A preload may hang."""

    async def test(process: TemplateProcess, peer: Peer) -> None:
        with pytest.raises(TemplateFailed, match="not ready"):
            await process.ready(0.01)

        assert not process.is_alive()

    with_template(test)


@pytest.mark.parametrize(("status", "words"), [(9, "killed by signal 9"), (0x0300, "exited with 3")])
def test_status_in_words(status: int, words: str) -> None:
    """As wait(2) gives it."""
    assert describe_status(status) == words
