"""Without a cgroup, the agent itself keeps the sandbox within its memory."""

from __future__ import annotations

import pytest

from tests.unit.guest.conftest import MakeAgent

HOG = "print('begun', flush=True)\nhog = []\nwhile 1: hog.append(bytearray(1 << 20))"


@pytest.mark.slow
@pytest.mark.parametrize("program", [HOG, "import os\nos.fork()\n" + HOG, "import os\nif os.fork(): os.wait()\n" + HOG])
def test_a_hog_is_killed_and_called_one(make_agent: MakeAgent, program: str) -> None:
    """Alone, with a twin, or as a child."""
    result = make_agent(as_pid_1=True, limits={"memory_mib": 700}).run("code", program)

    assert (result.status, result.exit_code, result.signal) == ("oom", None, 9)
    assert b"begun" in result.stdout


@pytest.mark.slow
def test_the_largest_job_pays(make_agent: MakeAgent) -> None:
    """Its neighbour did nothing."""
    agent = make_agent(as_pid_1=True, limits={"memory_mib": 600})
    small = agent.start_exec("command", "sleep 2; echo small")
    agent.start_exec("code", HOG)
    results = {result.header["id"]: result for result in (agent.result(), agent.result())}

    assert results.pop(small).stdout == b"small\n"
    assert [result.status for result in results.values()] == ["oom"]


def test_forks_that_share_everything_are_no_hogs(make_agent: MakeAgent) -> None:
    """Twenty forks of 40 MiB hold 40 MiB, and what they share with the test runner once."""
    agent = make_agent(as_pid_1=True, limits={"memory_mib": 1000})
    program = (
        "import os, time\nballast = b'x' * (40 << 20)\n"
        "for _ in range(20):\n    if os.fork() == 0:\n        time.sleep(0.4)\n        os._exit(0)\n"
        "time.sleep(0.3)\nprint('fine')"
    )

    assert agent.run("code", program).stdout == b"fine\n"
