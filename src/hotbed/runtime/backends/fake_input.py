"""What can be done to an exec of the fake backend while it runs."""

from __future__ import annotations

import asyncio
import os
import signal as signals

from hotbed.runtime.backends.fake_run import Run, Started, kill_marked


class FakeRunning:
    """One exec's controls."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def _live(self) -> Started | None:
        started = self._run.started
        return started if started is not None and not started.exited.done() else None

    async def feed(self, data: bytes) -> None:
        """Write it in a thread, which may wait as long as the process does not read."""
        started = self._live()
        if started is not None and started.process.stdin is not None:
            await asyncio.to_thread(_write_all, started.process.stdin.fileno(), data)

    def end_input(self) -> None:
        """Close its stdin."""
        started = self._live()
        if started is not None and started.process.stdin is not None:
            started.process.stdin.close()

    def signal(self, number: int) -> None:
        """Signal its process group."""
        started = self._live()
        if started is not None:
            os.killpg(started.process.pid, number)

    def resize(self, rows: int, columns: int) -> None:
        """It has no terminal."""

    def kill(self) -> None:
        """Kill its tree."""
        started = self._live()
        if started is not None:
            os.killpg(started.process.pid, signals.SIGKILL)
            kill_marked(self._run.mark)


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(fd, left) :]
    except OSError:
        return  # it does not read any more, or has ended
