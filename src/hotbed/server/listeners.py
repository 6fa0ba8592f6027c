"""Where a node listens: a Unix socket that only its user can reach, a TCP port, or both.

One node owns a Unix socket, by a lock on the file beside it (`node.pid` for `node.sock`) that it holds until it is
gone. So a socket found in place belongs to nobody any more, and may be replaced. It appears by a rename, already
listening: whoever finds it is served.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path

from hotbed.errors import InvalidRequest, NodeUnavailable
from hotbed.server.mistakes import refused
from hotbed.server.settings import Settings

BACKLOG = 512
LOCK_WAIT_S = 10.0
_ENDING = "ending"
SOCKET_PATH_LIMIT = 107  # sun_path less its NUL, man 7 unix
_BESIDE = len("-lanes.new")  # what the longest name beside it adds: that of the lanes' socket while it is made


class SocketOwnership:
    """The lock that makes this process the one owner of a Unix socket path."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd

    @classmethod
    def take(cls, socket_path: Path, *, wait_s: float = LOCK_WAIT_S) -> SocketOwnership:
        """Become the owner; a node that is just ending is waited for. Raises `NodeUnavailable` for one that stays."""
        path = socket_path.with_suffix(".pid")
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            hint = "give the socket a directory that exists and is yours"
            raise refused(error, f"{path} cannot be written", hint=hint) from None
        deadline = time.monotonic() + wait_s
        while not _try_lock(fd):
            owner = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            if time.monotonic() > deadline or (is_served(socket_path) and not owner.endswith(_ENDING)):
                os.close(fd)
                raise NodeUnavailable(f"process {owner} already serves {socket_path}", hint="use it, or stop it first")
            time.sleep(0.05)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        return cls(socket_path, fd)

    def announce_end(self) -> None:
        """Go on listening, and have who wants the path wait for it."""
        os.pwrite(self._fd, f"{os.getpid()} {_ENDING}\n".encode(), 0)

    def withdraw(self) -> None:
        """Take the socket away, so that new clients start a new node. Idempotent; ownership stays."""
        self._path.unlink(missing_ok=True)

    def release(self) -> None:
        """Give up ownership."""
        self.withdraw()
        os.close(self._fd)


def is_served(path: Path) -> bool:
    """Whether somebody listens on a Unix socket. One that is ending has taken its socket away."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def listen(settings: Settings) -> list[socket.socket]:
    """The listening sockets."""
    path = settings.socket_path
    listeners = [listen_unix(path)] if path is not None else []
    if settings.port:
        listeners.append(listen_tcp(settings.host, settings.port, dead_after_s=settings.lease_ttl_s))
    return listeners


def check_length(path: Path) -> None:
    """Refuse a path that is too long for a socket's, or for those beside it."""
    if len(os.fsencode(path)) + _BESIDE > SOCKET_PATH_LIMIT:
        raise InvalidRequest(
            f"socket path {str(path)[:200]!r} is too long: {SOCKET_PATH_LIMIT - _BESIDE} bytes at most",
            hint="give a shorter --uds, or set HOTBED_RUNTIME_DIR to a shorter directory",
        )


def listen_unix(path: Path) -> socket.socket:
    """A Unix socket that only this user can connect to, replacing whatever has that name."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    check_length(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        fresh.unlink(missing_ok=True)
        listener.bind(str(fresh))
        os.chmod(fresh, 0o600)
        listener.listen(BACKLOG)
        os.rename(fresh, path)
    except OSError as error:
        listener.close()
        raise refused(error, f"cannot listen on {path}", hint="choose another --socket") from None
    return listener


def listen_tcp(host: str, port: int, *, dead_after_s: float) -> socket.socket:
    """A TCP socket whose connections send at once and notice within `dead_after_s` that the other end is gone."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise refused(error, f"cannot listen on {host}:{port}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(dead_after_s * 1000))
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise refused(error, f"cannot listen on {host}:{port}", hint="choose another --port") from None
    return listener
