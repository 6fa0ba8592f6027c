"""Programs end with their job, however that ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from hotbed.runtime.images import programs
from hotbed.runtime.images.manifests import BadImage


def nothing() -> None:
    """Nobody asks how far it is."""


def test_what_it_printed_and_how_it_ended_is_told() -> None:
    """Both streams apart."""
    ended = programs.run(["sh", "-c", "echo out; echo err >&2; exit 3"], tick=nothing, patience_s=60)

    assert (ended.returncode, ended.stdout, ended.stderr) == (3, b"out\n", b"err\n")


def test_one_that_takes_too_long_is_named() -> None:
    """And is gone, with what it started."""
    with pytest.raises(BadImage, match="sh took too long"):
        programs.run(["sh", "-c", "sleep 1000 & sleep 1000"], tick=nothing, patience_s=0)


def test_it_ends_with_who_started_it() -> None:
    """With all that it started: who is killed has no time to end it."""
    reader, writer = os.pipe()
    code = (
        "from hotbed.runtime.images import programs\n"
        f"command = ['sh', '-c', 'sleep 1000 & echo $! >/proc/self/fd/{writer}; wait']\n"
        f"programs.run(command, tick=bool, patience_s=60, pass_fds=({writer},))\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", code], pass_fds=(writer,))
    os.close(writer)
    with os.fdopen(reader, "rb") as said:
        pid = int(said.readline())
        starter.kill()
        starter.wait()
        assert said.read() == b""  # the last who held the other end is gone

    deadline = time.monotonic() + 20
    while os.path.exists(f"/proc/{pid}/exe") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{pid}/exe")
