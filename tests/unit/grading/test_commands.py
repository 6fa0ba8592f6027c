"""Whole repositories, judged beside the candidate."""

from __future__ import annotations

import pytest

from hotbed.errors import InvalidSpec
from hotbed.grading import CommandReward
from hotbed.grading.commands import command_result, plan_of, read_report
from hotbed.grading.outputs import RunOutcome

SPEC = CommandReward(
    command="pytest --junitxml r.xml",
    files={"conftest.py": "# ours", "lib.py": "x"},
    hidden={"tests/test_a.py": "secret"},
    expected=("tests/test_a.py::test_one", "tests/test_a.py::TestB::test_two[a::b]"),
    report="r.xml",
    setup="pip install -e .",
)
OK = RunOutcome(status="ok", exit_code=0)


def report(*cases: str) -> bytes:
    return ("<testsuites><testsuite>" + "".join(cases) + "</testsuite></testsuites>").encode()


ONE = '<testcase classname="tests.test_a" name="test_one"/>'
TWO = '<testcase classname="tests.test_a.TestB" name="test_two[a::b]"><system-out>x</system-out></testcase>'


def test_hidden_files_come_after_the_candidates_last_byte() -> None:
    """And after everything it left has been killed and removed."""
    plan = plan_of(SPEC, {"lib.py": "theirs", "conftest.py": "theirs"})
    kinds = [
        "write" if s.write is not None else "run" if s.run else "kill" if s.kill else "remove" for s in plan.before
    ]

    assert kinds == ["write", "write", "run", "kill", "remove", "remove", "write"]
    assert plan.before[-1].write == {"conftest.py": "# ours", "tests/test_a.py": "secret"}
    assert all("secret" not in str(step.write) for step in plan.before[:-1])


def test_a_patch_is_applied() -> None:
    """Its failure is the candidate's."""
    spec = CommandReward(command="x", patch=True)

    assert [step.is_candidate for step in plan_of(spec, "diff").before[:2]] == [False, True]
    with pytest.raises(InvalidSpec, match="patch"):
        plan_of(spec, {"a": "b"})


@pytest.mark.parametrize(
    ("found", "passed"),
    [
        (report(ONE, TWO), 2), (report(ONE), 1), (report(ONE, ONE, TWO), 1), (None, 0), (b"<", 0), (report(), 0),
        (report(ONE.replace("/>", "><skipped/></testcase>"), TWO), 1),
        (report(ONE.replace("/>", "><failure/></testcase>"), TWO), 1),
        (report(ONE.replace("/>", "><passed/></testcase>"), TWO), 1),
        (report(ONE, TWO, *['<testcase classname="x" name="extra"/>'] * 60), 2),
        (b'<!DOCTYPE a [<!ENTITY b "c">]>' + report(ONE, TWO), 0),
    ],
)  # fmt: skip
def test_only_expected_tests_that_passed_count(found: bytes | None, passed: int) -> None:
    """Missing, skipped, failed, doubled and extra ones earn nothing."""
    result = command_result(SPEC, OK, found)

    assert (result.passed, result.total, result.trust) == (passed, 2, "beside")
    assert result.reward == (1.0 if passed == 2 else 0.0)


@pytest.mark.parametrize(
    ("status", "reward", "named"),
    [("ok", 1.0, "ok"), ("exit", 0.0, "failed"), ("timeout", 0.0, "timeout"), ("oom", 0.0, "oom")],
)
def test_without_expected_tests_it_is_the_exit_status(status: str, reward: float, named: str) -> None:
    """A number, whatever happened."""
    result = command_result(CommandReward(command="x"), RunOutcome(status=status, exit_code=0), None)

    assert (result.reward, result.status) == (reward, named)


def test_a_report_over_its_limit_is_no_report() -> None:
    """It was written beside the candidate."""
    assert read_report(b" " * (17 << 20)) == {}
