"""Which seed a request runs with."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.node.seeding import completed, in_sandbox, level_of
from hotbed.wire.execs import ExecRequest, RolloutRequest
from hotbed.wire.sandboxes import CreateSandbox

SEED = "ab" * 32
UNSEEDED = ExecRequest(code="1")


@pytest.mark.parametrize(
    ("fields", "level"),
    [
        ({}, "none"),
        ({"seed": SEED}, "rng"),
        ({"seed": SEED, "determinism": "full"}, "full"),
        ({"determinism": "rng"}, "rng"),
    ],
)
def test_a_seed_pins_randomness_unless_something_else_was_said(fields: dict[str, Any], level: str) -> None:
    """The default of a seeded rollout is `rng`, of an unseeded one `none`, which costs nothing."""
    assert level_of(RolloutRequest(template="python", code="1", **fields)) == level


def test_what_pins_nothing_is_left_as_it_was() -> None:
    """A seed with level `none` is only echoed."""
    given = ExecRequest(code="1", seed=SEED, determinism="none")

    assert completed(UNSEEDED) is UNSEEDED
    assert completed(given) is given


def test_what_pins_without_a_seed_gets_a_fresh_one() -> None:
    """So that it can be run again with the one it had."""
    first, second = (completed(CreateSandbox(template="python", determinism="full")) for _ in range(2))

    assert len(first.seed or "") == 64
    assert first.seed != second.seed


def test_a_sandbox_s_first_exec_has_its_seed_and_each_later_one_its_own() -> None:
    """`Sandbox(seed=s)` then `exec` is `rollout_once(seed=s)`; two execs must not make the same names."""
    first, second, third = (in_sandbox(UNSEEDED, seed=SEED, level="rng", number=number) for number in (1, 2, 3))

    assert (first.seed, first.determinism) == (SEED, "rng")
    assert len({first.seed, second.seed, third.seed}) == 3
    assert second == in_sandbox(UNSEEDED, seed=SEED, level="rng", number=2)


def test_an_exec_s_own_wish_comes_before_its_sandbox_s() -> None:
    """Seed and level, each on its own."""
    own = ExecRequest(code="1", seed="cd" * 32)
    none = ExecRequest(code="1", determinism="none")
    full = ExecRequest(code="1", determinism="full")

    assert in_sandbox(own, seed=SEED, level="rng", number=1).seed == "cd" * 32
    assert in_sandbox(none, seed=SEED, level="rng", number=1) is none
    assert in_sandbox(full, seed=SEED, level="rng", number=1).seed == SEED
    assert in_sandbox(UNSEEDED, seed=SEED, level="none", number=1) is UNSEEDED


def test_a_clock_is_for_the_level_that_has_one() -> None:
    """Elsewhere it would be ignored, and nobody would know."""
    clock = {"epoch_ns": 10**18}

    assert completed(ExecRequest(code="1", determinism="full", clock=clock)).clock == clock
    for level in (None, "rng", "none"):
        with pytest.raises(InvalidRequest, match="a clock was given"):
            completed(ExecRequest(code="1", seed="ab" * 32, determinism=level, clock=clock))
