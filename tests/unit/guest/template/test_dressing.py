"""A bare interpreter, dressed, is what a program expects. Tried in real ones, started as a template is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hotbed
from hotbed.guest.template import dressing

_SOURCE = str(Path(hotbed.__file__).resolve().parents[1])
_TRY = """
import json, sys
sys.path.insert(0, {source!r})
from hotbed.guest.template import dressing
sys.path[0] = "/.hotbed/lib"
sys.modules.pop("site", None)
dressing.dress({config!r})
print(json.dumps([sys.path, "quit" in dir(__builtins__), sys.argv]))
"""


def dressed(config: dict[str, Any], **env: str) -> Any:
    """What such an interpreter looks like."""
    code = _TRY.format(source=_SOURCE, config=config)
    found = subprocess.run(
        [sys.executable, "-s", "-S", "-c", code], env={"PYTHONPATH": "", **env}, capture_output=True, check=True
    )
    return json.loads(found.stdout)


def test_the_hosts_has_its_packages_where_the_template_put_them() -> None:
    """And nothing of ours on its path."""
    path, has_quit, argv = dressed({"packages": True})

    assert path[0] == "/opt/packages" and "/.hotbed/lib" not in path and has_quit and argv == [""]


def test_an_images_is_what_its_own_site_makes_of_it() -> None:
    """With the variables of the image."""
    path, has_quit, _ = dressed({"python": True}, PYTHONPATH="/app:/lib2")

    assert "/.hotbed/lib" not in path and has_quit
    assert path[:2] == ["/app", "/lib2"] and any("packages" in entry for entry in path)


@pytest.fixture
def own_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The interpreter as a template's is at its start: isolated, without site, our directory first."""
    monkeypatch.setattr(sys, "path", ["/.hotbed/lib", "/usr/lib/python3"])
    monkeypatch.setattr(sys, "argv", ["-c"])
    yield


def test_dressed_interpreter_looks_like_any_other(own_path: None) -> None:
    """`exit` exists, site-packages are on the path, and our directory is not."""
    dressing.as_host(packages=True)

    assert sys.path[0] == "/opt/packages"
    assert "/.hotbed/lib" not in sys.path
    assert callable(exit)


def test_packages_are_on_the_path_only_if_there_are_any(own_path: None) -> None:
    """A directory that does not exist would puzzle whoever prints sys.path."""
    dressing.as_host(packages=False)

    assert "/opt/packages" not in sys.path
