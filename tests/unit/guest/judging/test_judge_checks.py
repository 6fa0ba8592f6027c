"""What is counted."""

from __future__ import annotations

from hotbed.guest.judging.judge_checks import Checks, Verdict, explain


def test_a_failure_stays_and_strangers_count_for_nothing() -> None:
    """Passing later does not mend it; a check that is not official does not exist."""
    checks = Checks(["a", "b"])
    checks.record("a", "passed")
    checks.record("a", "failed", "no")
    checks.record("a", "passed")
    checks.record("c", "passed")

    assert checks.to_wire() == [["a", "failed", "no"], ["b", "not_run", ""]] and checks.passed() == 0
    assert checks.first_message() == "a: no"


def test_the_first_thing_that_went_wrong_is_the_status() -> None:
    """What follows from it explains less."""
    verdict = Verdict(Checks(["a"]))
    verdict.say("timeout", "late")
    verdict.say("failed", "wrong")

    assert (verdict.to_wire()["status"], verdict.to_wire()["reason"]) == ("timeout", "late")


def test_all_passed_is_ok() -> None:
    """And anything less is not."""
    for outcome, status in (("passed", "ok"), ("skipped", "failed"), ("not_run", "failed")):
        verdict = Verdict(Checks(["a"]))
        verdict.checks.record("a", outcome)
        assert verdict.to_wire()["status"] == status


def test_an_error_is_one_bounded_line() -> None:
    """Also one that cannot say what it is."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert explain(Mute()) == "Mute" and len(explain(ValueError("x" * 10_000))) == 400
