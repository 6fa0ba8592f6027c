"""A sandbox as the node drives it, with an agent that the test plays: good, slow, lying, dying."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import socket
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from hotbed.errors import FileMissing, ProtocolError, SandboxFailed, SandboxGone
from hotbed.guest import frames
from hotbed.runtime.base import ExecRequest, Limits
from hotbed.runtime.sandboxes import ForkBox
from hotbed.runtime.templates import Ended

RESULT = {"op": "result", "status": "ok", "exit_code": 0, "stdout": 0, "stderr": 0}
CODE = ExecRequest(kind="code", program=b"pass", timeout_s=5.0)


class Agent:
    """The other end, and the template that it came from."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(5)
        self.connection = frames.Connection(sock)
        self.killed: list[int] = []

    def kill_box(self, box_id: int) -> None:
        """As a template would be asked to."""
        self.killed.append(box_id)

    def wire(self, box_id: int, ports: Sequence[int], channel: int) -> None:
        """No sandbox here is given a network."""
        raise AssertionError

    async def receive(self) -> tuple[frames.Header, bytes, list[int]]:
        """The next request."""
        return await asyncio.get_running_loop().run_in_executor(None, self.connection.receive)

    async def answer(self, header: dict[str, Any], body: bytes = b"", fds: tuple[int, ...] = ()) -> frames.Header:
        """Answer the next request; what it was."""
        asked, _, came = await self.receive()
        for fd in came:
            os.close(fd)
        self.connection.send({**header, "id": asked.get("id")}, body, fds)
        return asked


def boxed(test: Callable[[ForkBox, Agent], Awaitable[None]]) -> None:
    """Run a test with a sandbox and its agent."""

    async def run() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            agent = Agent(theirs)
            box = ForkBox(5, ours, agent, limits=Limits(output_bytes=1000), slot=None)
            await test(box, agent)
            box.on_process_end(Ended(status=9, reason="over"))

    asyncio.run(run())


def test_one_that_has_ended_is_freed_without_a_collection() -> None:
    """A collection walks whatever else is young: with 128 clients it took a tenth of the node's time."""

    async def run() -> weakref.ref[ForkBox]:
        ours, theirs = socket.socketpair()
        with theirs:
            agent = Agent(theirs)
            box = ForkBox(5, ours, agent, limits=Limits(), slot=None)
            _, told = await asyncio.gather(box.exec(CODE), agent.answer(RESULT))
            assert told["op"] == "exec"
            box.on_process_end(Ended(status=9, reason="over"))
            return weakref.ref(box)

    gc.disable()
    try:
        assert asyncio.run(run())() is None
    finally:
        gc.enable()


def test_exec_is_answered_by_its_id() -> None:
    """Two at once do not mix."""

    async def test(box: ForkBox, agent: Agent) -> None:
        both = asyncio.gather(box.exec(CODE), box.exec(CODE))
        one, two = (await agent.receive())[0], (await agent.receive())[0]
        for asked, text in ((two, b"second"), (one, b"first")):
            done = {**RESULT, "id": asked["id"], "stdout": len(text), "order": [[1, len(text)]]}
            agent.connection.send(done, text)

        assert [outcome.stdout for outcome in await both] == [b"first", b"second"]

    boxed(test)


def test_error_answer_is_an_exception_and_the_sandbox_lives() -> None:
    """A missing file is nobody's fault."""

    async def test(box: ForkBox, agent: Agent) -> None:
        asked = asyncio.gather(box.open("/work/x", "r"), return_exceptions=True)
        await agent.answer({"op": "error", "code": "not_found", "message": "no file"})

        assert isinstance((await asked)[0], FileMissing)
        assert box.is_alive() and agent.killed == []

    boxed(test)


def test_lie_costs_the_liar_its_sandbox() -> None:
    """Killed at once; whoever waits gets a typed error."""

    async def test(box: ForkBox, agent: Agent) -> None:
        asked = asyncio.gather(box.exec(CODE), return_exceptions=True)
        await agent.answer({**RESULT, "status": "splendid"})

        assert isinstance((await asked)[0], ProtocolError)
        assert not box.is_alive() and agent.killed == [5]
        with pytest.raises(ProtocolError):
            await box.exec(CODE)

    boxed(test)


class Slot:
    """A cgroup of which nothing can be asked once it was given back."""

    def __init__(self, out: bool) -> None:
        self.out, self.open = out, True

    def was_out_of_memory(self) -> bool:
        """As it was made."""
        if not self.open:
            raise OSError(errno.EBADF, "closed, or somebody else's")
        return self.out


