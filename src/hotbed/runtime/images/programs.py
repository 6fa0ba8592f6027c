"""Programs of others that are run for a job, and end with it: when it is given up, and with a node that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hotbed.runtime.images.manifests import BadImage

_POLL_S = 0.2


def run(
    command: Sequence[str], *, tick: Callable[[], object], patience_s: float, **who: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run one to its end, with what it printed. Whoever gives the job up makes `tick` raise. Raises `BadImage`.

    `who` it runs as goes to `subprocess.Popen`.
    """
    waiting = ["/bin/sh", "-c", 'read _ && exec "$@"', "sh", *command]  # until somebody watches over it
    process = subprocess.Popen(
        waiting,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **who,
    )
    with _ending_with_us(process):
        try:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            out, err = _wait(process, os.path.basename(command[0]), tick, time.monotonic() + patience_s)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@contextmanager
def _ending_with_us(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """While this is open, the end of this process is that of the other and of all that it has started.

    A node that is killed takes its builder along, and that has no time for it. A shell holds the end of a pipe whose
    other end only we have. (A signal at the parent's end would reach the program alone, not what that has started.)
    """
    watcher = subprocess.Popen(
        ["/bin/sh", "-c", 'read _; kill -9 "-$0"', str(process.pid)], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield
    finally:
        watcher.kill()
        watcher.communicate()


def _wait(
    process: subprocess.Popen[bytes], name: str, tick: Callable[[], object], deadline: float
) -> tuple[bytes, bytes]:
    while True:
        try:
            return process.communicate(timeout=_POLL_S)
        except subprocess.TimeoutExpired:
            tick()
            if time.monotonic() > deadline:
                raise BadImage(f"{name} took too long") from None
