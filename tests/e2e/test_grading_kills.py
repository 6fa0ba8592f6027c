"""What is killed while it grades: a judge, a node."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from hotbed import GradeResult, InvalidRequest, UnitTestReward, connect, grade, grade_batch
from hotbed.errors import Error
from tests.e2e.node_process import node_process
from tests.e2e.processes import children_of, parents, wait_until

GOOD = "def solve(xs):\n    return sorted(xs)\n"
SPEC = UnitTestReward(tests="assert solve([3, 1, 2]) == [1, 2, 3]\n")
SLOW = "import time\ndef solve(xs):\n    time.sleep(30)\n"

pytestmark = pytest.mark.timeout(120)


def rewards(results: list[GradeResult]) -> list[float | None]:
    """What each was paid."""
    return [result.reward for result in results]


def test_a_killed_judge_is_replaced(tmp_path: Path) -> None:
    """Its candidates had no verdict, so they are graded again, and nobody is paid less for it."""
    results: list[GradeResult] = []
    slow = "import time\ndef solve(xs):\n    time.sleep(0.7)\n    return sorted(xs)\n"
    spec = UnitTestReward(tests="assert solve([2, 1]) == [1, 2]\nassert solve([3]) == [3]\n")
    with (
        node_process(tmp_path, backend="fork", home=str(tmp_path / "home")) as node,
        connect(unix_socket=str(node.socket)) as client,
    ):
        grade(GOOD, SPEC, client=client)
        grading = threading.Thread(target=lambda: results.extend(grade_batch([slow] * 3, spec, client=client)))
        grading.start()
        killed = wait_until(lambda: _kill_judge(node.pid))
        grading.join(60)

    assert killed
    assert rewards(results) == [1.0, 1.0, 1.0]


def _kill_judge(node: int) -> bool:
    """Kill the one sandbox's first process that has several children: a judge with its workers."""
    known = parents()
    for pid in sorted(children_of(node, known)):
        if len(children_of(pid, known)) > 1 and _is_first(pid):
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def _is_first(pid: int) -> bool:
    """Whether it is number 1 of a sandbox: of a namespace below its template's."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    numbers = next((line for line in status.splitlines() if line.startswith("NSpid:")), "").split()[1:]
    return len(numbers) == 3 and numbers[-1] == "1"


@pytest.mark.slow
def test_a_killed_node_is_an_error_and_can_be_asked_again(tmp_path: Path) -> None:
    """kill -9 in the middle of a batch: the client is told, nothing survives, and asked again there are rewards."""
    raised: list[Exception] = []
    settings = {"backend": "fork", "home": str(tmp_path / "home")}
    with node_process(tmp_path, **settings) as node:

        def ask() -> None:
            try:
                with connect(unix_socket=str(node.socket)) as client:
                    grade_batch([SLOW] * 4, SPEC, client=client, group_id="retried")
            except Exception as error:  # noqa: BLE001 - what it is, is the question
                raised.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        assert wait_until(lambda: node.call("GET", "/v1/health")[1]["running"] >= 5)
        below = children_of(node.pid)
        os.kill(node.pid, signal.SIGKILL)
        asking.join(30)
        gone = wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))

    assert gone
    assert len(raised) == 1
    assert isinstance(raised[0], Error) and not isinstance(raised[0], InvalidRequest), raised
    with node_process(tmp_path, **settings) as node, connect(unix_socket=str(node.socket)) as client:
        assert rewards(grade_batch([GOOD] * 2, SPEC, client=client, group_id="retried")) == [1.0, 1.0]
