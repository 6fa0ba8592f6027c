"""The template process: what it loads and how it reports. The whole of it is exercised by tests/conformance."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from hotbed.guest import forkhooks, kernel
from hotbed.guest.template import zygote


@pytest.fixture
def own_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The interpreter as a template's is at its start: isolated, without site, our directory first."""
    monkeypatch.setattr(sys, "path", ["/.hotbed/lib", "/usr/lib/python3"])
    monkeypatch.setattr(sys, "argv", ["-c"])
    yield


def test_load_imports_agent_programs_and_preloads(own_path: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says what it preloaded."""
    monkeypatch.setattr(forkhooks, "hold", lambda: None)
    monkeypatch.setattr(sys, "path", ["/.hotbed/lib", *sys.path])

    agent, modules = zygote.load({"programs": ["candidate"], "packages": False, "preload": ["json", "decimal"]})

    assert modules == ["decimal", "json"] and callable(agent.main)
    assert "hotbed.guest.judging.candidate" in sys.modules and "decimal" in sys.modules


def test_preload_that_starts_threads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork has one thread: the others' work and locks would be lost."""
    for name in ("mount", "empty_bounding_set", "prctl", "trim_heap"):
        monkeypatch.setattr(kernel, name, lambda *_: pytest.fail("it went on"))
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="threads"):
            zygote.settle()
    finally:
        over.set()
        thread.join()
