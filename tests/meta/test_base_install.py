"""A base install is the standard library, and loads quickly: trainers import the SDK in every worker."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import hotbed
from tests.meta.tree import PACKAGE, imports, named, parsed, python_files

STDLIB_ONLY = ("sdk", "wire", "grading", "guest")
#: Slow to load, or the start of a thread or an event loop: loaded when first needed, not by `import hotbed`.
LATE = {
    "asyncio",
    "concurrent.futures",
    "ctypes",
    "email",
    "http",
    "logging.handlers",
    "multiprocessing",
    "sqlite3",
    "ssl",
    "unittest",
    "urllib.request",
    "xml",
}
#: `-S`: site-packages is not even on the path. Prints what an import loaded and how long it took.
PROBE = """
import json, sys, time
sys.path.insert(0, {path!r})
before, start = set(sys.modules), time.perf_counter()
{statement}
spent = time.perf_counter() - start
print(json.dumps([1e3 * spent, sorted(set(sys.modules) - before)]))
"""


def load(statement: str) -> tuple[float, list[str]]:
    """Milliseconds and modules that an import statement costs a fresh interpreter."""
    path = str(Path(hotbed.__file__).parents[1])
    probe = [sys.executable, "-I", "-S", "-c", PROBE.format(path=path, statement=statement)]
    spent, modules = json.loads(subprocess.run(probe, check=True, capture_output=True, text=True).stdout)
    return spent, modules


def test_import_loads_only_the_standard_library() -> None:
    """The SDK installs beside any trainer without a conflict, since it brings nothing."""
    _, modules = load("from hotbed import *")

    foreign = [name for name in modules if name.split(".")[0] not in {*sys.stdlib_module_names, "hotbed"}]

    assert foreign == []


def test_import_leaves_the_slow_modules_for_later() -> None:
    """What costs milliseconds is loaded by what needs it."""
    _, modules = load("import hotbed")

    assert LATE.intersection(modules) == set()


def test_import_costs_less_than_an_event_loop(record_property: Callable[[str, object], None]) -> None:
    """The bar is a ratio in one run: best of five against `import asyncio`, which takes 50 ms on a slow machine."""
    ours = min(load("import hotbed")[0] for _ in range(5))
    asyncio = min(load("import asyncio")[0] for _ in range(5))
    record_property("import_hotbed_ms", round(ours, 1))
    record_property("import_asyncio_ms", round(asyncio, 1))

    assert ours < asyncio


def test_client_rooms_import_nothing_from_outside() -> None:
    """Also inside functions, where the import of `hotbed` would not show it."""
    files = [*python_files(*(PACKAGE / room for room in STDLIB_ONLY)), PACKAGE / "errors.py"]
    foreign = [
        f"{named(file)}:{line} {module}"
        for file in files
        for line, level, module in imports(parsed(file))
        if level == 0 and module.split(".")[0] not in {*sys.stdlib_module_names, "hotbed"}
    ]

    assert foreign == []
