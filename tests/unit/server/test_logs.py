"""Logs as lines."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotbed.server.logs import LineFormatter, configure_logs


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
