"""Turns: one process at a time, whatever becomes of it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hotbed.runtime.images.turns import Turns


class Waits(Exception):
    """It is somebody else's turn."""


def wait(_: int) -> None:
    """Told instead of waiting."""
    raise Waits


def test_a_turn_is_ones_own_and_ends(tmp_path: Path) -> None:
    """Other names are other turns, and nothing is left of one."""
    turns, others = Turns(tmp_path), Turns(tmp_path)

    with turns.turn("a", wait):
        assert others.is_taken("a") and not others.is_taken("b")
        with others.turn("b", wait), pytest.raises(Waits), others.turn("a", wait):
            pass

    assert not others.is_taken("a") and not os.listdir(tmp_path)


def test_a_turn_ends_with_its_process(tmp_path: Path) -> None:
    """However that ends."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        with Turns(tmp_path).turn("a", wait):
            os.write(writer, b".")
            signal.pause()
    os.read(reader, 1)
    assert Turns(tmp_path).is_taken("a")

    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(reader)
    os.close(writer)

    with Turns(tmp_path).turn("a", wait):
        assert Turns(tmp_path).is_taken("a")
