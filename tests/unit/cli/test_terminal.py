"""This terminal while a process has it."""

from __future__ import annotations

import os
import pty
import signal
import termios

from hotbed.cli.terminal import raw, resizing, size_here, write_all


def test_a_terminal_is_put_back_as_it_was() -> None:
    """Whatever happens."""
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    try:
        with raw(slave):
            assert not termios.tcgetattr(slave)[3] & termios.ICANON
            raise KeyError
    except KeyError:
        pass

    assert termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)


def test_a_new_size_is_told() -> None:
    """By the signal that says so."""
    told = []

    class Process:
        def resize(self, rows: int, columns: int) -> None:
            told.append((rows, columns))

    with resizing(Process()):
        os.kill(os.getpid(), signal.SIGWINCH)
        while not told:
            pass

    assert told == [size_here()]


def test_all_of_it_is_written() -> None:
    """However little goes at once."""
    reader, writer = os.pipe()
    write_all(writer, b"x" * 1000)
    os.close(writer)

    assert os.read(reader, 2000) == b"x" * 1000
    os.close(reader)
