"""The node's handle: what it learns, and when it may believe a result."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable

import pytest

from hotbed.errors import NotSupported, SandboxFailed
from hotbed.guest import kernel
from hotbed.guest.agent.pinning import NotPinned, Pinning
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


def waiting_child(client: SupervisorClient, ticket: Ticket) -> tuple[int, int]:
    """A child that is pinned ahead, draws, and says what; and where it says it."""
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        os.close(ticket.take_end())
        try:
            os.write(sink, Pinning().wait(socket.socket(fileno=ticket.channel))[0].hex().encode())
        except NotPinned:
            os.write(sink, b"not pinned")
        os._exit(0)
    os.close(sink)
    client.announce(ticket)
    return pid, source


def test_what_is_pinned_ahead_waits_for_its_seed_and_is_judged_by_what_it_drew() -> None:
    """Without a question to the supervisor. Other bytes are a failure, and none is no verification."""

    async def test(client: SupervisorClient, _pid: int) -> None:
        ticket = client.begin(None, pytest.fail)
        child, source = waiting_child(client, ticket)
        await client.put_on(ticket)
        os.set_blocking(source, False)
        with pytest.raises(BlockingIOError):
            os.read(source, 100)
        client.seed(ticket, PinRequest(seed=SEED))
        os.waitpid(child, 0)
        drawn = os.read(source, 100)
        os.close(source)

        report = client.compared(ticket, drawn)
        assert report.ack == "verified" and {"getrandom", "aslr"} <= set(report.pinned)
        assert client.compared(ticket, b"").ack == "no-ack"
        with pytest.raises(SandboxFailed, match="other bytes"):
            client.compared(ticket, drawn[::-1])
        client.drop(ticket)

    drive(test)


def test_what_was_told_before_anybody_waited_is_known() -> None:
    """The agent's answer may be read later than the supervisor's word: it was waited for 20 s, and then given up."""

    async def test(client: SupervisorClient, _pid: int) -> None:
        ticket = client.begin(None, pytest.fail)
        child, source = waiting_child(client, ticket)
        while ticket.ahead is None:
            await asyncio.sleep(0.001)
        await asyncio.wait_for(client.put_on(ticket), 1)
        client.drop(ticket)
        os.waitpid(child, 0)
        os.close(source)

    drive(test)


def test_what_is_pinned_ahead_is_not_believed_once_the_supervisor_has_gone() -> None:
    """Also before the loop has heard of its end."""
    told: list[str] = []

    async def test(client: SupervisorClient, pid: int) -> None:
        ticket = client.begin(None, told.append)
        child, source = waiting_child(client, ticket)
        await client.put_on(ticket)
        client.seed(ticket, PinRequest(seed=SEED))
        os.waitpid(child, 0)
        drawn = os.read(source, 100)
        os.close(source)
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

        with pytest.raises(SandboxFailed, match="not kept pinned"):
            client.compared(ticket, drawn)

    drive(test)
    assert len(told) == 1


def test_a_pin_ahead_that_nobody_seeds_lets_go_of_who_waits() -> None:
    """Its draw fails: it must never run on with the kernel's bytes."""

    async def test(client: SupervisorClient, _pid: int) -> None:
        ticket = client.begin(None, pytest.fail)
        child, source = waiting_child(client, ticket)
        await client.put_on(ticket)
        client.drop(ticket)
        os.waitpid(child, 0)
        assert os.read(source, 100) == b"not pinned"
        os.close(source)

    drive(test)


def test_where_no_process_is_pinned_ahead_nobody_waits_for_long() -> None:
    """It ended before it was."""

    async def test(client: SupervisorClient, _pid: int) -> None:
        ticket = client.begin(None, pytest.fail)
        client.announce(ticket)
        with pytest.raises(NotSupported, match="ahead"):
            await client.put_on(ticket)
        client.drop(ticket)

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
        channel = os.dup(ticket.channel)  # as the sandbox has it: the pin has not ended
        client.announce(ticket)
        os.kill(pid, signal.SIGKILL)
        while not client.lost:
            await asyncio.sleep(0.001)
        os.close(channel)
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
