"""The published client, in a virtual environment of its own, and programs for it.

The environment is made once and kept in pytest's cache. Where it cannot be made (no network), the tests are skipped.
"""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

REQUIREMENTS = ("collimate-rl==0.8.0", "rich>=13", "pytest>=7")
OPENING = """
import collimate_rl as C, os, json
def refused(call):
    try:
        found = call()
    except Exception as error:
        return error.status, getattr(error, "code", None) or error.error_code, str(error)
    raise AssertionError(f"was not refused: {found!r}")
"""


@dataclass(frozen=True, kw_only=True)
class Published:
    """The environment's interpreter and where its programs run."""

    python: Path
    directory: Path

    def run(self, program: str, **variables: str) -> str:
        """Run a program against the client; what it printed. It must end well."""
        return self.call([str(self.python), "-c", OPENING + program], **variables)

    def command(self, *words: str, **variables: str) -> str:
        """Run a command of the client's."""
        return self.call([str(self.python.with_name("collimate")), *words], **variables)

    def call(self, argv: list[str], **variables: str) -> str:
        """Run anything with the client's variables and none of ours."""
        done = subprocess.run(
            argv, cwd=self.directory, env=plain(variables), capture_output=True, text=True, timeout=50, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout


def plain(variables: Mapping[str, str]) -> dict[str, str]:
    """An environment without proxies, and without what names a server."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR")
    return {**{name: os.environ[name] for name in kept if name in os.environ}, "COLUMNS": "100", **variables}


def install(directory: Path) -> Path:
    """The interpreter of the environment. Skips the test when it cannot be made."""
    with (directory / "making").open("w") as making:
        fcntl.flock(making, fcntl.LOCK_EX)  # files of tests run side by side
        return _installed(directory)


def _installed(directory: Path) -> Path:
    python = directory / "venv/bin/python"
    stamp = directory / "made"
    if not stamp.exists():
        steps = (
            [sys.executable, "-m", "venv", "--clear", str(directory / "venv")],
            [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS],
        )
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, timeout=300, check=False)
            if done.returncode:
                pytest.skip(f"the published client cannot be installed here: {done.stderr[-200:]}")
        stamp.touch()
    return python


def free_port() -> int:
    """A TCP port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
