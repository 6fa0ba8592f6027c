"""Operations as values."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import BadPath, InvalidRequest
from hotbed.sdk import calls
from hotbed.sdk.calls import Call
from hotbed.wire.execs import ExecRequest, RolloutRequest
from hotbed.wire.sandboxes import CreateSandbox


def test_what_makes_sandboxes_names_the_lease() -> None:
    """And nothing else needs to."""
    made: list[Call[Any]] = [
        calls.create_sandbox(CreateSandbox(template="python")),
        calls.rollout(RolloutRequest(template="python", code="1")),
    ]
    others: list[Call[Any]] = [calls.health(), calls.delete_sandbox("x"), calls.exec_in("x", ExecRequest(code="1"))]

    assert [call.leased for call in made] == [True, True]
    assert [call.leased for call in others] == [False, False, False]


def test_exec_is_given_its_own_time_and_some_more() -> None:
    """The node needs to answer after the program's last second."""
    call = calls.exec_in("x", ExecRequest(code="1", timeout_seconds=5))

    assert call.timeout_s == 5 + calls.DELIVERY_GRACE_S
    assert call.patience_s == 5


def test_only_gets_and_deletes_without_a_stream_are_idempotent() -> None:
    """What has been handed to a sink cannot be taken back."""
    sink = type("Sink", (), {"write": lambda self, data: None})()

    assert calls.health().idempotent
    assert calls.delete_sandbox("x").idempotent
    assert not calls.get_file("x", "/a", sink).idempotent
    assert not calls.rollout(RolloutRequest(template="python", code="1")).idempotent


def test_paths_are_quoted() -> None:
    """As UTF-8, so that no byte of a name is taken for the query's own."""
    with pytest.raises(InvalidRequest, match="mode=0o755"):
        calls.put_bytes("sb", "/work/a", b"", mode="rwx")  # type: ignore[arg-type]  # what a user may pass all the same
    call = calls.put_bytes("sb", "/work/a b&c=ü", b"", mode=0o755)

    assert call.target == "/v1/sandboxes/sb/files?path=/work/a%20b%26c%3D%C3%BC&mode=755&parents=1"


def test_ids_cannot_climb_out_of_their_segment() -> None:
    """An id is the caller's text."""
    assert calls.get_sandbox("../templates").target == "/v1/sandboxes/..%2Ftemplates"


@pytest.mark.parametrize("path", ["work/x", "", "/a\0b"])
def test_bad_path_is_refused_before_any_io(path: str) -> None:
    """With the form that works."""
    with pytest.raises(BadPath):
        calls.put_bytes("sb", path, b"")


def test_bytes_at_hand_are_a_body_and_can_be_sent_again() -> None:
    """Unlike an upload from a file."""
    call = calls.put_bytes("sb", "/a", "text")

    assert (call.body, call.upload) == (b"text", None)
