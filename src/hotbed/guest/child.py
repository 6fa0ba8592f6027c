"""What a fork of the agent does first, whatever it will be: a session, signals and descriptors of its own."""

from __future__ import annotations

import os
import resource
import signal
from types import FrameType
from typing import Any, Callable, Dict, Optional, Union

_Handler = Union[Callable[[int, Optional[FrameType]], Any], int]

# The handlers a fresh interpreter has that are not SIG_DFL; the template may have changed any of them.
_FRESH: Dict[int, _Handler] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGPIPE: signal.SIG_IGN,
    signal.SIGXFSZ: signal.SIG_IGN,
}
_SIGNALS = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]
_INHERITED_UNTIL = 1 << 20


def become(stdin: int, stdout: int, stderr: int, *, keep: Optional[int] = None) -> Optional[int]:
    """Detach from the agent: new session, fresh signals, the given stdio and nothing else open, umask 022.

    Returns the new number of the descriptor to keep, if one was given.
    """
    os.setsid()
    reset_signals()
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    if keep is not None:
        keep = os.dup2(keep, 3, inheritable=False) if keep != 3 else keep
    os.closerange(3 if keep is None else 4, _highest())
    os.umask(0o022)
    return keep


def reset_signals() -> None:
    """Handlers and mask as in a fresh interpreter."""
    signal.set_wakeup_fd(-1)
    for number in _SIGNALS:
        wanted = _FRESH.get(number, signal.SIG_DFL)
        if signal.getsignal(number) not in (wanted, None):
            signal.signal(number, wanted)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _highest() -> int:
    """One more than the highest descriptor there can be: close_range(2) does not care how far it is, a loop does."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return _INHERITED_UNTIL if hard == resource.RLIM_INFINITY else hard
