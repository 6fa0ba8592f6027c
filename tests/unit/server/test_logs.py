"""Logs as lines."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotbed.errors import InvalidRequest
from hotbed.node import trace
from hotbed.server.logs import JsonFormatter, LineFormatter, configure_logs


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    """As it was, afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_one_event_is_one_line_whatever_a_guest_says() -> None:
    """A line break in a name must not forge an event."""
    record = logging.LogRecord("a.b", logging.INFO, "", 0, "event=x name=%s", ("evil\nlevel=ERROR",), None)

    text = LineFormatter().format(record)

    assert "\n" not in text
    assert text.endswith("level=INFO logger=a.b event=x name=evil\\nlevel=ERROR")
    assert text.startswith("time=")


def test_logs_go_where_they_were_sent(tmp_path: Path) -> None:
    """And below their level, nowhere."""
    configure_logs(level="warning", file=str(tmp_path / "log"))
    logging.getLogger("hotbed.test").info("event=quiet")
    logging.getLogger("hotbed.test").warning("event=loud")

    assert "event=loud" in (tmp_path / "log").read_text()
    assert "event=quiet" not in (tmp_path / "log").read_text()


def record(message: str, *values: object) -> logging.LogRecord:
    """One event."""
    return logging.LogRecord("a.b", logging.INFO, "", 0, message, values, None)


def test_as_json_an_events_fields_are_fields() -> None:
    """What a guest says is one value, and a number stays a number."""
    text = JsonFormatter().format(record("event=x name=%s count=%d took=%.3f why=fixed", 'a=1 level="E"\n', 3, 0.5))
    found = json.loads(text)

    assert "\n" not in text
    assert {name: found[name] for name in ("event", "name", "count", "took", "why", "level", "logger")} == {
        "event": "x",
        "name": 'a=1 level="E"\n',
        "count": 3,
        "took": 0.5,
        "why": "fixed",
        "level": "INFO",
        "logger": "a.b",
    }


def test_as_json_other_peoples_messages_are_whole() -> None:
    """A library logs as it likes."""
    assert json.loads(JsonFormatter().format(record("half of %s", "it")))["message"] == "half of it"


def test_a_log_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A typing error is no traceback."""
    with pytest.raises(InvalidRequest, match="log .*No such file"):
        configure_logs(level="info", file=str(tmp_path / "nope" / "log"))


def test_an_event_of_a_trace_says_so() -> None:
    """In both forms."""
    token = trace.CURRENT.set(f"00-{'ab' * 16}-{'cd' * 8}-01")
    try:
        assert LineFormatter().format(record("event=x")).endswith(f"event=x trace={'ab' * 16}")
        assert json.loads(JsonFormatter().format(record("event=x")))["trace"] == "ab" * 16
    finally:
        trace.CURRENT.reset(token)


def test_the_log_of_a_node_can_be_json(tmp_path: Path) -> None:
    """By one setting."""
    configure_logs(level="info", file=str(tmp_path / "log"), form="json")
    logging.getLogger("hotbed.test").info("event=loud sandbox=%s", "s1")

    assert json.loads((tmp_path / "log").read_text())["sandbox"] == "s1"
