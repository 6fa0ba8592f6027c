"""Environments that can be copied, on a real backend and without a node: what live fork is tested and measured with."""

from __future__ import annotations

import ast
import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from hotbed.guest.environments import lane, values
from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.backends.fork_template import ForkTemplate
from hotbed.runtime.base import BoxRequest, TemplateSpec
from hotbed.runtime.programs import RunningProgram
from hotbed.runtime.sandboxes import ForkBox
from hotbed.runtime.snapshots import Snapshot

T = TypeVar("T")

#: A counter with a generator, a log in its heap and a log in a file; any string as action is run, and R is shown.
ENV = """
import os, random
from hotbed.env import serve

class State: pass
state = State()
KEEP = []
HEAP = {i: {"k": i, "v": [i] * 20, "s": str(i) * 8} for i in range(HEAP_ITEMS)}

def reset(seed):
    state.count, state.random, state.log = 0, random.Random(seed), []
    return "go"

def step(action):
    if isinstance(action, str):
        names = globals()
        names["R"] = None
        exec(action, names)
        return repr(names["R"]), 0.0, False, {}
    state.count += 1
    state.log.append(state.random.random())
    with open("/workspace/log", "a") as file:
        file.write(f"{state.log[-1]}\\n")
    return [state.count, state.log[-1], len(state.log)], 0.0, False, {}

serve(reset=reset, step=step)
"""
ITEMS_PER_MIB = 1750


class Environment:
    """One environment server in its sandbox."""

    def __init__(self, box: ForkBox, program: RunningProgram, sock: socket.socket) -> None:
        self.box = box
        self.program = program
        self._sock = sock
        self._inbox = lane.Inbox()
        self._asked = 0

    async def hear(self) -> dict[str, Any]:
        """What it says next."""
        loop = asyncio.get_running_loop()
        while True:
            packet = await asyncio.wait_for(loop.sock_recv(self._sock, 1 << 16), 20)
            assert packet, "the environment has ended"
            header = self._inbox.take(packet)
            if header is not None:
                return header

    async def ask(self, **request: Any) -> dict[str, Any]:
        """One request, one answer."""
        self._asked += 1
        self._sock.send(values.pack({**request, "id": self._asked}))
        return await self.hear()

    async def reset(self, seed: int = 7) -> None:
        """Begin an episode."""
        await self.ask(op="reset", seed=seed)

    async def step(self) -> list[Any]:
        """Count on: [count, random number, length of the log]."""
        answer = await self.ask(op="step", action=0)
        return list(answer["step"][0])

    async def run(self, code: str) -> Any:
        """Run Python in the environment server itself; what it left in R."""
        answer = await self.ask(op="step", action=code)
        assert "step" in answer, answer
        return ast.literal_eval(answer["step"][0])

    async def kill(self) -> None:
        """End its sandbox."""
        self._sock.close()
        await self.box.kill()


class Forkable:
    """Environments of one template, and copies of them."""

    def __init__(self, backend: ForkBackend, template: ForkTemplate) -> None:
        self.backend = backend
        self.template = template
        self.livefork = backend.livefork
        self._socks: list[socket.socket] = []

    def close(self) -> None:
        """Let go of every lane."""
        for sock in self._socks:
            sock.close()

    async def environment(self) -> Environment:
        """A new one that has loaded env.py."""
        box, ours, theirs = await self._box()
        program = await box.start("env_server", {"path": "/env/env.py"}, theirs)
        made = Environment(box, program, ours)
        ready = await made.hear()
        assert ready["op"] == "ready", ready
        return made

    async def snapshot(self, original: Environment, *, skip: bool = False, verify: bool = True) -> Snapshot:
        """Take one, with the hashes that a restore is verified with."""
        return await self.livefork.snapshot(original.box, original.program, skip=skip, verify=verify)

    async def restore(self, snapshot: Snapshot, *, verify: bool = True, parked: bool = True) -> Environment:
        """A copy in a sandbox of its own, every page compared."""
        box = await self.template.fork(BoxRequest(forkable=True, vessel=parked))
        assert isinstance(box, ForkBox)
        try:
            vessel = await self.livefork.restore(snapshot, box, verify=verify)
        except BaseException:
            await box.kill()
            raise
        vessel.lane.setblocking(False)
        self._socks.append(vessel.lane)
        return Environment(box, vessel.program, vessel.lane)

    async def copy(self, original: Environment, *, verify: bool = True) -> Environment:
        """A verified copy."""
        snapshot = await self.snapshot(original, verify=verify)
        try:
            return await self.restore(snapshot, verify=verify)
        finally:
            await self.livefork.release(snapshot)

    async def _box(self) -> tuple[ForkBox, socket.socket, socket.socket]:
        box = await self.template.fork(BoxRequest(forkable=True))
        assert isinstance(box, ForkBox)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self._socks.append(ours)
        return box, ours, theirs


@asynccontextmanager
async def started(backend: ForkBackend, env_dir: Path) -> AsyncIterator[Forkable]:
    """The template of a directory, on a backend of its own."""
    spec = TemplateSpec(
        name="forkable",
        preload=("collections", "json", "random", "subprocess"),
        programs=("env_server",),
        mounts=((str(env_dir), "/env"),),
    )
    await backend.start()
    try:
        forkable = Forkable(backend, await backend.template(spec))
        try:
            yield forkable
        finally:
            forkable.close()
    finally:
        await backend.close()


def write_env(directory: Path, *, heap_mib: float = 0, text: str = ENV) -> Path:
    """An environment directory that a template of any user can show."""
    env_dir = directory / "env"
    env_dir.mkdir(exist_ok=True)
    (env_dir / "env.py").write_text(text.replace("HEAP_ITEMS", str(int(heap_mib * ITEMS_PER_MIB))))
    for path in (env_dir, directory):
        path.chmod(path.stat().st_mode & 0o7777 | 0o055)
    return env_dir


def run_with(work: Callable[[Forkable], Coroutine[Any, Any, T]], *, heap_mib: float = 0) -> T:
    """Run a coroutine function with a `Forkable`, from outside of any event loop."""

    async def main(backend: ForkBackend, env_dir: Path) -> T:
        async with started(backend, env_dir) as forkable:
            return await work(forkable)

    with tempfile.TemporaryDirectory(prefix="hotbed-forkable-") as name:
        env_dir = write_env(Path(name), heap_mib=heap_mib)
        return asyncio.run(main(ForkBackend(ForkSettings(spares=0, run_dir=name)), env_dir))
