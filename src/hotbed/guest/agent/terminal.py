"""A terminal for one exec: a pseudo-terminal of the sandbox's own devpts, made here and held by the agent.

The program gets the other end as its controlling terminal by being the first of its session to open it. Nothing of the
host's terminals is involved, and the filter refuses to push input into one (TIOCSTI), its own included. When the exec
is over, the agent closes its end and whatever is left on the terminal is hung up, as by a closing window.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from typing import Tuple

_TIOCGPTN, _TIOCSPTLCK, _TIOCSWINSZ = 0x80045430, 0x40045431, 0x5414  # include/uapi/asm-generic/ioctls.h
END_OF_INPUT = b"\x04"  # what the line discipline takes for an end of file at the start of a line
TYPE = "xterm-256color"


class Terminal:
    """Our end of it. `path` is where the program finds its own."""

    def __init__(self, rows: int, columns: int) -> None:
        """Make it. Raises OSError."""
        self.fd = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            (number,) = struct.unpack("i", fcntl.ioctl(self.fd, _TIOCGPTN, bytes(4)))
            fcntl.ioctl(self.fd, _TIOCSPTLCK, bytes(4))
            self.path = f"/dev/pts/{number}"
            self.resize(rows, columns)
        except BaseException:
            os.close(self.fd)
            raise

    def resize(self, rows: int, columns: int) -> None:
        """Its size from now on; who is in front on it hears SIGWINCH."""
        fcntl.ioctl(self.fd, _TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def size_of(value: object) -> Tuple[int, int]:
    """Rows and columns as they come in a request. Raises ValueError."""
    if type(value) is not list or len(value) != 2 or not all(type(n) is int and 0 < n < 1 << 16 for n in value):
        raise ValueError("a terminal's size is [rows, columns]")
    return value[0], value[1]


def is_hung_up(error: OSError) -> bool:
    """What reading our end says when nobody holds the other any more."""
    return error.errno == errno.EIO
