"""The bytes behind every seeded rollout: fixed for ever, because ledgers outlive versions."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.runtime.replay.streams import Streams, derive

SEED = bytes(range(32))


def test_the_format_is_the_documented_one() -> None:
    """A replay years later must find the same bytes; a change here is a change of format."""
    key = hashlib.sha256(b"hotbed-replay-1\0" + SEED).digest()
    blocks = [
        hashlib.shake_256(key + b"check\0" + bytes([i]) + bytes(7)).digest(512 if i == 0 else 4096) for i in (0, 1)
    ]

    assert Streams(SEED).stream("check").take(4608) == b"".join(blocks)


@given(st.lists(st.integers(0, 9000), max_size=8))
def test_how_bytes_are_asked_for_does_not_change_them(sizes: list[int]) -> None:
    """One read of a kilobyte and a thousand reads of a byte are the same to a program."""
    pieces = Streams(SEED).stream("x")
    whole = Streams(SEED).stream("x")

    assert b"".join(map(pieces.take, sizes)) == whole.take(sum(sizes))


def test_labels_and_seeds_name_streams_that_have_nothing_in_common() -> None:
    """Two processes of one rollout, and two rollouts, must not repeat each other."""
    drawn = [Streams(seed).fixed(label, 16) for seed in (SEED, bytes(32)) for label in ("a", "b", "ab")]

    assert len(set(drawn)) == 6


def test_derived_seeds_are_seeds_and_their_own() -> None:
    """Each exec of a sandbox and each member of a group gets one."""
    derived = [
        derive(SEED, "exec", 1),
        derive(SEED, "exec", 2),
        derive(SEED, "exec", 1, 2),
        derive(bytes(32), "exec", 1),
    ]

    assert len(set(derived)) == 4
    assert all(len(seed) == 32 for seed in derived)


def test_a_seed_of_another_length_is_refused() -> None:
    """A short seed is somebody's mistake, not a smaller one."""
    with pytest.raises(ValueError, match="32 bytes"):
        Streams(b"short")
