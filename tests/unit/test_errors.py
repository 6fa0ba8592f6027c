"""One tree of errors with stable codes, the same on both ends of the wire."""

from __future__ import annotations

import pytest

from hotbed.errors import AtCapacity, BadPath, Error, FileMissing, InvalidRequest, NotFound, RateLimited


def test_an_error_survives_the_wire() -> None:
    """A client catches the class that the node raised."""
    sent = FileMissing("no file /work/x", hint="list /work")

    body = sent.to_wire()
    received = Error.from_wire(body["code"], body["message"], hint=body["hint"])

    assert type(received) is FileMissing
    assert (received.message, received.hint) == (sent.message, sent.hint)


def test_the_body_satisfies_both_published_envelopes() -> None:
    """One reads text in `error` and a code in `error_code`, the other `message` and `code`."""
    body = AtCapacity("64 sandboxes are alive").to_wire()

    assert body == {
        "error": "64 sandboxes are alive",
        "error_code": "at_capacity",
        "code": "at_capacity",
        "message": "64 sandboxes are alive",
    }


def test_a_message_is_never_empty_on_the_wire() -> None:
    """Where nothing was said, the code says it."""
    assert NotFound().to_wire()["message"] == "not_found"


def test_an_unknown_code_is_the_base_class() -> None:
    """A newer node may know errors that this client does not."""
    assert type(Error.from_wire("invented_tomorrow", "no")) is Error


def test_the_hint_is_part_of_what_a_person_reads() -> None:
    """A traceback shows `str(error)` and nothing else."""
    assert str(BadPath("path 'x' is not absolute", hint="give /work/x")) == (
        "path 'x' is not absolute (hint: give /work/x)"
    )


def test_kinds_keep_what_their_parent_promises() -> None:
    """Catching `AtCapacity` catches every way of being full, and each of them may be retried."""
    assert (RateLimited.status, RateLimited.retryable) == (429, True)
    assert issubclass(BadPath, InvalidRequest)


@pytest.mark.parametrize("code", ["not_found", "internal"])
def test_a_code_is_given_once(code: str) -> None:
    """Two classes with one code could not be told apart on the wire."""
    with pytest.raises(TypeError, match="needs a code of its own"):
        type("Copy", (Error,), {"code": code})


def test_a_class_without_a_code_is_refused() -> None:
    """It would travel under its parent's name."""
    with pytest.raises(TypeError, match="Nameless"):
        type("Nameless", (NotFound,), {})


def test_retry_after_is_kept() -> None:
    """The client waits as long as it was told."""
    assert Error.from_wire("at_capacity", "full", retry_after_s=1.5).retry_after_s == 1.5
