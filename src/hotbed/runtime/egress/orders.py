"""What the broker is told about a sandbox, and its answers.

A policy goes out with the secrets that it names and the recording that it is answered from: both are the node's, and
the broker has them for as long as the sandbox lives.
"""

from __future__ import annotations

import itertools
import json
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hotbed.egress.policy import Policy
from hotbed.guest.frames import Header
from hotbed.runtime.egress.answers import Answers
from hotbed.runtime.egress.outlet import Outlet
from hotbed.runtime.egress.shelf import Shelf
from hotbed.runtime.link import Link


class Orders:
    """To whichever broker there is."""

    def __init__(self) -> None:
        self.answers = Answers()
        self.shelf = Shelf()
        self.secrets: Callable[[Policy], Sequence[Mapping[str, Any]]] = lambda _: ()  # whose names the policy says
        self._asks = itertools.count(1)

    def tell(self, link: Link, outlet: Outlet) -> None:
        """Its policy, without waiting. Raises `InvalidRequest` for a secret that is no longer held."""
        link.post({"op": "policy", "id": outlet.box_id, **self._said(link, outlet), "ask": 0})

    async def hold(self, link: Link, outlet: Outlet) -> None:
        """Its policy; returns when it holds."""
        await self.ask(link, {"op": "policy", "id": outlet.box_id, **self._said(link, outlet)})

    async def ask(self, link: Link, header: Header) -> Header:
        """Anything that has an answer."""
        number = next(self._asks)
        return await self.answers.hear(("ask", number), lambda: link.post({**header, "ask": number}))

    async def wire(self, link: Link, outlet: Outlet, op: str, ports: Sequence[int]) -> None:
        """Have its template make doors for the broker. `open` is the first time, and says the policy too."""
        header: Header = {"op": op, "id": outlet.box_id}
        if op == "open":
            header = {**header, **self._said(link, outlet), "parked": outlet.ahead is not None}

        def say() -> None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            outlet.home.wire(outlet.box_id, ports, theirs.detach())
            link.give(header, ours.detach())

        answer = await self.answers.hear(("opened", outlet.box_id), say)
        failed = {port for kind, port, _ in answer["failed"] if kind == "tcp"}
        outlet.ports |= set(ports) - failed
        outlet.closed_ports = tuple(sorted(failed))

    def answered(self, header: Header) -> None:
        """Whoever asked hears it."""
        op = header["op"]
        key = ("opened", header["id"]) if op in ("opened", "broken") else ("ask", header.get("ask", 0))
        if op == "broken":
            self.answers.refused(key, f"the sandbox could not be given a network: {header['message']}")
        else:
            self.answers.arrived(key, header)

    def _said(self, link: Link, outlet: Outlet) -> Header:
        policy = outlet.policy
        outlet.served = outlet.served or outlet.ahead is None
        self.shelf.lend(link, outlet.box_id, policy.recording)
        secrets = [dict(secret) for secret in self.secrets(policy)]
        text = json.dumps(policy.to_wire())
        return {"policy": text, "secrets": secrets, "recording": policy.recording, "sealed": policy.sealed}
