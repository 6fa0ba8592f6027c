"""Loading a candidate's source as a module of its own."""

from __future__ import annotations

import builtins
import linecache
import os
import signal
import sys
import types
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

CPU_SIGNAL = int(signal.SIGPROF)
_PROF = signal.ITIMER_PROF
_setitimer = signal.setitimer


@dataclass(frozen=True)
class Program:
    """A candidate as the judge sent it. `files` are written below the working directory before it is loaded."""

    code: str
    prelude: str = ""
    files: Tuple[Tuple[str, str], ...] = ()
    module: str = "solution"
    names: Tuple[str, ...] = ()
    cpu_s: float = 0.0
    _compiled: List[Any] = field(default_factory=list)
    _namespace: List[types.ModuleType] = field(default_factory=list)

    @classmethod
    def parse(cls, header: Dict[str, Any], body: bytes) -> Program:
        """The program of a load or prepare frame."""
        sizes = [header["code"], header["prelude"]] + [size for _, size in header["files"]]
        texts, start = [], 0
        for size in sizes:
            texts.append(body[start : start + size].decode("utf-8", "surrogatepass"))
            start += size
        paths = [path for path, _ in header["files"]]
        return cls(
            code=texts[0][1:] if texts[0].startswith("\ufeff") else texts[0],
            prelude=texts[1],
            files=tuple(zip(paths, texts[2:])),
            module=header["module"],
            names=tuple(header["names"]),
            cpu_s=header["cpu_s"],
        )

    def prepare(self) -> None:
        """What needs no byte of the candidate run: its files, its prelude, its syntax tree turned to code."""
        write_files(self.files)
        module = types.ModuleType(self.module)
        module.__file__ = os.path.join(os.getcwd(), self.module + ".py")
        if self.prelude:
            exec(compile(self.prelude, "prelude.py", "exec", dont_inherit=True), module.__dict__)
        self._namespace.append(module)
        try:
            self._compiled.append(compile(self.code, self.module + ".py", "exec", dont_inherit=True))
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
            pass  # whoever loads it compiles again and reports

    def load(self) -> types.ModuleType:
        """The module, its code run. Raises whatever the code raises."""
        if not self._namespace:
            self.prepare()
        module = self._namespace[0]
        sys.modules[self.module] = module
        file = self.module + ".py"
        linecache.cache[file] = (len(self.code), None, self.code.splitlines(True), file)
        code = self._compiled[0] if self._compiled else compile(self.code, file, "exec", dont_inherit=True)
        exec(code, module.__dict__)
        return module


def write_files(files: Tuple[Tuple[str, str], ...]) -> None:
    """Write a candidate's further files below the working directory, which becomes the first place to import from."""
    for path, text in files:
        target = os.path.normpath(path)
        if os.path.isabs(target) or target.split(os.sep)[0] == os.pardir:
            raise ValueError(f"file {path!r} is outside the working directory")
        if os.path.dirname(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8", errors="surrogatepass", newline="") as sink:
            sink.write(text)
    if files:
        sys.path.insert(0, os.getcwd())


def resolve(module: types.ModuleType, target: str) -> Any:
    """What a dotted name stands for; on the way through a class, a new instance of it."""
    parts = target.split(".")
    found = lookup(module, parts[0])
    for part in parts[1:]:
        found = getattr(found() if isinstance(found, type) else found, part)
    return found


def lookup(module: types.ModuleType, name: str) -> Any:
    """A name of the module; an error that says what is missing."""
    try:
        return module.__dict__[name]
    except KeyError:
        raise NameError(f"the candidate defines no {name!r}") from None


def limit_cpu(seconds: float) -> None:
    """Kill this process once it has used that much more CPU time; 0 lifts the limit. Sleeping costs nothing."""
    if seconds >= 0:
        _setitimer(_PROF, seconds)


def kind_of(module: types.ModuleType, name: str) -> Optional[str]:
    """What a name is: "f" callable, "c" class, "v" anything else, None where it is missing."""
    if name not in module.__dict__:
        return None
    value = module.__dict__[name]
    if isinstance(value, type):
        return "c"
    return "f" if builtins.callable(value) else "v"
