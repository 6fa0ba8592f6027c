"""Logs as lines of key=value fields, or of JSON, one event a line, whatever the values hold.

What is logged is a template of `key=%s` words and its values. As JSON the keys are taken from the template and the
values from the values: a guest's words cannot become a key, and a number stays one. Either way an event that belongs to
a trace says so.
"""

from __future__ import annotations

import json
import logging
import re
import time
from typing import Any

from hotbed.node.trace import trace_id
from hotbed.server.mistakes import refused

_WORD = re.compile(r"(\w+)=(%[sdrfg.0-9]*[sdrfg]|\S+)")


class _Clock(logging.Formatter):
    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"


class LineFormatter(_Clock):
    """`time=… level=… logger=… event=…`, and a traceback folded into the same line."""

    def __init__(self) -> None:
        super().__init__("time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """One record as one line: a guest's words cannot forge a second one."""
        text = super().format(record).replace("\r", "\\r").replace("\n", "\\n")
        return f"{text} trace={trace}" if (trace := trace_id()) else text


class JsonFormatter(_Clock):
    """`{"time": …, "level": …, "logger": …, "event": …, …}`."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as one line of JSON."""
        found = {"time": self.formatTime(record), "level": record.levelname, "logger": record.name, **fields_of(record)}
        if trace := trace_id():
            found["trace"] = trace
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)
        return json.dumps(found, default=str)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The keys of a record's template with their values; the whole message where it is not one of ours."""
    template = record.msg if isinstance(record.msg, str) else ""
    words = _WORD.findall(template)
    values = list(record.args) if isinstance(record.args, tuple) else []
    if not words or words[0][0] != "event" or sum(word[1].startswith("%") for word in words) != len(values):
        return {"message": record.getMessage()}
    return {name: plain(values.pop(0)) if told.startswith("%") else told for name, told in words}


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def configure_logs(*, level: str, file: str, form: str = "text") -> None:
    """Send this process's logs to a file, or to standard error when none is named."""
    try:
        handler = logging.FileHandler(file, errors="backslashreplace") if file else logging.StreamHandler()
    except OSError as error:
        raise refused(error, f"the log {file} cannot be written", hint="choose another --log-file") from None
    handler.setFormatter(JsonFormatter() if form == "json" else LineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # by this one's own level it decides what to format
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # no line says any of it,
    logging._srcfile = None  # nor where it was logged (docs.python.org/3/howto/logging.html#optimization)
