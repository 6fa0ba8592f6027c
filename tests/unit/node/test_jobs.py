"""Jobs keep the end of what they print, by offset, in bounded memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hotbed.errors import AtCapacity, InvalidRequest, NotFound
from hotbed.node import jobs
from hotbed.node.jobs import Job, Jobs, OutputLog
from hotbed.node.nursery import Nursery
from hotbed.wire.execs import ExecRequest, ExecResponse

ANSWER = ExecResponse(id="x", status="ok", ok=True, exit_code=0)
REQUEST = ExecRequest(command="true")


def test_a_log_is_read_from_any_offset() -> None:
    """Also from the middle of what came at once."""
    log = OutputLog()
    log.add(1, b"abc")
    log.add(2, b"def")

    assert log.since(0) == [(1, b"abc"), (2, b"def")]
    assert log.since(4) == [(2, b"ef")]
    assert log.since(6) == log.since(100) == []


def test_a_log_keeps_the_end_and_knows_what_it_lost() -> None:
    """However much was printed at once."""
    log = OutputLog(keep=10)
    log.add(1, b"0123456789")
    log.add(1, b"abc")
    assert (log.start, log.total, log.since(0)) == (10, 13, [(1, b"abc")])
    log.add(2, b"x" * 1000)

    assert (log.total, log.start) == (1013, 1003)
    assert log.since(0) == [(2, b"x" * 10)]


class Script:
    """A run that goes on when it is told."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.go = asyncio.Event()
        self.failure = failure

    async def __call__(self, request: ExecRequest, on_output: Any, on_start: Any) -> ExecResponse:
        """Print, wait, end."""
        self.request = request
        await on_output(1, b"begun\n")
        await self.go.wait()
        if self.failure is not None:
            raise self.failure
        return ANSWER


def test_waiting_for_news_and_for_the_end() -> None:
    """Each as long as it is worth, and no longer than asked."""

    async def run() -> None:
        nursery, all_jobs, script = Nursery(), Jobs(), Script()
        job = all_jobs.start(script, REQUEST, nursery)
        await job.wait_news(0, 5)
        assert job.output(0).events[0].data == "begun\n" and job.output(0).next == 6
        await job.wait_news(6, 0.01)
        await job.wait_end(0.01)
        assert job.row().state == "running"
        script.go.set()
        await job.wait_end(5)

        assert (job.row().state, job.row().result) == ("ended", ANSWER)
        assert script.request.output_bytes == jobs.RESULT_BYTES
        assert (job.output(100).next, job.output(3).dropped) == (100, 0)

    asyncio.run(run())


def test_what_kept_it_from_running_is_told() -> None:
    """A failure of ours is no result."""

    async def run() -> None:
        nursery, script = Nursery(), Script(InvalidRequest("no"))
        job = Jobs().start(script, REQUEST, nursery)
        script.go.set()
        await job.wait_end(5)

        assert job.row().state == "failed"
        assert (job.row().error or {})["code"] == "invalid_request"

    asyncio.run(run())


def test_a_job_that_is_cancelled_is_over() -> None:
    """Whoever waits for it must not wait for ever."""

    async def run() -> None:
        nursery = Nursery()
        job = Jobs().start(Script(), REQUEST, nursery)
        await job.wait_news(0, 5)
        await nursery.cancel_all()

        assert job.row().state == "failed"

    asyncio.run(run())


def test_those_that_have_ended_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Oldest first; when all are running, there is none."""
    monkeypatch.setattr(jobs, "JOBS_LIMIT", 2)

    async def run() -> None:
        nursery, all_jobs, over, on = Nursery(), Jobs(), Script(), Script()
        over.go.set()
        first = all_jobs.start(over, REQUEST, nursery)
        all_jobs.start(on, REQUEST, nursery)
        await first.wait_end(5)
        third = all_jobs.start(on, REQUEST, nursery)
        with pytest.raises(NotFound):
            all_jobs.get(first.id)
        with pytest.raises(AtCapacity):
            all_jobs.start(on, REQUEST, nursery)
        assert all_jobs.get(third.id) is third and len(all_jobs) == 2
        all_jobs.forget(third)
        all_jobs.forget(third)
        on.go.set()
        await nursery.wait_empty(timeout_s=5)

    asyncio.run(run())


def test_killing_waits_for_the_end() -> None:
    """Also of one that has not begun."""
    killed: list[str] = []

    class Running:
        def __init__(self, job: Job) -> None:
            self.job = job

        def kill(self) -> None:
            killed.append("killed")
            self.job.result = ANSWER
            self.job._tell()

    async def run() -> None:
        job = Job()
        job.running = Running(job)  # type: ignore[assignment]  # enough of one
        await job.end()
        await job.end()

    asyncio.run(run())
    assert killed == ["killed"]
