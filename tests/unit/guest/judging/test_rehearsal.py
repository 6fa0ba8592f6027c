"""A rehearsal plays every part and leaves nothing of it."""

from __future__ import annotations

import subprocess
import sys

_REHEARSE = """
import gc, linecache, os, random, signal, sys
from hotbed.guest.judging import rehearsal

state, path, files = random.getstate(), list(sys.path), set(os.listdir("/proc/self/fd"))
rehearsal.run(2)
gc.collect()

assert random.getstate() == state
assert sys.path == path
assert "solution" not in sys.modules and "solution.py" not in linecache.cache
assert signal.getsignal(signal.SIGPROF) == signal.SIG_DFL
assert len(os.listdir("/proc/self/fd")) == len(files)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("nothing is left")
"""


def test_nothing_of_it_is_left() -> None:
    """Whatever stayed would be in every sandbox."""
    done = subprocess.run([sys.executable, "-c", _REHEARSE], capture_output=True, text=True, timeout=60)

    assert done.stdout == "nothing is left\n", done.stderr
