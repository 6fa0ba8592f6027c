"""Where a node is: a Unix socket, or a TCP host and port with or without TLS."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from hotbed.errors import InvalidRequest

_URL_HINT = "give http://host:port, https://host, or unix:///path/to/node.sock"
_SOCKET_PATH_LIMIT = 107  # sun_path less its NUL, man 7 unix


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One node's address. Exactly one of `unix_path` and `host` is set."""

    unix_path: str | None = None
    host: str | None = None
    port: int = 0
    tls: bool = False
    prefix: str = ""

    def __post_init__(self) -> None:
        if (self.unix_path is None) == (self.host is None):
            raise InvalidRequest("an address is a Unix socket or a host, and not both", hint=_URL_HINT)
        if self.unix_path is not None and len(self.unix_path.encode()) > _SOCKET_PATH_LIMIT:
            raise InvalidRequest(
                f"socket path {self.unix_path!r} is longer than the kernel's {_SOCKET_PATH_LIMIT} bytes",
                hint="set HOTBED_RUNTIME_DIR to a shorter directory",
            )

    def __str__(self) -> str:
        if self.unix_path is not None:
            return f"unix://{self.unix_path}"
        return f"{'https' if self.tls else 'http'}://{self.authority}{self.prefix}"

    @property
    def authority(self) -> str:
        """The Host header."""
        if self.host is None:
            return "localhost"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_url(url: str) -> Address:
    """The address that a URL names."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidRequest(f"url {url!r} cannot be read: {error}", hint=_URL_HINT) from None
    if parts.scheme == "unix" and parts.path:
        return Address(unix_path=unquote(parts.path))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequest(f"url {url!r} is not one that a node can have", hint=_URL_HINT)
    tls = parts.scheme == "https"
    return Address(host=parts.hostname, port=port or (443 if tls else 80), tls=tls, prefix=parts.path.rstrip("/"))


def dial(address: Address, timeout_s: float) -> socket.socket:
    """A connected socket. Raises OSError."""
    if address.unix_path is not None:
        return _dial_local(address.unix_path, timeout_s)
    assert address.host is not None
    remote = socket.create_connection((address.host, address.port), timeout_s)
    remote.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return secure(remote, address.host) if address.tls else remote


def _dial_local(path: str, timeout_s: float) -> socket.socket:
    """Connect to a Unix socket. With a timeout of 0 a full queue raises BlockingIOError at once.

    CAVEAT: a socket in timeout mode is non-blocking to the kernel, and a non-blocking connect to a Unix socket whose
    queue is full fails instead of waiting (man 7 unix). SO_SNDTIMEO makes a blocking one wait, for a bounded time.
    """
    local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if timeout_s:
            seconds, rest = divmod(timeout_s, 1)
            wait = struct.pack("@ll", int(seconds), int(rest * 1e6))
            local.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, wait)
        else:
            local.setblocking(False)
        local.connect(path)
        if timeout_s:
            local.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", 0, 0))
            local.settimeout(timeout_s)
    except BaseException:
        local.close()
        raise
    return local


def secure(plain: socket.socket, host: str) -> socket.socket:
    """The socket under TLS, verified against the system's authorities."""
    import ssl  # a tenth of the import budget, and local nodes never need it

    try:
        return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise
