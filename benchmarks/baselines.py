"""What Hotbed is compared with: a bare fork that runs the same code, a cold interpreter, and one under bubblewrap.

The bare fork is the least that running Python code in a process of its own can cost: a small warm interpreter with one
thread forks, the child compiles and runs the code with its output in a pipe, the parent reads to the end and waits. It
isolates nothing and limits nothing. It runs in an interpreter of its own, so that this program's size is not in it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time

from benchmarks.measure import Timings, timings

CODE = "print(sum(range(1000)))"
EXPECTED = "499500\n"

_BARE_FORK = """
import io, json, os, sys, time
code, expected, gap = sys.argv[1], sys.argv[2].encode(), float(sys.argv[3])

def once():
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writer, 1)
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "wb", closefd=False), write_through=True)
        exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})
        sys.stdout.flush()
        os._exit(0)
    os.close(writer)
    data = b""
    while piece := os.read(reader, 65536):
        data += piece
    os.close(reader)
    os.waitpid(pid, 0)
    assert data == expected, data

while line := sys.stdin.readline():
    taken = []
    for _ in range(int(line)):
        time.sleep(gap)
        begun = time.perf_counter()
        once()
        taken.append(time.perf_counter() - begun)
    print(json.dumps(taken), flush=True)
"""


class BareFork:
    """The interpreter that forks. It is asked for so many forks at a time."""

    def __init__(self) -> None:
        argv = [interpreter(), "-S", "-c", _BARE_FORK, CODE, EXPECTED, "0.001"]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, count: int) -> list[float]:
        """Seconds of each."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        taken: list[float] = json.loads(self._process.stdout.readline())
        return taken

    def __enter__(self) -> BareFork:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def cold() -> Timings:
    """`python3 -c`."""
    return timings(lambda: _run([interpreter(), "-c", CODE]))


def under_bwrap() -> Timings | None:
    """The same under bubblewrap, with every namespace; None where it is not installed."""
    bwrap = shutil.which("bwrap")
    return timings(lambda: _run([bwrap, *_BWRAP, interpreter(), "-c", CODE])) if bwrap else None


_BWRAP = (
    "--ro-bind / / --tmpfs /tmp --tmpfs /work --dev /dev --proc /proc --unshare-all --die-with-parent --new-session "
    "--cap-drop ALL --chdir /work"
).split()


def interpreter() -> str:
    """The interpreter itself rather than the virtual environment's link to it, which makes a cold start slower."""
    return sys._base_executable if hasattr(sys, "_base_executable") else sys.executable


def _run(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.stdout == EXPECTED, done


def settle() -> None:
    """Let what the last measurement left behind come to rest."""
    time.sleep(0.2)
