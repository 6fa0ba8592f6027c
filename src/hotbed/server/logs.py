"""Logs as lines of key=value fields, one event a line, whatever the values hold."""

from __future__ import annotations

import logging
import time


class LineFormatter(logging.Formatter):
    """`time=… level=… logger=… event=…`, and a traceback folded into the same line."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """One record as one line: a guest's words cannot forge a second one."""
        return super().format(record).replace("\r", "\\r").replace("\n", "\\n")


def configure_logs(*, level: str, file: str) -> None:
    """Send this process's logs to a file, or to standard error when none is named."""
    handler: logging.Handler = logging.FileHandler(file, errors="backslashreplace") if file else logging.StreamHandler()
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
