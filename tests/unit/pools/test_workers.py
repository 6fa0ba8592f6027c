"""How a worker ended is told once, by the first that is true."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import SandboxFailed, SandboxGone
from hotbed.pools import workers
from hotbed.pools.workers import Worker
from hotbed.runtime.base import Box, ProgramEnd
from tests.support.env_backend import EnvBackend, EnvBox


class FakeProgram:
    """Ends when told to."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[ProgramEnd] = asyncio.get_running_loop().create_future()
        self.cancelled = False

    async def wait(self) -> ProgramEnd:
        """Its end."""
        return await asyncio.shield(self.ended)

    async def cancel(self) -> None:
        """Dies of it, having printed something."""
        self.cancelled = True
        if not self.ended.done():
            self.ended.set_result(ProgramEnd(status="signal", exit_code=None, signal=9, stderr=b"said"))


class FakeHeld:
    """Notes why it was discarded."""

    box: Box

    def __init__(self, program: FakeProgram | None = None) -> None:
        self.box = FakeBox(Path("/nowhere"), program)
        self.reasons: list[str] = []

    def discard(self, reason: str) -> None:
        """Note it."""
        self.reasons.append(reason)

    async def end(self, reason: str) -> None:
        """Note it."""
        self.discard(reason)


class FakeBox(EnvBox):
    """Starts a fake program, or none."""

    def __init__(self, env: Path, program: FakeProgram | None) -> None:
        super().__init__(1, env, EnvBackend())
        self.fake = program

    async def start(
        self, program: str, config: Mapping[str, Any], channel: socket.socket, *, env: Mapping[str, str] | None = None
    ) -> Any:
        """Take the channel."""
        channel.close()
        if self.fake is None:
            raise SandboxFailed("not born")
        return self.fake


async def made() -> tuple[Worker, FakeProgram, FakeHeld]:
    """A worker and what is behind it."""
    program = FakeProgram()
    held = FakeHeld(program)

    async def fork() -> FakeHeld:
        return held

    worker = await workers.start(3, 5, fork)
    return worker, program, held


def test_a_process_seen_to_end_tells_how() -> None:
    """And its sandbox is ended with it."""

    async def main() -> None:
        worker, program, held = await made()
        watching = asyncio.ensure_future(worker.watch())
        program.ended.set_result(ProgramEnd(status="exit", exit_code=3, stderr=b"trace"))
        end = await worker.end("closed")
        await watching

        assert (end.status, end.exit_code, end.stderr) == ("exit", 3, b"trace")
        assert held.reasons
        assert not worker.is_alive

    asyncio.run(main())


@pytest.mark.parametrize("trouble", ["timeout", "protocol"])
def test_one_that_was_given_up_is_killed_at_once_and_its_output_kept(trouble: str) -> None:
    """Nobody waits for it to end by itself."""

    async def main() -> None:
        worker, program, _ = await made()
        watching = asyncio.ensure_future(worker.watch())
        end = await worker.end(trouble)
        await watching

        assert program.cancelled
        assert end.stderr == b"said"

    asyncio.run(main())


def test_one_that_closed_its_lane_and_lives_on_did_not_die_of_our_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every such worker would look as if the kernel had killed it."""
    monkeypatch.setattr(workers, "DYING_S", 0.01)

    async def main() -> None:
        worker, _, _ = await made()
        watching = asyncio.ensure_future(worker.watch())
        end = await worker.end("closed")
        await watching

        assert (end.status, end.signal, end.exit_code, end.stderr) == ("exit", None, None, b"said")

    asyncio.run(main())


def test_a_sandbox_that_went_away_is_no_fault_of_the_environment() -> None:
    """The template was killed, or the node is going."""

    async def main() -> None:
        worker, program, _ = await made()
        watching = asyncio.ensure_future(worker.watch())
        program.ended.set_exception(SandboxGone("the template ended"))
        end = await worker.end("closed")
        await watching

        assert (end.status, end.reason) == ("lost", "the template ended")

    asyncio.run(main())


def test_a_lane_is_leased_once_and_closed_with_its_worker() -> None:
    """Nobody else can speak on it."""

    async def main() -> None:
        worker, program, _ = await made()
        lane = worker.lease()
        with pytest.raises(AssertionError):
            worker.lease()
        lane.close()
        worker.discard("over")
        worker.discard("over")

        assert worker.state == "ended"
        program.ended.cancel()

    asyncio.run(main())


def test_a_server_that_cannot_be_started_takes_its_sandbox_along() -> None:
    """Nothing is left of it."""

    async def main() -> None:
        held = FakeHeld()

        async def fork() -> FakeHeld:
            return held

        with pytest.raises(SandboxFailed, match="not born"):
            await workers.start(0, 1, fork)
        assert held.reasons == ["its environment server could not be started"]

    asyncio.run(main())
