"""A template imports what its environments will, and nothing of that can keep it from starting."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import hotbed.guest

PROBE = "import sys; sys.path.insert(0, {guest!r}); from guest.environments import env_preload, env_server; {then}"


def preload(then: str, **plan: Any) -> str:
    """What a template says after preloading."""
    environ = {"HOTBED_ENV_PRELOAD": json.dumps({"paths": [], "modules": [], "env": None, **plan})}
    guest = str(Path(hotbed.guest.__file__).parent.parent)
    command = [sys.executable, "-I", "-S", "-c", PROBE.format(guest=guest, then=then)]
    return subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout.strip()


def test_modules_are_warm_and_the_path_is_set() -> None:
    """Those of the requirements, from where they are mounted."""
    assert (
        preload("print('decimal' in sys.modules, sys.path[0])", paths=["/opt/x"], modules=["decimal"]) == "True /opt/x"
    )


def test_a_module_that_fails_is_left_to_the_environment(tmp_path: Path) -> None:
    """Even one that exits."""
    (tmp_path / "bad.py").write_text("raise SystemExit(1)")

    assert preload("print('on')", paths=[str(tmp_path)], modules=["bad", "none_such"]) == "on"


def test_the_environment_is_loaded_once_when_asked(tmp_path: Path) -> None:
    """And its failure is kept for each worker to report."""
    (tmp_path / "env.py").write_text("from hotbed.env import serve\nserve(id, id)")
    (tmp_path / "broken.py").write_text("1/0")
    good = preload("print(env_server._preloaded[0].environment is not None)", env=str(tmp_path / "env.py"))
    bad = preload(
        "print('ZeroDivisionError' in str(env_server._preloaded[0].failure))", env=str(tmp_path / "broken.py")
    )

    assert (good, bad) == ("True", "True")


def test_the_plan_is_not_left_in_the_environment_of_sandboxes() -> None:
    """It is nobody else's business."""
    assert preload("import os; print('HOTBED_ENV_PRELOAD' in os.environ)") == "False"
