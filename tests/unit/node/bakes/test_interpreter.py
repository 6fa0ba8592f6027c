"""What an image's Python tells of itself is read with care. tests/e2e/test_images.py asks real ones."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hotbed.node.bakes import interpreter


def test_a_real_python_tells_what_it_is() -> None:
    """By the very program that images are asked with."""
    printed = subprocess.run([sys.executable, "-c", interpreter._ASK], capture_output=True, check=True).stdout

    found, note = interpreter.read(printed)

    assert found is not None and note == ""
    assert found.executable == sys.executable and found.version == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (b"", "does not tell"),
        (b"/p\t3.7.9\tcpython\t\n", "needs CPython 3.8"),
        (b"/p\t2.7.18\tNone\t\n", "needs CPython"),
        (b"/p\t3.10.1\tpypy\t\n", "pypy 3.10.1"),
        (b"/p\t3.11.2\tcpython\tctypes select\n", "lacks ctypes select"),
        (b"python\t3.11.2\tcpython\t\n", "where it is"),
        (b"/p\tx\tcpython\t\n", "needs CPython"),
        (b"\xff" * 100, "does not tell"),
    ],
)
def test_one_that_cannot_run_the_guest_is_named(printed: bytes, words: str) -> None:
    """The note is what a user sees when code is refused."""
    found, note = interpreter.read(printed)

    assert found is None and words in note
