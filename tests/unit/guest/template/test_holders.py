"""Holders are reaped like anybody else."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Sequence

import pytest

from hotbed.guest.template import holders, layers


def test_a_holder_answers_and_is_reaped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of it."""

    def become(_order: object, pid: int, fds: Sequence[int]) -> None:
        os.write(fds[0], str(pid).encode())
        os._exit(0)

    monkeypatch.setattr(layers, "become_holder", become)
    held = holders.Holders()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pidfd = held.start({}, 42, [theirs.fileno()])
        holder = held._pids[pidfd]
        assert ours.recv(8) == b"42"
        select.select([pidfd], [], [], 10)
        held.reap(pidfd)

    with pytest.raises(ChildProcessError):
        os.waitpid(holder, os.WNOHANG)
