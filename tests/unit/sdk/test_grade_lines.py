"""Lines of grading, cut where the network likes."""

from __future__ import annotations

import json

import pytest

from hotbed.errors import AtCapacity, ProtocolError
from hotbed.grading import GradeResult
from hotbed.sdk.grade_lines import GradeLines


def verdict(index: object, reward: float | None) -> bytes:
    """One verdict."""
    result = GradeResult(reward=reward).to_wire()
    return json.dumps({"event": "grade", "index": index, "result": result}).encode() + b"\n"


DONE = b'{"event":"done"}\n'


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_results_are_in_the_candidates_order(step: int) -> None:
    """However the stream is cut, in whatever order they came; empty lines only say that the node is there."""
    heard: list[tuple[int, int]] = []
    lines = GradeLines(2, lambda done, total: heard.append((done, total)))
    data = b"\n" + verdict(1, 0.5) + b"\n\n" + verdict(0, None) + DONE

    for start in range(0, len(data), step):
        lines.write(data[start : start + step])

    assert [result.reward for result in lines.results()] == [None, 0.5]
    assert heard == [(1, 2), (2, 2)]


def test_a_result_has_the_name_by_which_it_can_be_replayed() -> None:
    """It stands beside the verdict, and two results that say the same are equal all the same."""
    line = {"event": "grade", "index": 0, "id": "grade_1", "result": GradeResult(reward=1.0).to_wire()}
    lines = GradeLines(1, None)
    lines.write(json.dumps(line).encode() + b"\n" + DONE)
    (result,) = lines.results()

    assert (result.id, result.to_wire()["id"]) == ("grade_1", "grade_1")
    assert result == GradeResult(reward=1.0)
    assert "id" not in GradeResult(reward=1.0).to_wire()


@pytest.mark.parametrize("data", [b"", verdict(0, 1.0), DONE, verdict(0, 1.0) + DONE])
def test_an_answer_that_is_not_whole_is_no_result(data: bytes) -> None:
    """A verdict that did not arrive must not be taken for one."""
    lines = GradeLines(2, None)
    lines.write(data)

    with pytest.raises(ProtocolError, match="group_id"):
        lines.results()


def test_an_error_line_is_raised() -> None:
    """As the class that its code names."""
    lines = GradeLines(1, None)

    with pytest.raises(AtCapacity, match="full"):
        lines.write(b'{"event":"error","error":{"code":"at_capacity","message":"full"}}\n')


@pytest.mark.parametrize(
    "data", [b"[]\n", b'{"event":"other"}\n', verdict(2, 1.0), verdict("0", 1.0), b'{"event":"grade","index":0}\n']
)
def test_a_line_of_another_kind_is_refused(data: bytes) -> None:
    """An index out of range, a verdict without a result, something else altogether."""
    with pytest.raises(ProtocolError):
        GradeLines(2, None).write(data)
