"""The short way through an exec that nothing disturbs.

Most programs print a little and end. For one that is the only thing in its sandbox, the agent just reads its two pipes
to their end; the loop, timers and the job's books are set up only when something else happens: the deadline, too much
output, a frame from the node, the end of any child (an orphan's too, which has to be reaped), an output that outlives
the program or is closed by it, a failure. Each page that all this would write to is a fault saved.
"""

from __future__ import annotations

import os
import select
import time
from typing import Dict, Sequence

from .capture import Capture, Stream


def read_to_the_end(
    capture: Capture, ends: Sequence[int], others: Sequence[int], *, seconds: float, most_bytes: int
) -> bool:
    """Read both pipes until their ends, and close them. False as soon as anything else is to be done.

    That is also so when one of the `others` is ready and the pipes are not at their ends yet.
    """
    capture.attach(ends)
    poll = select.poll()
    for fd in others:
        poll.register(fd, select.POLLIN)
    left: Dict[int, Stream] = {}
    for stream in capture.streams:
        poll.register(stream.fd, select.POLLIN)
        left[stream.fd] = stream
    until = time.monotonic() + seconds
    while left:
        events = poll.poll(max(0.0, until - time.monotonic()) * 1000)
        if not events or capture.total() > most_bytes:
            return False
        ready = [fd for fd, _ in events]
        _take(capture, left, poll, ready)
        if left and any(fd in others for fd in ready):
            return False
    return True


def _take(capture: Capture, left: Dict[int, Stream], poll: select.poll, ready: Sequence[int]) -> None:
    """Read what there is, and let go of the pipes that are at their end."""
    for fd in ready:
        if fd in left and capture.read(left[fd]) == 0:
            poll.unregister(fd)
            os.close(fd)
            left.pop(fd).fd = -1
