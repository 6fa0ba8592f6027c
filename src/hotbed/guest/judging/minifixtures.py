"""The fixtures that a judge's small pytest brings along: `tmp_path`, `capsys`, `monkeypatch`.

What a test puts in place of `sys.stdout`, `sys.stdin` or `input`, and of names of the module under test, is there for
the candidate, too (see `callbacks.Surroundings` and `StubModule`); everything else is changed in the tests' world only.
"""

from __future__ import annotations

import importlib
import io
import os
import pathlib
import sys
import tempfile
from typing import Any, Callable, Dict, List, NamedTuple

_ABSENT: Any = object()


class Captured(NamedTuple):
    """What was written since the last look."""

    out: str
    err: str


class CapSys:
    """`sys.stdout` and `sys.stderr` as text, until closed."""

    def __init__(self) -> None:
        self._before = sys.stdout, sys.stderr
        self._streams = sys.stdout, sys.stderr = io.StringIO(), io.StringIO()

    def readouterr(self) -> Captured:
        """What was written, which is then forgotten."""
        texts = []
        for stream in self._streams:
            texts.append(stream.getvalue())
            stream.seek(0)
            stream.truncate()
        return Captured(*texts)

    def close(self) -> None:
        """Put the streams back."""
        sys.stdout, sys.stderr = self._before


class MonkeyPatch:
    """Changes that are undone when the test is over."""

    def __init__(self) -> None:
        self._undo: List[Callable[[], Any]] = []

    def setattr(self, target: Any, name: Any, value: Any = _ABSENT, raising: bool = True) -> None:
        """Set an attribute; `target` may be a dotted name in place of the first two arguments."""
        if value is _ABSENT:
            path, _, attribute = str(target).rpartition(".")
            target, name, value = importlib.import_module(path), attribute, name
        old = getattr(target, name, _ABSENT)
        if raising and old is _ABSENT:
            raise AttributeError(f"{target!r} has no attribute {name!r}")
        setattr(target, name, value)
        self._undo.append(lambda: delattr(target, name) if old is _ABSENT else setattr(target, name, old))

    def delattr(self, target: Any, name: str, raising: bool = True) -> None:
        """Delete an attribute."""
        old = getattr(target, name, _ABSENT)
        if old is not _ABSENT or raising:
            delattr(target, name)
            self._undo.append(lambda: setattr(target, name, old))

    def setitem(self, target: Any, name: Any, value: Any) -> None:
        """Set an item."""
        old = target.get(name, _ABSENT)
        target[name] = value
        self._undo.append(lambda: target.pop(name, None) if old is _ABSENT else target.__setitem__(name, old))

    def delitem(self, target: Any, name: Any, raising: bool = True) -> None:
        """Delete an item."""
        if name in target or raising:
            old = target.pop(name)
            self._undo.append(lambda: target.__setitem__(name, old))

    def chdir(self, path: Any) -> None:
        """Change the tests' working directory."""
        before = os.getcwd()
        os.chdir(path)
        self._undo.append(lambda: os.chdir(before))

    def close(self) -> None:
        """Undo it all, the last first."""
        while self._undo:
            self._undo.pop()()


def _tmp_path() -> pathlib.Path:
    return pathlib.Path(tempfile.mkdtemp())


#: Those that are closed after the test have `close`.
MAKE: Dict[str, Callable[[], Any]] = {"tmp_path": _tmp_path, "capsys": CapSys, "monkeypatch": MonkeyPatch}
