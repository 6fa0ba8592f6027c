"""What a fork of the agent does first, whatever it will be: a session, signals and descriptors of its own."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed leaves it out
import os
import resource
from typing import List, Optional, Tuple

# What a fresh interpreter has where it is not the default.
_FRESH = {
    _signal.SIGINT: _signal.default_int_handler,
    _signal.SIGPIPE: _signal.SIG_IGN,
    _signal.SIGXFSZ: _signal.SIG_IGN,
}
# By names of their own, so that a rehearsal can leave these steps out (see `warming`).
_setsid, _closerange = os.setsid, os.closerange

_NEVER = (int(_signal.SIGKILL), int(_signal.SIGSTOP))
# The agent's own, and the one that a pid 1 is safer without.
_changed: List[Tuple[int, object]] = [
    (_signal.SIGCHLD, _signal.SIG_DFL),
    (_signal.SIGINT, _signal.default_int_handler),
]


def become(stdin: int, stdout: int, stderr: int, *, keep: Optional[int] = None) -> Optional[int]:
    """Detach from the agent: new session, fresh signals, the given stdio and nothing else open, umask 022.

    Returns the new number of the descriptor to keep, if one was given.
    """
    _setsid()
    reset_signals()
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    if keep is not None:
        keep = os.dup2(keep, 3, inheritable=False) if keep != 3 else keep
    _closerange(3 if keep is None else 4, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    os.umask(0o022)
    return keep


def reset_signals() -> None:
    """Handlers and mask as in a fresh interpreter. Through the C module: `signal` makes an enum of every number."""
    _signal.set_wakeup_fd(-1)
    for number, handler in _changed:
        _signal.signal(number, handler)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def note_signals() -> None:
    """In the template, once: which handlers a preloaded module changed, so that each fork resets just those."""
    for number in range(1, _signal.NSIG):
        wanted = _FRESH.get(number, _signal.SIG_DFL)
        if number not in _NEVER and _signal.getsignal(number) not in (wanted, None):
            _changed.append((number, wanted))
