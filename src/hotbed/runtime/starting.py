"""What a template starts in each of its sandboxes before that is handed out, and whether it has come up.

A command without anything to ask for has to exit 0. One with a port or an address is a server, which need not exit: it
is left running, and asked from outside, through the sandbox's own loopback.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Literal, Protocol, TypeVar
from urllib.parse import urlsplit

from hotbed.errors import FileMissing, PortClosed, SandboxFailed
from hotbed.runtime.base import ExecOutcome, ExecRequest, TemplateSpec
from hotbed.runtime.standing import Start

LOG = "/tmp/.started.log"
_POLL_S = 0.05
_ANSWER_S = 5.0
_HEAD = 4096
_TAIL = 2000
_AGENT = 1


class NotStarted(Exception):
    """It did not come up. The message says how."""


class Startable(Protocol):
    """A sandbox, as far as this goes."""

    async def exec(self, request: ExecRequest, /) -> ExecOutcome:
        """Run one thing."""
        ...

    async def dial(self, port: int) -> socket.socket:
        """A connection to a port inside."""
        ...

    async def files(self, operation: Literal["stat", "list", "remove", "mkdir"], path: str) -> Mapping[str, Any]:
        """Look at files."""
        ...

    async def kill(self) -> None:
        """End it."""
        ...


Box = TypeVar("Box", bound=Startable)


async def begin(box: Box, spec: TemplateSpec) -> Box:
    """The sandbox once what its template starts is up. Raises `SandboxFailed`, and then nothing is left of it."""
    if spec.start is None:
        return box
    try:
        await come_up(box, spec.start)
    except NotStarted as error:
        await box.kill()
        raise SandboxFailed(f"what template {spec.name} starts in each sandbox did not come up: {error}") from None
    except BaseException:
        await box.kill()
        raise
    return box


async def come_up(box: Startable, start: Start) -> str:
    """Start it and wait; what it printed. Raises `NotStarted`."""
    serves = bool(start.http or start.ports)
    command = f"{{ {start.cmd}\n}} >{LOG} 2>&1 </dev/null &" if serves else start.cmd
    outcome = await _run(box, command, start.timeout_s)
    printed = _text(outcome)
    if outcome.status != "ok":
        raise NotStarted(f"it ended with {outcome.status} {outcome.exit_code}: {printed.strip()}")
    if not serves:
        return printed
    deadline = asyncio.get_running_loop().time() + start.timeout_s
    if start.http and not await _until(partial(_answers, box, start.http), deadline):
        raise NotStarted(f"{start.http} gave no 2xx in time: {await _log(box)}")
    for port in start.ports:
        if not await _until(partial(_listens, box, port), deadline):
            raise NotStarted(f"nothing listened on port {port} in time: {await _log(box)}")
    return await _log(box)


async def _run(box: Startable, command: str, timeout_s: float) -> ExecOutcome:
    return await box.exec(ExecRequest(kind="command", program=command.encode(), timeout_s=timeout_s))


def _text(outcome: ExecOutcome) -> str:
    return (outcome.stdout + outcome.stderr)[-_TAIL:].decode(errors="replace")


async def _log(box: Startable) -> str:
    """What a server printed so far."""
    outcome = await _run(box, f"cat {LOG}", _ANSWER_S)
    return _text(outcome).strip()


async def _until(holds: Callable[[], Awaitable[bool]], deadline: float) -> bool:
    while not await holds():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(_POLL_S)
    return True


async def _listens(box: Startable, port: int) -> bool:
    try:
        (await box.dial(port)).close()
    except PortClosed:
        return False
    return True


async def _answers(box: Startable, url: str) -> bool:
    """Whether a GET gives 2xx. The answer is the sandbox's to make up, so no more than its first line is read."""
    parts = urlsplit(url)
    try:
        connection = await box.dial(parts.port or 80)
    except PortClosed:
        return False
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        head = f"GET {target} HTTP/1.0\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode()
        return await asyncio.wait_for(_is_good(connection, head), _ANSWER_S)
    except (OSError, asyncio.TimeoutError):
        return False
    finally:
        connection.close()


async def _is_good(connection: socket.socket, head: bytes) -> bool:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(connection, head)
    found = b""
    while b"\n" not in found and len(found) < _HEAD:
        piece = await loop.sock_recv(connection, _HEAD)
        if not piece:
            break
        found += piece
    words = found.split()
    return len(words) > 1 and words[0].startswith(b"HTTP/") and words[1][:1] == b"2"


async def leaves_running(box: Startable) -> bool:
    """Whether anything but the agent lives in the sandbox."""
    try:
        listed = await box.files("list", "/proc")
    except FileMissing:  # a backend that isolates nothing has none
        return False
    names = [str(item.get("name")) for item in listed.get("entries", ()) if isinstance(item, dict)]
    return any(name.isdigit() and int(name) != _AGENT for name in names)
