"""What the system refuses to a node that starts."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from hotbed.errors import Error, InvalidRequest, NodeUnavailable
from hotbed.server.mistakes import refused


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        *((errno.EACCES, InvalidRequest), (errno.ENOENT, InvalidRequest), (socket.EAI_NONAME, InvalidRequest)),
        *((errno.EADDRINUSE, NodeUnavailable), (errno.EADDRNOTAVAIL, NodeUnavailable)),
        *((errno.ENOSPC, NodeUnavailable), (socket.EAI_AGAIN, NodeUnavailable)),
    ],
)
def test_what_lasts_is_a_mistake_and_what_may_pass_is_trouble(number: int, kind: type[Error]) -> None:
    """A service manager tries again after trouble."""
    error = refused(OSError(number, os.strerror(abs(number))), "it cannot", hint="so")

    assert (type(error), error.hint) == (kind, "so")
    assert error.message == f"it cannot: {os.strerror(abs(number))}"
