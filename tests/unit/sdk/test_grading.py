"""From candidates to a request, and from results to what the caller wants of the invalid ones."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from hotbed.errors import GradingFailed, InvalidRequest, InvalidSeed, InvalidSpec
from hotbed.grading import DET_SEED, GradeResult, UnitTestReward
from hotbed.grading.verdicts import infra_failure, spec_failure
from hotbed.sdk import grading
from hotbed.sdk.grading import _for_all, _seeds, grade_request, settled

SPEC = UnitTestReward(tests="assert solve(1) == 2\n")
PAID = GradeResult(reward=1.0)


@pytest.mark.parametrize("name", ["grade", "grade_batch"])
def test_both_faces_are_one(name: str) -> None:
    """The async twin takes the same arguments."""
    sync, twin = getattr(grading, name), getattr(grading, f"a{name}")

    assert inspect.signature(sync) == inspect.signature(twin)
    assert inspect.iscoroutinefunction(twin)


def test_a_request_has_code_or_files() -> None:
    """Text that is no Unicode cannot be a program, and is not a failure of ours."""
    request = grade_request(["x", {"a.py": "y\ud800"}], SPEC, seeds=[None, 7], group_id="g", concurrency=3)

    assert request.codes == ("x", {"a.py": "y?"})
    assert request.seeds == (None, f"{7:064x}")
    assert (request.group_id, request.concurrency, request.spec["type"]) == ("g", 3, "unit_tests")
    assert grade_request(["x"], SPEC, seeds=[None]).seeds == ()


@pytest.mark.parametrize("codes", ["code", {"a": "b"}, [None], [b"x"], [{"a": 1}]])
def test_what_is_no_candidate_is_refused(codes: Any) -> None:
    """Most often one string in place of a list, or the None of a completion without code."""
    with pytest.raises(InvalidRequest):
        grade_request(codes, SPEC, seeds=None)


def test_invalid_results_are_as_the_caller_wants_them() -> None:
    """Raised, kept or left out; never turned into a zero."""
    results = [PAID, infra_failure("lost")]

    assert settled(results, "none") == results
    assert settled(results, "skip") == [PAID]
    assert settled([PAID], "raise") == [PAID]
    with pytest.raises(GradingFailed, match="1 of 2.*candidate 1: lost"):
        settled(results, "raise")
    with pytest.raises(InvalidSpec, match="no module"):
        settled([spec_failure("no module")], "raise")


@pytest.mark.parametrize(
    ("seeds", "error"), [(7, InvalidSeed), ("ab" * 32, InvalidSeed), ([], InvalidRequest), ([1], InvalidRequest)]
)
def test_there_is_a_seed_for_each_candidate(seeds: Any, error: type[Exception]) -> None:
    """No seeds at all would pin nothing where somebody thought that it was; one for all is `seed`."""
    with pytest.raises(error, match="seeds"):
        grade_request(["x", "y"], SPEC, seeds=seeds)


def test_seeds_come_from_one_place() -> None:
    """A list of them, or a mode."""
    assert _seeds(["a"], ["s"], None, None, "") == ["s"]
    assert _seeds(["a", "b"], None, "deterministic", None, "") == [DET_SEED] * 2
    assert _seeds(["a", "b"], None, "crn", 5, "") == [f"{5:064x}"] * 2
    with pytest.raises(InvalidRequest, match="both"):
        _seeds(["a"], ["s"], "crn", None, "")
    with pytest.raises(InvalidRequest, match="seed_mode"):
        _seeds(["a"], None, None, 5, "")


def test_one_seed_is_for_all_candidates() -> None:
    """As for a rollout; it is not one more way beside the others."""
    assert _for_all(7, 2, None, None) == [7, 7]
    assert _for_all(None, 2, [1, 2], None) == [1, 2]
    with pytest.raises(InvalidRequest, match="besides"):
        grading.grade_batch(["x"], SPEC, seed=7, seeds=[7])
    with pytest.raises(InvalidRequest, match="besides"):
        grading.grade_batch(["x"], SPEC, seed=7, seed_mode="crn")


def test_a_named_group_has_the_same_seeds_when_it_is_asked_for_again() -> None:
    """Else the second request would be another one, and be refused."""
    assert _seeds(["a"], None, "crn", None, "g") == _seeds(["a"], None, "crn", None, "g")
    assert _seeds(["a"], None, "crn", None, "g") != _seeds(["a"], None, "crn", None, "h")
    assert _seeds(["a"], None, "crn", None, "") != _seeds(["a"], None, "crn", None, "")
    assert _seeds(["a"], None, "vanilla", None, "g") == [None]


def test_an_unknown_mode_is_refused_before_anything_is_sent() -> None:
    """For one candidate there is nothing to skip."""
    with pytest.raises(InvalidRequest, match="on_infra_error"):
        grading.grade_batch(["x"], SPEC, on_infra_error="zero")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidRequest, match="raise or none"):
        grading._valid("skip", ("raise", "none"))
