"""A pool's workers on the node: each a sandbox that runs the environment server, with a lane to lease.

A worker is *waiting* while its lane lies here, *leased* once a client has it, and *ended* for good: a seat of the pool
gets its next worker as a new one. The node reads nothing that passes on the lane. When the server's process ends, the
sandbox is ended too, so that a child it left behind cannot hold the lane open.

How a worker ended is told once, by the first that is true: what the environment server's process was seen to do; the
sandbox's own end (its memory limit reaches the agent too); or that we killed it.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from hotbed.errors import Error, SandboxGone
from hotbed.pools import bundle
from hotbed.runtime.base import Box, Program, ProgramEnd, Solo

_CONFIG = {"path": bundle.ENTRY}
DYING_S = 2.0  # for a process whose lane is closed to be seen to end, with what it printed
KILLED_S = 1.0  # for one that was given up to be killed and its output read

State = Literal["waiting", "leased", "ended"]


class Held(Protocol):
    """A sandbox with its turn and its lease."""

    box: Box

    def discard(self, reason: str) -> None:
        """Start ending it. Returns at once; idempotent."""
        ...

    async def end(self, reason: str) -> None:
        """End it and wait until nothing is left. Idempotent."""
        ...


class Cancellable(Protocol):
    """A program that can be killed without its sandbox."""

    async def cancel(self) -> None:
        """Kill it and what it started."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a worker ended. `lost` when it was not its own doing."""

    status: str
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    stdout: bytes = b""
    stderr: bytes = b""


class Worker:
    """One sandbox with one environment, from its fork to its end."""

    def __init__(self, index: int, generation: int, held: Held, lane: socket.socket, program: Program) -> None:
        self.id = f"wk_{secrets.token_hex(8)}"
        self.index = index
        self.generation = generation
        self.held = held
        self.born_s = time.monotonic()
        self.state: State = "waiting"
        self._lane: socket.socket | None = lane
        self._program = program
        self._end: asyncio.Future[End] = asyncio.get_running_loop().create_future()

    @property
    def program(self) -> Program:
        """Its environment server."""
        return self._program

    @property
    def is_alive(self) -> bool:
        """Whether its environment server runs, as far as is known."""
        return not self._end.done()

    def lease(self) -> socket.socket:
        """Its lane, once. The caller closes it."""
        lane, self._lane, self.state = self._lane, None, "leased"
        assert lane is not None, "a lane is leased once"
        return lane

    async def watch(self) -> None:
        """Wait for the environment server's end, note it, and end the sandbox."""
        try:
            end = _own_end(await self._program.wait())
        except SandboxGone as gone:
            end = End(status="lost", reason=gone.message)
        except Error as error:  # the sandbox answered nonsense, or was never born
            end = End(status="lost", reason=error.message)
        self._note(end)
        self.discard("its environment ended")

    async def end(self, trouble: str) -> End:
        """End it; how it ended. One whose lane was closed gets a moment to do so by itself."""
        if trouble == "closed" and await self._has_ended_within(DYING_S):
            return self._end.result()
        if not self._end.done() and (cancel := getattr(self._program, "cancel", None)) is not None:
            await cancel()
            await self._has_ended_within(KILLED_S)
        self.discard("its client gave it up")
        end = self._end.result() if self._end.done() else End(status="lost", reason="it was killed")
        killed = End(status="exit", reason="it was killed", stdout=end.stdout, stderr=end.stderr)
        return killed if trouble == "closed" and end.status == "signal" else end

    async def output(self) -> tuple[bytes, bytes]:
        """What its env.py has printed, to stdout and stderr."""
        if not self._end.done() and (look := getattr(self._program, "output", None)) is not None:
            stdout, stderr = await look()
            return bytes(stdout), bytes(stderr)
        end = self._end.result() if self._end.done() else End(status="lost")
        return end.stdout, end.stderr

    def discard(self, reason: str) -> None:
        """Let go of the lane and start ending the sandbox. Idempotent."""
        self._note(End(status="lost", reason=reason))
        self.state = "ended"
        lane, self._lane = self._lane, None
        if lane is not None:
            lane.close()
        self.held.discard(reason)

    async def _has_ended_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(asyncio.shield(self._end), seconds)
        except asyncio.TimeoutError:
            return False
        return True

    def _note(self, end: End) -> None:
        if not self._end.done():
            self._end.set_result(end)


def _own_end(end: ProgramEnd) -> End:
    """A server that ends by itself has ended its environment, even with exit code 0."""
    status = "exit" if end.status == "ok" else end.status
    return End(status=status, exit_code=end.exit_code, signal=end.signal, stdout=end.stdout, stderr=end.stderr)


async def start(index: int, generation: int, fork: Callable[[], Awaitable[Held]]) -> Worker:
    """A new worker, its environment server starting. Raises what the fork raises, leaving nothing."""
    held = await fork()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        program = await held.box.start(bundle.PROGRAM, _CONFIG, theirs)
    except BaseException:
        ours.close()
        held.discard("its environment server could not be started")
        raise
    return Worker(index, generation, held, ours, program)


async def start_alone(index: int, generation: int, fork: Callable[[Solo], Awaitable[Held]]) -> Worker:
    """The same with the environment server as its sandbox's only process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        held = await fork(Solo(program=bundle.PROGRAM, config=_CONFIG, channel=theirs))
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()  # unless it has gone with the fork already
    program: Any = held.box  # the two are one
    return Worker(index, generation, held, ours, program)
