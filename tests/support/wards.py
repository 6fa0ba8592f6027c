"""The broker's parts around plain sockets of this process: a sandbox's side is the test itself."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from ipaddress import ip_address
from typing import Any

from hotbed.egress.addresses import Address
from hotbed.egress.policy import parse
from hotbed.runtime.egress import doors, sockets
from hotbed.runtime.egress.pace import Pace
from hotbed.runtime.egress.relay import Pipes
from hotbed.runtime.egress.resolving import Resolver, Unresolved
from hotbed.runtime.egress.ward import Ward


class Zone(Resolver):
    """A resolver that knows what it was told."""

    def __init__(self, **names: str) -> None:
        super().__init__()
        self.names = {name.replace("_", "."): text for name, text in names.items()}
        self.asked: list[str] = []

    async def addresses(self, name: str) -> tuple[Address, ...]:
        """From the table."""
        self.asked.append(name)
        if name not in self.names:
            raise Unresolved(name, final=True)
        return tuple(map(ip_address, self.names[name].split()))


def ward(policy: object, **names: str) -> Ward:
    """A ward under a policy. Names lead to this machine unless they say otherwise."""
    return Ward(parse(policy, {}), (), Zone(**names), Pipes(), Pace())


def local(port: int, host: str = "a.org") -> dict[str, Any]:
    """A policy under which a name may lead to this machine."""
    return {"allow": [{"host": host, "ports": [port], "addresses": ["127.0.0.0/8"]}]}


class Echo:
    """A server that says a greeting, if it has one, and then everything back in capitals."""

    def __init__(self, greeting: bytes = b"") -> None:
        self.greeting = greeting
        self.connections = 0
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Echo:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await asyncio.sleep(0.01)
        if self._serving:
            await asyncio.wait(self._serving, timeout=5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        writer.write(self.greeting)
        while data := await reader.read(1 << 16):
            writer.write(data.upper())
        writer.close()


def knock(found: Ward, serve: Callable[[Ward, socket.socket], Awaitable[None]] = doors.proxied) -> socket.socket:
    """The program's end of a connection that the ward serves."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    ours.setblocking(False)
    theirs.setblocking(False)
    found.start(partial(serve, found)(theirs), theirs)  # type: ignore[arg-type]  # every door is a coroutine function
    return ours


async def ask(sock: socket.socket, *lines: bytes) -> bytes:
    """Say something and hear the answer to it."""
    await sockets.send(sock, b"".join(lines))
    return await asyncio.wait_for(sockets.receive(sock, 1 << 16), 5)


class Walls:
    """A template that makes doors on this machine's own loopback, at ports of the kernel's choice."""

    def __init__(self) -> None:
        self.ports: dict[int, int] = {}
        self.asked: list[list[int]] = []
        self.broken = False

    def wire(self, box_id: int, ports: Sequence[int], channel: int) -> None:
        """Hand doors over, as `hotbed.guest.template.wiring` does."""
        self.asked.append(list(ports))
        with socket.socket(fileno=channel) as sock:
            if self.broken:
                return
            made = {port: socket.create_server(("127.0.0.1", 0)) for port in ports}
            self.ports.update({port: door.getsockname()[1] for port, door in made.items()})
            message = {"doors": [["tcp", port] for port in made], "failed": []}
            fds = [door.fileno() for door in made.values()]
            socket.send_fds(sock, [json.dumps(message).encode()], fds)
            for door in made.values():
                door.close()

    def kill_box(self, box_id: int) -> None:
        """A sandbox that could not be given its way out."""
        self.asked.append([-box_id])
