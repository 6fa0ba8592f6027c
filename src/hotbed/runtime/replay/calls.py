"""The system calls that level `full` stops because time is in them: which argument holds it, and in what form."""

from __future__ import annotations

from typing import Literal, NamedTuple

CLOCK_GETTIME, GETTIMEOFDAY, TIME = 228, 96, 201
NANOSLEEP, CLOCK_NANOSLEEP, FUTEX = 35, 230, 202
GETRANDOM, ARCH_PRCTL, READ = 318, 158, 0
OPEN, OPENAT, OPENAT2 = 2, 257, 437
SET_ROBUST_LIST = 273  # what the C library calls first in a forked process
REALTIME, MONOTONIC = 0, 1
FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_CLOCK_REALTIME, FUTEX_COMMAND = 0, 9, 256, 0x7F
TIMER_ABSTIME = 1


class Timeout(NamedTuple):
    """Where a waiting call's timeout is; `events` is the argument that counts what it waits for (0: it only sleeps)."""

    argument: int
    form: Literal["ms", "timespec", "timeval"]
    events: int | None


WAITS = {
    7: Timeout(2, "ms", 1),  # poll
    271: Timeout(2, "timespec", 1),  # ppoll
    23: Timeout(4, "timeval", 0),  # select
    270: Timeout(4, "timespec", 0),  # pselect6
    232: Timeout(3, "ms", None),  # epoll_wait
    281: Timeout(3, "ms", None),  # epoll_pwait
    441: Timeout(3, "timespec", None),  # epoll_pwait2
    128: Timeout(2, "timespec", None),  # rt_sigtimedwait
}
