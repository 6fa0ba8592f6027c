"""Jobs, blocking face."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hotbed.errors import DeadlineExceeded, NotFound, SandboxGone
from hotbed.sdk.client import Client
from hotbed.sdk.connect import connect
from hotbed.sdk.jobs import Job
from hotbed.sdk.sandbox import Sandbox


@pytest.fixture
def sandbox(client: Client) -> Iterator[Sandbox]:
    """One that lives."""
    with Sandbox("python", client=client) as made:
        yield made


def printed(job: Job, since: int = 0) -> tuple[bytes, int]:
    """What it printed, and the offset behind it."""
    answer = job.output(since, wait_seconds=10)
    return b"".join(event.data_bytes for event in answer.events), answer.next


def test_a_job_runs_while_others_do_and_tells_its_result(sandbox: Sandbox) -> None:
    """Output by offset, as it comes."""
    job = sandbox.start_job(command="echo one; while [ ! -f /work/go ]; do sleep 0.01; done; echo two")
    data, offset = printed(job)
    assert (data, offset, job.poll().state) == (b"one\n", 4, "running")
    with pytest.raises(DeadlineExceeded):
        job.wait(0.05)
    sandbox.exec(command="touch /work/go")

    assert job.wait(10).stdout == "one\ntwo\n"
    assert printed(job, offset) == (b"two\n", 8)
    assert job.poll().state == "ended"
    assert [other.id for other in sandbox.jobs()] == [job.id]


def test_it_outlives_the_client_that_started_it(node_socket: str, sandbox: Sandbox) -> None:
    """And ends with its sandbox."""
    with connect(unix_socket=node_socket) as other:
        started = Sandbox.attach(other, sandbox.id).start_job(command="sleep 0.3; echo done")
    job = next(job for job in sandbox.jobs() if job.id == started.id)

    assert job.wait(10).stdout == "done\n"
    last = sandbox.start_job(command="sleep 60")
    sandbox.close()
    with pytest.raises(SandboxGone):
        last.poll()


def test_it_can_be_signalled_and_killed(sandbox: Sandbox) -> None:
    """And is forgotten then."""
    job = sandbox.start_job(command="trap 'echo caught; exit 5' TERM; echo up; while :; do sleep 0.01; done")
    printed(job)
    job.signal(15)
    assert job.wait(10).exit_code == 5
    other = sandbox.start_job(command="sleep 60")
    other.kill()
    other.kill()

    assert [row.id for row in sandbox.jobs()] == [job.id]
    with pytest.raises(NotFound):
        other.poll()
    assert repr(job) == f"Job({job.id!r})"


def test_a_job_that_could_not_run_says_why(sandbox: Sandbox) -> None:
    """To whoever waits."""
    job = sandbox.start_job(command="true", cwd="/nowhere")

    with pytest.raises(Exception, match="nowhere"):
        job.wait(10)
    assert job.poll().state == "failed"