@pytest.mark.parametrize("out", [True, False])
def test_how_it_ended_is_not_asked_of_a_cgroup_that_was_given_back(out: bool) -> None:
    """The whole template was killed, and its cgroups were closed, before who waited for the program was told."""

    async def run() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            slot: Any = Slot(out)
            box = ForkBox(5, ours, Agent(theirs), limits=Limits(output_bytes=1000), slot=slot)
            asked = asyncio.ensure_future(box.exec(CODE))
            await asyncio.sleep(0)
            box.on_process_end(Ended(status=9, reason="the template ended"))
            slot.open = False
            if out:
                assert (await asked).status == "oom"
            else:
                with pytest.raises(SandboxGone):
                    await asked

    asyncio.run(run())


def test_who_is_killed_is_not_woken_to_end_by_itself() -> None:
    """Its socket is closed when it is gone; one that was never born, and is unknown to its template, hears of it."""

    async def test(box: ForkBox, agent: Agent) -> None:
        ready = asyncio.ensure_future(box.ready())
        await agent.answer({"op": "hello"})
        await ready
        killing = asyncio.ensure_future(box.kill())
        await asyncio.sleep(0)

        assert agent.killed == [5] and not box.is_alive()
        agent.connection.sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            agent.connection.sock.recv(1)
        box.on_process_end(Ended(status=9, reason="killed"))
        await killing
        assert agent.connection.sock.recv(1) == b""

    async def unborn(box: ForkBox, agent: Agent) -> None:
        killing = asyncio.ensure_future(box.kill())
        await asyncio.sleep(0)
        assert agent.connection.sock.recv(1) == b""
        box.on_process_end(Ended(status=9, reason="over"))
        await killing

    boxed(test)
    boxed(unborn)


def test_silent_agent_is_given_up_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own limit, and then our patience."""
    monkeypatch.setattr("hotbed.runtime.execs.patience_s", lambda request: 0.05)

    async def test(box: ForkBox, agent: Agent) -> None:
        with pytest.raises(SandboxFailed, match="no answer"):
            await box.exec(CODE)

        assert agent.killed == [5]

    boxed(test)


def test_end_of_the_agent_ends_what_waits() -> None:
    """At once, and everything after it."""

    async def test(box: ForkBox, agent: Agent) -> None:
        asked = asyncio.gather(box.exec(CODE), return_exceptions=True)
        await agent.receive()
        agent.connection.close()

        assert isinstance((await asked)[0], SandboxGone)
        with pytest.raises(SandboxGone):
            await box.ready()

    boxed(test)


def test_failed_isolation_is_told_as_such() -> None:
    """With the stage, from before any agent ran."""

    async def test(box: ForkBox, agent: Agent) -> None:
        agent.connection.send({"op": "error", "code": "isolation_failed", "message": "tmpfs: no memory"})

        with pytest.raises(SandboxFailed, match="tmpfs: no memory"):
            await box.ready()

    boxed(test)


def test_ready_is_told_by_hello_or_by_birth() -> None:
    """A spare says it by itself; `fork_time_ms` comes with it."""

    async def test(box: ForkBox, agent: Agent) -> None:
        waiting = asyncio.gather(box.ready())
        assert (await agent.receive())[0]["op"] == "hello"
        agent.connection.send({"op": "hello", "ready_ns": box.asked_ns + 2_000_000})
        await waiting

        assert box.is_born() and box.fork_time_ms == 2.0
        await box.ready()

    boxed(test)


def test_streamed_output_arrives_in_order_before_the_result() -> None:
    """However slow the one who watches is."""
    seen: list[tuple[int, bytes]] = []

    async def collect(stream: int, data: bytes) -> None:
        await asyncio.sleep(0)
        seen.append((stream, data))

    async def test(box: ForkBox, agent: Agent) -> None:
        asked = asyncio.gather(box.exec(CODE, collect))
        name = (await agent.receive())[0]["id"]
        for number in range(200):
            agent.connection.send({"op": "output", "id": name, "fd": 1 + number % 2}, b"%d" % number)
            await asyncio.sleep(0)
        agent.connection.send({**RESULT, "id": name})
        await asked

        assert seen == [(1 + number % 2, b"%d" % number) for number in range(200)]

    boxed(test)


def test_kill_returns_when_its_process_is_reaped() -> None:
    """And again, at once."""

    async def test(box: ForkBox, agent: Agent) -> None:
        killing = asyncio.gather(box.kill())
        await asyncio.sleep(0.01)
        assert not killing.done() and agent.killed == [5]

        box.on_process_end(Ended(status=9, reason="killed by signal 9", cpu_us=7))
        await killing
        await box.kill()

        assert box.usage is not None and box.usage.cpu_us == 7
        assert await box.wait_gone() == "killed by signal 9"

    boxed(test)
