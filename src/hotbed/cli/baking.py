"""How far a bake is, as it is shown on a terminal: phases as they come, what commands print, one line that moves."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from hotbed.cli.output import Output
from hotbed.wire.templates import TemplateRow


class Live:
    """Told of a bake again and again."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._phase = ""
        self._shown = 0
        self._begun = time.monotonic()
        self._moves = sys.stderr.isatty()

    def __enter__(self) -> Live:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear()

    def show(self, row: TemplateRow) -> None:
        """How far it is now."""
        self._clear()
        if row.phase != self._phase:
            self._phase = row.phase
            self._output.talk(f"{time.monotonic() - self._begun:6.1f} s  {row.phase.lower()}")
        if len(row.log) < self._shown:  # a node that was restarted begins the step again
            self._shown = 0
        fresh = row.log[self._shown :]
        if "\n" in fresh:
            fresh = fresh[: fresh.rindex("\n") + 1]
            sys.stderr.write(fresh)
            self._shown += len(fresh)
        if self._moves and row.progress:
            sys.stderr.write("\r  " + line_of(row) + "\x1b[K")
            sys.stderr.flush()

    def _clear(self) -> None:
        if self._moves:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def line_of(row: TemplateRow) -> str:
    """The present step in a line."""
    about = row.progress
    step, parts = str(about.get("step", "")), ""
    if about.get("layers"):
        parts = f" layer {about.get('layer')}/{about['layers']}"
    elif about.get("commands"):
        parts = f" {about.get('command')}/{about['commands']}"
    size = f" {int(about['at']) / 1e6:.0f} MB" if isinstance(about.get("at"), int) else ""
    return f"{step}{parts}{size}"
