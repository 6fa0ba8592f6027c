"""What the node may ask of the supervisor."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import InvalidRequest, InvalidSeed
from hotbed.runtime.replay.request import PinRequest

SEED = bytes(range(32))


def test_a_request_survives_the_wire() -> None:
    """Node and supervisor must mean the same rollout."""
    request = PinRequest(seed=SEED, level="full", epoch_ns=5, step_ns=7, roots=3)

    assert PinRequest.from_wire(request.to_wire()) == request


@pytest.mark.parametrize(
    "change", [{"level": "none"}, {"epoch_ns": -1}, {"epoch_ns": 1 << 63}, {"step_ns": 0}, {"roots": 0}]
)
def test_what_cannot_be_pinned_is_refused(change: dict[str, Any]) -> None:
    """A clock that stands still would hang whoever waits for it."""
    with pytest.raises(InvalidRequest):
        PinRequest(**{"seed": SEED, **change})


def test_a_short_seed_is_an_invalid_seed() -> None:
    """The error that the caller can look up."""
    with pytest.raises(InvalidSeed):
        PinRequest(seed=b"x")


def test_of_a_clock_what_is_not_said_is_the_usual() -> None:
    """Epoch and step, each by itself."""
    assert PinRequest.of(bytes(32), "rng") == PinRequest(seed=bytes(32))
    late = PinRequest.of(bytes(32), "full", clock=(10**18, None), roots=2)

    assert late == PinRequest(seed=bytes(32), level="full", epoch_ns=10**18, roots=2)
