"""The node's handle: what it learns, and when it may believe a result."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable

import pytest

from hotbed.errors import SandboxFailed
from hotbed.guest import kernel
from hotbed.guest.agent.pinning import Pinning
from hotbed.runtime.replay import client as client_module
from hotbed.runtime.replay import supervisor
from hotbed.runtime.replay.client import SupervisorClient, Ticket
from hotbed.runtime.replay.request import PinRequest

SEED = bytes(range(32))


def drive(test: Callable[[SupervisorClient, int], Awaitable[None]]) -> None:
    """Run a coroutine with a client of a supervisor of its own."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        supervisor.run(theirs)
    theirs.close()

    async def main() -> None:
        client = SupervisorClient(ours, asyncio.get_running_loop())
        try:
            await asyncio.wait_for(test(client, pid), 10)
        finally:
            client.close()

    asyncio.run(main())
    os.waitpid(pid, 0)


def pinned_child(client: SupervisorClient, ticket: Ticket, go: int | None = None) -> int:
    """A child that is pinned, waits if told to, and ends."""
    pid = os.fork()
    if pid == 0:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        os.close(ticket.take_end())
        Pinning().enter(socket.socket(fileno=ticket.channel), "rng")
        if go is not None:
            os.read(go, 1)
        os._exit(0)
    client.announce(ticket)
    return pid


def test_a_rollout_that_has_ended_is_verified() -> None:
    """The usual case: the supervisor tells of the end before anybody asks."""

    async def test(client: SupervisorClient, _pid: int) -> None:
        ticket = client.begin(PinRequest(seed=SEED), pytest.fail)
        child = pinned_child(client, ticket)
        os.waitpid(child, 0)
        report = await client.report(ticket)
        client.drop(ticket)

        assert report.ack == "verified"
        assert "getrandom" in report.pinned

    drive(test)


def test_a_rollout_that_goes_on_can_be_asked_about() -> None:
    """A program that serves for hours is verified from its first moment."""

    async def test(client: SupervisorClient, _pid: int) -> None:
        go, start = os.pipe()
        ticket = client.begin(PinRequest(seed=SEED), pytest.fail)
        child = pinned_child(client, ticket, go)
        while (report := await client.report(ticket)).ack == "no-ack":
            await asyncio.sleep(0.001)
        client.drop(ticket)
        os.write(start, b"!")
        os.waitpid(child, 0)

        assert report.ack == "verified"

    drive(test)


def test_a_lost_supervisor_fails_every_rollout_and_says_so_at_once() -> None:
    """A result that comes after it must not be believed, however good it looks."""
    told: list[str] = []

    async def test(client: SupervisorClient, pid: int) -> None:
        go, start = os.pipe()
        ticket = client.begin(PinRequest(seed=SEED), told.append)
        child = pinned_child(client, ticket, go)
        while (await client.report(ticket)).ack == "no-ack":
            await asyncio.sleep(0.001)
        os.kill(pid, signal.SIGKILL)
        os.write(start, b"!")
        os.waitpid(child, 0)

        with pytest.raises(SandboxFailed, match="not kept pinned|supervisor is gone"):
            await client.report(ticket)
        with pytest.raises(SandboxFailed):
            client.begin(PinRequest(seed=SEED), pytest.fail)
        assert client.lost

    drive(test)
    assert len(told) == 1


def test_who_asks_after_the_loss_does_not_wait_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may end, of the loss or not, before the node asks how it went."""
    monkeypatch.setattr(client_module, "_PATIENCE_S", 3600.0)
    told: list[str] = []

    async def test(client: SupervisorClient, pid: int) -> None:
        ticket = client.begin(PinRequest(seed=SEED), told.append)
        client.announce(ticket)
        os.kill(pid, signal.SIGKILL)
        while not client.lost:
            await asyncio.sleep(0.001)
        with pytest.raises(SandboxFailed, match="not kept pinned"):
            await client.report(ticket)

    drive(test)
    assert len(told) == 1


def test_a_supervisor_that_does_not_answer_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it for ever."""
    monkeypatch.setattr(client_module, "_PATIENCE_S", 0.1)
    told: list[str] = []

    async def test(client: SupervisorClient, pid: int) -> None:
        ticket = client.begin(PinRequest(seed=SEED), told.append)
        client.announce(ticket)
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(SandboxFailed, match="no answer"):
                await client.report(ticket)
        finally:
            os.kill(pid, signal.SIGCONT)

    drive(test)
    assert len(told) == 1


def test_a_failed_pin_is_told_to_who_began_it() -> None:
    """The sandbox is killed for it."""
    told: list[str] = []

    async def test(client: SupervisorClient, _pid: int) -> None:
        ticket = client.begin(PinRequest(seed=SEED), told.append)
        with socket.socket(fileno=os.dup(ticket.channel)) as channel:
            channel.send(b"nonsense")
        client.announce(ticket)
        with pytest.raises(SandboxFailed, match="before it was pinned"):
            while True:
                await client.report(ticket)
                await asyncio.sleep(0.001)

    drive(test)
    assert len(told) == 1


def test_a_pin_that_nobody_used_is_not_acknowledged() -> None:
    """Its exec never started."""

    async def test(client: SupervisorClient, _pid: int) -> None:
        ticket = client.begin(PinRequest(seed=SEED), pytest.fail)
        client.announce(ticket)

        assert (await client.report(ticket)).ack == "no-ack"
        client.drop(ticket)

    drive(test)
