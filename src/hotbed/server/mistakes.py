"""What the system refuses to a node that starts: a mistake of whoever started it, or trouble that may pass.

The exit code tells which (docs/reference/cli.md), and a service manager goes by it: it tries again after trouble. So
what is not known to last is trouble.
"""

from __future__ import annotations

import errno
import socket

from hotbed.errors import Error, InvalidRequest, NodeUnavailable

_LASTING = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS),
        *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG),
        socket.EAI_NONAME,
    }
)


def refused(error: OSError, what: str, *, hint: str | None = None) -> Error:
    """The error to raise for what could not be done."""
    kind = InvalidRequest if error.errno in _LASTING else NodeUnavailable
    return kind(f"{what}: {error.strerror}", hint=hint)
