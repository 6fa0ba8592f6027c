"""Descent and memory, as /proc has them."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

from hotbed.guest.agent import processes
from hotbed.guest.agent.processes import Process, below, closure

TREE = {
    10: Process(parent=1, session=10, start=5, alive=True),
    11: Process(parent=10, session=10, start=6, alive=True),
    12: Process(parent=11, session=12, start=7, alive=True),
    13: Process(parent=1, session=12, start=8, alive=True),
    14: Process(parent=13, session=14, start=9, alive=True),
    20: Process(parent=1, session=20, start=5, alive=True),
}


def test_closure_follows_children_and_sessions() -> None:
    """13 is an orphan, in a session that a descendant leads."""
    assert closure(TREE, [10]) == {10, 11, 12, 13, 14}
    assert closure(TREE, [20]) == {20}


def test_below_follows_children_only() -> None:
    """Everybody is below pid 1, which may not be in the table."""
    assert set(below(TREE, 10)) == {11, 12}
    assert set(below(TREE, 1)) == set(TREE)


def test_looks_at_itself_and_not_at_the_dead() -> None:
    """Names with spaces and brackets included."""
    child = subprocess.Popen(["bash", "-c", "exec -a 'a) (b' sleep 5"])
    about = processes.look(child.pid)
    child.kill()
    child.wait()

    assert about is not None
    assert (about.parent, about.alive) == (os.getpid(), True)
    assert about.start <= processes.now_ticks()
    assert processes.look(child.pid) is None
    assert os.getpid() in processes.table()


def test_memory_is_counted() -> None:
    """What is shared is divided in one count and not in the other."""
    pids = [os.getpid()]

    assert processes.resident_kib(pids) >= processes.proportional_kib(pids) > 1000
    assert processes.resident_kib([2**22]) == 0


def test_threads_are_counted_and_not_only_processes() -> None:
    """Limits count them."""
    before, over = processes.threads(), threading.Event()
    here = len(os.listdir("/proc/self/task"))  # not `threading`'s count: whoever runs the tests may have others
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert processes.threads() > 0 and before > 0
        assert int(Path("/proc/self/stat").read_text().rpartition(") ")[2].split()[17]) == here + 1
    finally:
        over.set()
        thread.join()
