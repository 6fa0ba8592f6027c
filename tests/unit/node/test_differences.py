"""A replay that differs says where, and what the likely reason is."""

from __future__ import annotations

import os
import time
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.node.differences import compare, compare_bytes, first_difference
from hotbed.wire.execs import ExecResponse


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_the_first_difference_is_the_first(a: bytes, b: bytes) -> None:
    """Found by halving, checked byte by byte."""
    slow = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))

    assert first_difference(a, b) == (None if a == b else slow)


@pytest.mark.parametrize(
    ("recorded", "replayed", "source"),
    [
        (f"t {time.time()}\n", f"t {time.time() + 60}\n", "clock"),
        (f"{time.time_ns()}\n", f"{time.time_ns() + 10**9}\n", "clock"),
        (f'{{"t":{time.time()}}}', f'{{"t":{time.time() + 60}}}', "clock"),
        ("at 10:11:12\n", "at 10:11:13\n", "clock"),
        (uuid.uuid4().hex, uuid.uuid4().hex, "rng"),
        ("0.8444218515250481\n", "0.13436424411240122\n", "rng"),
        ("pid 4312\n", "pid 7\n", "pid"),
        ("<object object at 0x7f6dbbcfb880>", "<object object at 0x7f6dbbcfb990>", "address"),
        ("a\nb\nc\n", "b\na\nc\n", "order"),
        ("{'a', 'b', 'c'}\n", "{'c', 'a', 'b'}\n", "order"),
        ("connection refused\n", "ok\n", "network"),
        ("abc", "abd", "unknown"),
    ],
    ids="seconds nanoseconds JSON time-of-day uuid random pid address order set network unknown".split(),
)
def test_the_likely_source_is_named(recorded: str, replayed: str, source: str) -> None:
    """Clock, randomness, pids, addresses, order and the network are what makes runs differ."""
    difference = compare_bytes("stdout", recorded.encode(), replayed.encode())

    assert difference is not None
    assert difference.source == source


def test_every_respect_is_compared() -> None:
    """The same output with another exit code is not the same run."""
    a = ExecResponse(id="a", status="ok", ok=True, exit_code=0, stdout="x")
    b = ExecResponse(id="b", status="exit", ok=False, exit_code=3, stdout="x", stderr="e")

    assert [difference.what for difference in compare(a, b)] == ["status", "exit_code", "stderr"]
    assert list(compare(a, a)) == []


def test_what_a_recording_lacked_is_named() -> None:
    """Where the runs differ; what cannot be told else is laid to the network that was asked."""
    same: dict[str, Any] = {"status": "ok", "ok": True, "exit_code": 0, "signal": None}
    refused = [{"to": "a.org", "port": 443, "reason": "not in the recording: GET https://a.org:443/", "count": 1}]
    recorded = ExecResponse(id="a", stdout="yes", **same)
    replayed = ExecResponse(id="b", stdout="no", egress={"allowed": 1, "denied": 1, "refused": refused}, **same)

    told = [(difference.what, difference.source, difference.replayed) for difference in compare(recorded, replayed)]

    assert told == [("stdout", "network", "no"), ("network", "network", refused[0]["reason"])]
    assert list(compare(recorded, ExecResponse(id="c", stdout="yes", egress=replayed.egress, **same))) == []


def test_large_streams_are_compared_fast() -> None:
    """16 MiB of output with the difference at its end is a few comparisons, not 16 million."""
    data = os.urandom(1 << 20) * 16
    difference = compare_bytes("stdout", data + b"a", data + b"b")

    assert difference is not None
    assert difference.offset == len(data)


@pytest.mark.parametrize(("pinned", "source"), [(("getrandom",), "clock"), (("getrandom", "clock"), "unknown")])
def test_what_is_pinned_is_not_named_as_the_source(pinned: tuple[str, ...], source: str) -> None:
    """A number that looks drawn was not drawn where draws are verified."""
    same: dict[str, Any] = {"status": "ok", "ok": True, "exit_code": 0, "signal": None}
    recorded = ExecResponse(id="a", stdout="0.8444218515250481", **same)
    replayed = ExecResponse(id="b", stdout="0.1343", seed_ack="verified", pinned=pinned, **same)

    assert [difference.source for difference in compare(recorded, replayed)] == [source]


@pytest.mark.parametrize(
    ("recorded", "replayed"), [("[3, 1, 2]\n", "[1, 3, 2]\n"), ("0" * 30 + "1" * 30, "1" * 30 + "0" * 30)]
)
def test_what_is_pinned_and_shuffled_is_named_order(recorded: str, replayed: str) -> None:
    """Threads that share a list or a stream: it was said that the clock did it."""
    same: dict[str, Any] = {"status": "ok", "ok": True, "exit_code": 0, "signal": None}
    first = ExecResponse(id="a", stdout=recorded, **same)
    second = ExecResponse(id="b", stdout=replayed, seed_ack="verified", pinned=("getrandom",), **same)

    assert [difference.source for difference in compare(first, second)] == ["order"]
