"""Standard output is data, standard error is talk."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from hotbed.sdk.settings import Settings

_COLORS = {"green": "32", "red": "31", "yellow": "33", "dim": "2", "bold": "1"}
_BAR = 24
_REDRAW_S = 0.05


class Output:
    """Where a command writes, and how."""

    def __init__(self, *, json: bool = False, color: bool | None = None) -> None:
        self.json = json
        allowed = not Settings.from_environment().no_color
        self.color = (allowed and sys.stdout.isatty()) if color is None else color

    @classmethod
    def of(cls, args: Any) -> Output:
        """As a command's arguments ask for."""
        return cls(json=bool(getattr(args, "json", False)))

    def data(self, value: object) -> None:
        """A value, as JSON."""
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")

    def line(self, text: str = "") -> None:
        """A line of the answer."""
        sys.stdout.write(text + "\n")

    def raw(self, stream: int, data: bytes) -> None:
        """Bytes that a program wrote, on the stream it wrote them to."""
        target = sys.stdout if stream == 1 else sys.stderr
        target.flush()
        target.buffer.write(data)
        target.buffer.flush()

    def talk(self, text: str) -> None:
        """Something for the person at the keyboard."""
        sys.stderr.write(f"hotbed: {text}\n")
        sys.stderr.flush()

    def table(self, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Aligned columns."""
        lines = [tuple(head), *(tuple(str(cell) for cell in row) for row in rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
        for number, cells in enumerate(lines):
            text = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
            self.line(self.paint(text, "dim") if number == 0 else text)

    def pairs(self, values: Mapping[str, object]) -> None:
        """Names and values, one a line."""
        width = max(map(len, values), default=0)
        for name, value in values.items():
            self.line(f"  {name.ljust(width)}  {value}")

    def paint(self, text: str, color: str) -> str:
        """Colored where colors are welcome."""
        return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if self.color else text


class Progress:
    """A bar on standard error; nothing at all where that is not a terminal."""

    def __init__(self, label: str, total: int) -> None:
        self._label = label
        self._total = total
        self._done = 0
        self._note = ""
        self._drawn = 0.0
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        self._draw()
        return self

    def advance(self, note: str = "") -> None:
        """One more is done."""
        self._done += 1
        self._note = note
        if time.monotonic() - self._drawn > _REDRAW_S or self._done == self._total:
            self._draw()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def clear(self) -> None:
        """Take the bar off the line, for what is printed next. The next advance draws it again."""
        self._drawn = 0.0
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        if not self._shown:
            return
        filled = _BAR * self._done // max(1, self._total)
        bar = "#" * filled + "." * (_BAR - filled)
        sys.stderr.write(f"\r{self._label} [{bar}] {self._done}/{self._total} {self._note}\x1b[K")
        sys.stderr.flush()
