"""Where attempts run: sandboxes of one template, what they print, and what is left of them on the host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotbed.runtime.backends.fork import ForkBackend
from hotbed.runtime.backends.fork_template import ForkTemplate
from hotbed.runtime.base import BoxRequest, ExecOutcome, ExecRequest, Limits, TemplateSpec
from hotbed.runtime.sandboxes import ForkBox

_GONE_S = 10.0


class Broken(Exception):
    """A claim that does not hold on this host."""


def hold(condition: object, message: str) -> None:
    """Raise `Broken` unless the condition holds."""
    if not condition:
        raise Broken(message)


class Bench:
    """Sandboxes to attack, and a view from outside."""

    def __init__(self, backend: ForkBackend, template: ForkTemplate) -> None:
        self.backend = backend
        self.template = template

    @classmethod
    async def of(cls, backend: ForkBackend) -> Bench:
        """A bench on a started backend."""
        return cls(backend, await backend.template(TemplateSpec(name="selfcheck", programs=())))

    @asynccontextmanager
    async def box(self, **limits: Any) -> AsyncIterator[ForkBox]:
        """A sandbox of its own."""
        chosen = Limits().with_changes(limits) if limits else None
        box = await self.template.fork(BoxRequest(limits=chosen))
        try:
            await box.ready()
            assert isinstance(box, ForkBox), "it was asked for no more than a sandbox"
            yield box
        finally:
            await box.kill()

    async def code(self, source: str, *, timeout_s: float = 20.0, **limits: Any) -> ExecOutcome:
        """Run Python in a sandbox of its own."""
        async with self.box(**limits) as box:
            return await box.exec(ExecRequest(kind="code", program=source.encode(), timeout_s=timeout_s))

    async def answer(self, source: str, **limits: Any) -> Any:
        """What the Python program prints, which is one JSON value."""
        outcome = await self.code(source, **limits)
        hold(outcome.status == "ok", f"the attempt itself failed: {outcome.status} {outcome.stderr[-2000:]!r}")
        return json.loads(outcome.stdout)

    async def shell(self, command: str, *, timeout_s: float = 20.0, **limits: Any) -> ExecOutcome:
        """Run a shell command in a sandbox of its own."""
        async with self.box(**limits) as box:
            return await shell_in(box, command, timeout_s=timeout_s)

    def population(self) -> set[int]:
        """The host's numbers of all processes below the template, parked spares and their agents included."""
        process = self.template.process
        return below(process.pid) if process is not None else set()

    async def wait_extinct(self, pids: set[int]) -> set[int]:
        """Wait until these processes are gone; those that stay."""
        deadline = asyncio.get_running_loop().time() + _GONE_S
        while left := {pid for pid in pids if Path(f"/proc/{pid}").exists()}:
            if asyncio.get_running_loop().time() > deadline:
                return left
            await asyncio.sleep(0.01)
        return set()


Run = Callable[[Bench], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One way of breaking one claim; `run` raises `Broken` when it worked."""

    claim: str
    run: Run


async def shell_in(box: ForkBox, command: str, *, timeout_s: float = 20.0) -> ExecOutcome:
    """Run a shell command."""
    return await box.exec(ExecRequest(kind="command", program=command.encode(), timeout_s=timeout_s))


async def code_in(box: ForkBox, source: str, *, timeout_s: float = 20.0) -> ExecOutcome:
    """Run Python."""
    return await box.exec(ExecRequest(kind="code", program=source.encode(), timeout_s=timeout_s))


def below(pid: int) -> set[int]:
    """Every descendant of a process, by the host's numbers."""
    found: set[int] = set()
    queue = [pid]
    while queue:
        parent = queue.pop()
        try:
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        except OSError:
            continue
        new = {int(child) for child in children} - found
        found |= new
        queue += new
    return found
