"""A job: a leading process (or several in turn), all that it starts, what they write, and a deadline.

It ends when the leader has ended, not when its pipes are closed: a background process may hold them open, and lives on.
Killing it, for whatever cause, reaches every process it started; what it wrote until then is kept.
"""

from __future__ import annotations

import os
import resource
from typing import Callable, Optional, Sequence

from ..credit import Credit
from . import processes
from .box import Box
from .capture import Capture, Stream
from .hunting import Claim
from .loop import Timer
from .pump import Pump
from .terminal import Terminal
from .verdict import Evidence

OnLeaderEnd = Callable[[int, resource.struct_rusage], None]

_LAST_WORDS = 4096


class Job:
    """Bookkeeping of one job; `on_leader_end` decides whether another leader follows or the job is over."""

    def __init__(self, box: Box, capture: Capture, *, kill_bytes: int, on_leader_end: OnLeaderEnd) -> None:
        box.open()
        self.box = box
        self.capture = capture
        self.cause: Optional[str] = None
        self.leader = 0
        self.pump: Optional[Pump] = None
        self.on_silence: Callable[[], None] = lambda: None
        self.terminal: Optional[Terminal] = None
        self.credit: Optional[Credit] = None
        self._held = False
        self._kill_bytes = kill_bytes
        self._on_leader_end = on_leader_end
        self._deadline: Optional[Timer] = None
        self._oom_kills = box.oom_kills.read() if box.oom_kills else 0
        self._fork_refusals = box.fork_refusals.read() if box.fork_refusals else 0
        self.claim = Claim(frozenset(), None, 0)

    def count_from_birth(self) -> None:
        """Blame it for all that was counted in this sandbox: nothing else has run here."""
        self._oom_kills = self._fork_refusals = 0

    def begin(self, ends: Sequence[int], mark: Optional[int], timeout_s: Optional[float]) -> None:
        """Watch the output and the clock."""
        self.claim = Claim(frozenset(), mark, processes.now_ticks())
        self.capture.attach(ends)
        for stream in self.capture.streams:
            if stream.fd >= 0:
                self._watch(stream)
        if timeout_s is not None:
            self._deadline = self.box.loop.after(timeout_s, lambda: self.kill("timeout"))
        self.box.enter(self)

    def follow(self, pid: int) -> None:
        """The leader is now `pid`."""
        self.leader = pid
        self.claim = self.claim._replace(leaders=self.claim.leaders | {pid})
        self.box.children.expect(pid, self._on_leader_end)

    def kill(self, cause: str) -> None:
        """Kill all of it; the leader's end then ends the job."""
        if self.cause is None:
            self.cause = cause
        self.box.kill(self)

    def finish(self) -> None:
        """Take what is in the pipes, and let go of everything."""
        if self._deadline is not None:
            self._deadline.cancel()
        if self.pump is not None:
            self.pump.close()
        for stream in self.capture.streams:
            if stream.fd >= 0:
                self.box.loop.unwatch(stream.fd)
                if self.capture.drain(stream) or self.terminal is not None:
                    os.close(stream.fd)  # which hangs a terminal up
                else:
                    self.box.lingering.add(stream.fd)
                stream.fd = -1
        self.box.leave(self)

    def evidence(self, exit_code: Optional[int], number: Optional[int], maxrss_kib: int) -> Evidence:
        """What is known about the end."""
        box = self.box
        failed = exit_code != 0
        return Evidence(
            cause=self.cause,
            exit_code=exit_code,
            signal=number,
            maxrss_kib=maxrss_kib,
            memory_mib=box.memory_mib,
            oom_kills=box.oom_kills.read() - self._oom_kills if failed and box.oom_kills else None,
            fork_refusals=box.fork_refusals.read() - self._fork_refusals if failed and box.fork_refusals else None,
            disk_full=failed and disk_full(),
            last_words=self.capture.streams[1].last(_LAST_WORDS) if failed else b"",
        )

    def give(self, amount: int) -> None:
        """The reader has taken so much of what was passed on."""
        if self.credit is None:
            return
        self.credit.give(amount)
        if self._held and not self.credit.is_spent():
            self._held = False
            for stream in self.capture.streams:
                if stream.fd >= 0:
                    self._watch(stream)

    def _hold(self) -> None:
        """Leave what comes in the pipes, which holds the program up and nobody else."""
        self._held = True
        for stream in self.capture.streams:
            if stream.fd >= 0:
                self.box.loop.unwatch(stream.fd)

    def _watch(self, stream: Stream) -> None:
        self.box.loop.watch(stream.fd, lambda: self._readable(stream))

    def _readable(self, stream: Stream) -> None:
        count = self.capture.read(stream)
        if count == 0:
            self.box.loop.unwatch(stream.fd)
            os.close(stream.fd)
            stream.fd = -1
            if all(other.fd < 0 for other in self.capture.streams):
                self.on_silence()
        elif self.capture.total() > self._kill_bytes and self.cause is None:
            self.kill("output")
        elif self.credit is not None and self.credit.is_spent() and not self._held:
            self._hold()


def disk_full() -> bool:
    """Whether a small file could not be written any more."""
    try:
        room = os.statvfs("/")
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < 64 << 10 or (room.f_files > 0 and room.f_favail == 0)
