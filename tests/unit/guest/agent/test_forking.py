"""A fork without ceremony is a fork."""

from __future__ import annotations

import os

import pytest

from hotbed.guest import forkhooks
from hotbed.guest.agent import forking


@pytest.mark.parametrize("dispensable", [False, True])
def test_the_child_is_a_whole_interpreter(dispensable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads, subprocesses and imports work there."""
    monkeypatch.setattr(forkhooks, "dispensable", dispensable)
    end, out = os.pipe()
    pid = forking.fork()
    if pid == 0:
        code = 1
        try:
            import subprocess
            import threading

            words: list[bytes] = []
            thread = threading.Thread(target=lambda: words.append(subprocess.check_output(["echo", "fine"])))
            thread.start()
            thread.join()
            os.write(out, words[0])
            code = 0
        finally:
            os._exit(code)
    os.close(out)
    status = os.waitpid(pid, 0)[1]

    assert (status, os.read(end, 100)) == (0, b"fine\n")
    os.close(end)
