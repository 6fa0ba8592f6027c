"""An entry reads well as it is printed, whatever it says."""

from __future__ import annotations

from hotbed.pools import entries
from hotbed.pools.replies import Failure, Stepped
from hotbed.pools.seats import Phase, Seat


def seat() -> Seat:
    """The third of a pool, after one step."""
    return Seat(index=2, phase=Phase.RUNNING, isolation="fork", seed=7, episode=0, steps=1, step_ms=2.0)


def test_the_environments_info_is_at_hand_and_ours_wins() -> None:
    """What it overrode is still in `info`."""
    info = {"score": 3, "status": "mine"}
    _, reward, done, detail = entries.stepped(seat(), Stepped("o", 0.5, False, True, info, 1.0))

    assert (reward, done, detail["score"], detail["status"]) == (0.5, True, 3, "ok")
    assert detail["info"] == info
    assert {"isolation": "fork", "seed": 7, "env_ms": 1.0, "step_ms": 2.0}.items() <= detail.items()


def test_a_failure_has_no_result_and_its_status_and_reason_first() -> None:
    """`print(results[0] or details[0])`."""
    failed = seat()
    failed.fail(Failure(status="oom", reason="out of memory"))

    result, reward, done, detail = entries.failed(failed)

    assert (result or detail) is detail
    assert (reward, done) == (0.0, True)
    assert str(detail).startswith("{'status': 'oom', 'reason': 'out of memory'")


def test_what_was_not_the_environments_doing_forms_no_reward() -> None:
    """None cannot be mistaken for a score."""
    lost = seat()
    lost.fail(Failure(status="lost", reason="the node is gone"))

    assert entries.failed(lost)[1] is None


def test_no_rows_make_four_empty_columns() -> None:
    """An empty batch has the shape of a batch."""
    assert entries.columns([]) == ([], [], [], [])
