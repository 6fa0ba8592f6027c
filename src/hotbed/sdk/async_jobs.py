"""A job: an exec in the background of a sandbox, for asyncio. The twin of `jobs.py`."""

from __future__ import annotations

from time import monotonic

from hotbed.errors import DeadlineExceeded, Error, NotFound
from hotbed.sdk import job_calls
from hotbed.sdk.results import Result
from hotbed.sdk.transport import Link
from hotbed.wire.jobs import JobOutput, JobRow

WAIT_S = 30.0


class AsyncJob:
    """One job, from `AsyncSandbox.start_job` or `jobs`; every method is a coroutine. `id` is the node's name for it."""

    def __init__(self, link: Link, sandbox_id: str, job_id: str) -> None:
        self._link = link
        self._sandbox_id = sandbox_id
        self.id = job_id

    async def poll(self) -> JobRow:
        """How it stands: `state` is running, ended or failed, and `result` is there once it has ended."""
        return await self._link.asend(job_calls.get_job(self._sandbox_id, self.id))

    async def output(self, since: int = 0, *, wait_seconds: float = 0.0) -> JobOutput:
        """What it printed from an offset on, as `events`; `next` is the offset to ask for next.

        With `wait_seconds`, it waits so long at most for something to come. The last 256 KiB are kept; `dropped` says
        how much between was not.
        """
        call = job_calls.job_output(self._sandbox_id, self.id, since=since, wait_s=wait_seconds)
        return await self._link.asend(call)

    async def wait(self, timeout_s: float | None = None) -> Result:
        """Its result, once it has ended. Raises `DeadlineExceeded`, and what kept it from running."""
        deadline = None if timeout_s is None else monotonic() + timeout_s
        while True:
            left = WAIT_S if deadline is None else min(WAIT_S, max(0.0, deadline - monotonic()))
            row = await self._link.asend(job_calls.get_job(self._sandbox_id, self.id, wait_s=left))
            if row.error is not None:
                raise Error.from_wire(str(row.error.get("code")), str(row.error.get("message")))
            if row.result is not None:
                return job_calls.result_of(row)
            if deadline is not None and monotonic() >= deadline:
                raise DeadlineExceeded(f"job {self.id} has not ended in {timeout_s:g} s", hint="it runs on")

    async def signal(self, number: int) -> None:
        """Signal its process group."""
        await self._link.asend(job_calls.signal_job(self._sandbox_id, self.id, int(number)))

    async def kill(self) -> None:
        """End it and forget it. Idempotent."""
        try:
            await self._link.asend(job_calls.delete_job(self._sandbox_id, self.id))
        except NotFound:
            pass  # its sandbox is gone, and it with it

    def __repr__(self) -> str:
        return f"AsyncJob({self.id!r})"
