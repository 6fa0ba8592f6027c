"""What a process's client makes of what the node says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hotbed.errors import ProtocolError, SandboxGone
from hotbed.sdk.process_talk import PIECE, ProcessTalk, as_bytes, control, request_message
from hotbed.sdk.websocket import BINARY, CLOSE, TEXT
from hotbed.wire.processes import INPUT_WINDOW, Control, ProcessRequest, Terminal


def told(*events: dict[str, Any]) -> ProcessTalk:
    """A talk after some events."""
    talk = ProcessTalk()
    for event in events:
        talk.hear((TEXT, json.dumps(event).encode()))
    return talk


def test_output_is_in_order_and_by_stream() -> None:
    """The first byte names it."""
    talk = ProcessTalk()
    for data in (b"\1one", b"\2two", b"\1"):
        talk.hear((BINARY, data))

    assert list(talk.pieces) == [(1, b"one"), (2, b"two"), (1, b"")]


def test_the_result_is_the_end() -> None:
    """Nothing after it changes that."""
    talk = told(
        {"event": "started"}, {"event": "result", "result": {"id": "x", "status": "ok", "ok": True, "exit_code": 0}}
    )
    talk.hear((CLOSE, b""))

    assert talk.is_over and talk.outcome().ok


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"event": "error", "error": {"code": "session_gone", "message": "gone"}}, SandboxGone),
        ({"event": "nonsense"}, ProtocolError),
        (["no event"], ProtocolError),
    ],
)
def test_what_went_wrong_is_raised(event: Any, kind: type[Exception]) -> None:
    """By whoever asks for the outcome."""
    with pytest.raises(kind):
        told(event).outcome()


@pytest.mark.parametrize("message", [(CLOSE, b""), (BINARY, b"\3x"), (BINARY, b"")])
def test_an_end_without_a_result_is_a_failure_of_ours(message: tuple[int, bytes]) -> None:
    """The program's own failures are results."""
    talk = ProcessTalk()
    talk.hear(message)

    assert talk.is_over
    with pytest.raises(ProtocolError):
        talk.outcome()


def test_input_waits_for_room() -> None:
    """What is ahead of the program is bounded, and given back as it reads."""
    talk = ProcessTalk()
    while talk.has_room():
        talk.input(bytes(PIECE))
    talk.hear((TEXT, json.dumps({"event": "taken", "bytes": PIECE}).encode()))

    assert INPUT_WINDOW % PIECE == 0 and talk.has_room()


def test_messages_are_plain_json() -> None:
    """As the node reads them."""
    kind, data = request_message(ProcessRequest(command="sh", terminal=Terminal(rows=5, columns=6)))

    assert (kind, json.loads(data)["terminal"]) == (TEXT, {"rows": 5, "columns": 6})
    assert json.loads(control(Control(op="signal", signal=2))[1]) == {"op": "signal", "signal": 2}
    assert as_bytes("ä") == "ä".encode() == as_bytes(bytes("ä".encode()))
