"""What a template starts in each sandbox is up before the sandbox is handed out, or there is no sandbox."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from hotbed.errors import FileMissing, PortClosed, SandboxFailed
from hotbed.runtime import starting
from hotbed.runtime.base import ExecOutcome, ExecRequest, TemplateSpec
from hotbed.runtime.standing import Start

Answer = Callable[[socket.socket], None]


class Box:
    """Stands in for a sandbox: what it ran, and who listens in it."""

    def __init__(self, *, status: Any = "ok", answers: list[bytes | None] | None = None) -> None:
        self.status = status
        self.ran: list[str] = []
        self.killed = False
        self.entries: list[Mapping[str, Any]] | None = [{"name": "1"}, {"name": "uptime"}]
        self._answers = answers or []
        self._peers: list[socket.socket] = []

    async def exec(self, request: ExecRequest, /) -> ExecOutcome:
        """Run one thing."""
        self.ran.append(request.program.decode())
        return ExecOutcome(status=self.status, exit_code=3, stdout=b"printed")

    async def dial(self, port: int) -> socket.socket:
        """The next answer; None is a closed port."""
        answer = self._answers.pop(0) if self._answers else None
        if answer is None:
            raise PortClosed("nothing listens")
        ours, theirs = socket.socketpair()
        theirs.sendall(answer)
        theirs.shutdown(socket.SHUT_WR)
        ours.setblocking(False)
        self._peers.append(theirs)
        return ours

    async def files(self, operation: str, path: str) -> Mapping[str, Any]:
        """What is in proc."""
        if self.entries is None:
            raise FileMissing(path)
        return {"entries": self.entries}

    async def kill(self) -> None:
        """End it."""
        for peer in self._peers:
            peer.close()
        self.killed = True


def spec(**start: Any) -> TemplateSpec:
    """A template that starts something."""
    return TemplateSpec(name="x", start=Start(**{"cmd": "serve", "timeout_s": 0.2, **start}))


def test_a_template_that_starts_nothing_costs_nothing() -> None:
    """Most do not."""
    box = Box()

    assert asyncio.run(starting.begin(box, TemplateSpec(name="x"))) is box and box.ran == []


def test_a_command_alone_has_to_exit_0() -> None:
    """Else the sandbox is ended and the error says what was printed."""
    assert asyncio.run(starting.begin(Box(), spec())).ran == ["serve"]
    bad = Box(status="exit")
    with pytest.raises(SandboxFailed, match="exit 3: printed"):
        asyncio.run(starting.begin(bad, spec()))
    assert bad.killed


def test_a_server_is_left_running_and_asked_until_it_answers() -> None:
    """A closed port and a 503 are not yet an answer."""
    box = Box(answers=[None, b"HTTP/1.1 503 No\r\n", b"nonsense", b"HTTP/1.1 204 Yes\r\n", None, b""])

    asyncio.run(starting.begin(box, spec(http="http://localhost:80/x", ports=(81,), timeout_s=20.0)))

    assert box.ran[0].startswith("{ serve") and box.ran[0].endswith("&")
    asyncio.run(box.kill())


@pytest.mark.parametrize(("start", "words"), [({"http": "http://localhost/"}, "no 2xx"), ({"ports": (9,)}, "port 9")])
def test_a_server_that_does_not_come_up_is_told_with_its_output(start: dict[str, Any], words: str) -> None:
    """The reason is usually in it."""
    box = Box()

    with pytest.raises(SandboxFailed, match=f"{words}.*printed"):
        asyncio.run(starting.begin(box, spec(**start)))
    assert box.killed


def test_what_is_left_running_is_seen() -> None:
    """The agent is not counted."""
    box = Box()
    assert not asyncio.run(starting.leaves_running(box))
    box.entries = [{"name": "1"}, {"name": "7"}]
    assert asyncio.run(starting.leaves_running(box))
    box.entries = None
    assert not asyncio.run(starting.leaves_running(box))
