"""The node's handle on the broker: giving a sandbox a way out, changing it, hearing what was tried.

A sandbox is wired after it was forked, so that one without a network costs what it always did: its template makes the
doors (`hotbed.guest.template.wiring`) and sends them to the broker over a channel that the node only passes on. A few
are wired ahead of the request (`hotbed.runtime.doored`), and then only told their policy. When
the broker is lost its doors are closed, so nothing leaves any sandbox; another is started, and every living sandbox
gets new doors under the policy it has.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from hotbed.egress.policy import NONE, Policy
from hotbed.errors import InvalidRequest, SandboxFailed
from hotbed.guest.frames import Header
from hotbed.runtime.egress.answers import PATIENCE_S
from hotbed.runtime.egress.orders import Orders
from hotbed.runtime.egress.outlet import Attached, Home, Outlet, ports_of
from hotbed.runtime.egress.tally import Tally, lost_row
from hotbed.runtime.egress.trust import trust
from hotbed.runtime.link import Link, close_all

log = logging.getLogger(__name__)

_RETRY_S = 0.5
_BROKERS = 3  # that may be lost, one after the other, while a sandbox is wired
_BODY_LIMIT = 64 << 20

OnRows = Callable[[int, Sequence[Mapping[str, Any]], bool], None]  # of a sandbox; whether it was the last


class Outlets:
    """All of a node's. `start` makes a broker process and gives the node's end of its channel."""

    def __init__(self, start: Callable[[], Awaitable[socket.socket]]) -> None:
        self._start = start
        self._link: Link | None = None
        self._starting = asyncio.Lock()
        self._outlets: dict[int, Outlet] = {}
        self.orders = Orders()
        self._closed = False
        self._leaving: dict[int, Outlet] = {}
        self._reviving: asyncio.Task[None] | None = None
        self.watched: Sequence[Any] = ()
        self.bundle: Callable[[], bytes] = bytes  # what sandboxes are to trust
        self.sign: Callable[[str], bytes] = lambda _: b""  # for a host: a key and its certificate
        self.on_rows: OnRows | None = None
        self.restarts = 0

    def __len__(self) -> int:
        return sum(1 for outlet in self._outlets.values() if outlet.ahead is None)

    async def attach(self, box: Attached, policy: Policy) -> None:
        """Give a new sandbox its way out, or end it: nothing is to run in it without."""
        try:
            if box.outlet is not None:
                await self._give(box.outlet, policy)
            else:
                box.outlet = await self.open(box.id, box.home, policy)
            await self.equip(box, policy)
        except BaseException:  # also when cancelled
            box.home.kill_box(box.id)
            raise

    async def equip(self, box: Attached, policy: Policy) -> None:
        """Have a sandbox trust this node, if its policy has TLS read that it does not trust it for yet."""
        if policy.reads_any and not box.environ:
            await trust(box, self.bundle())

    async def park(self, box: Attached, ports: tuple[int, ...]) -> None:
        """Make a sandbox's doors before there is a policy: what is dialled there waits until `attach` brings one."""
        box.outlet = await self.open(box.id, box.home, NONE, ahead=ports)

    async def _give(self, outlet: Outlet, policy: Policy) -> None:
        """A policy for doors that wait for one. The broker hears of it when something is dialled, or never."""
        link = outlet.link
        if link is None or not link.is_open() or outlet.turn.locked() or outlet.ahead != ports_of(policy):
            await self.change(outlet, policy)
            return
        outlet.policy, outlet.ahead = policy, None
        if outlet.knocked:
            self.orders.tell(link, outlet)

    async def open(self, box_id: int, home: Home, policy: Policy, ahead: tuple[int, ...] | None = None) -> Outlet:
        """Wire a sandbox; returns when its doors are open. Raises `SandboxFailed`."""
        outlet = self._outlets.get(box_id)
        if outlet is not None:  # somebody else was first: there is one policy, and it is the last
            await self.change(outlet, policy)
            return outlet
        outlet = self._outlets[box_id] = Outlet(self, box_id, home, policy)
        outlet.ahead = ahead
        try:
            async with outlet.turn:
                await self._hold_to_policy(outlet)
        except BaseException:
            self.drop(outlet)
            raise
        return outlet

    async def change(self, outlet: Outlet, policy: Policy) -> None:
        """Hold a sandbox to another policy."""
        async with outlet.turn:
            before, outlet.policy, outlet.ahead = outlet.policy, policy, None
            try:
                await self._hold_to_policy(outlet)
            except (SandboxFailed, InvalidRequest):  # the latter: a secret that is no longer held
                outlet.policy = before
                if outlet.link is not None and outlet.link.is_open():
                    self.orders.tell(outlet.link, outlet)
                raise

    async def _hold_to_policy(self, outlet: Outlet) -> None:
        """Have the broker hold a sandbox to its outlet's policy; one that is lost meanwhile has opened nothing."""
        lost = 0
        while True:
            link = await self._broker()
            try:
                return await self._hold(link, outlet)
            except SandboxFailed:
                lost += 1
                if link.is_open() or lost == _BROKERS or self._closed:
                    raise

    async def _hold(self, link: Link, outlet: Outlet) -> None:
        """Have this broker do so, with the doors that this needs."""
        if self._outlets.get(outlet.box_id) is not outlet:
            raise SandboxFailed("the sandbox has ended")
        if outlet.link is not link:
            outlet.ports.clear()
            await self.orders.wire(link, outlet, "open", outlet.ahead or ports_of(outlet.policy))
            outlet.link = link
            return
        if outlet.ahead is not None:  # it is parked there, and its policy is yet to come
            return
        await self.orders.hold(link, outlet)
        missing = [port for port in ports_of(outlet.policy) if port not in outlet.ports]
        if missing:
            await self.orders.wire(link, outlet, "doors", missing)

    async def tally(self, outlet: Outlet) -> dict[str, Any]:
        """What a sandbox tried since it was last asked for; one that has ended is asked for the last time.

        What was lost with a broker is no reason to throw away what ran: it says that it is not `complete`.
        """
        try:
            rest = await self._rest_of(outlet)
        except (SandboxFailed, asyncio.TimeoutError) as error:
            log.warning("event=egress_tally_lost box=%d error=%r", outlet.box_id, error)
            outlet.lose()
            rest = Tally().take()
        return outlet.taken(rest)

    async def _rest_of(self, outlet: Outlet) -> dict[str, Any]:
        """What the broker has not told yet."""
        if outlet.box_id in self._outlets:
            if outlet.is_untouched():
                return Tally().take()
            answer = await self.orders.ask(await self._broker(), {"op": "report", "id": outlet.box_id})
            if answer["tally"] is not None:
                found: dict[str, Any] = answer["tally"]
                return found
            if outlet.box_id in self._outlets:  # another broker than the one it had: it has not got its doors yet
                return Tally().take()
        return await asyncio.wait_for(asyncio.shield(outlet.last), PATIENCE_S)

    def drop(self, outlet: Outlet) -> None:
        """Close a sandbox's doors. Idempotent."""
        outlet.blind()
        if self._outlets.pop(outlet.box_id, None) is None:
            return
        link = self._link
        heard = link is not None and link.is_open()
        if heard and outlet.link is link:
            self._leaving[outlet.box_id] = outlet  # first: over the word, the link may be found to be broken
        if heard and link is not None:
            self.orders.shelf.take_back(link, outlet.box_id)
            link.post({"op": "close", "id": outlet.box_id})
        if outlet.box_id not in self._leaving:
            self._bury(outlet, Tally().take())

    def _bury(self, outlet: Outlet, tally: dict[str, Any]) -> None:
        """It is over; its last tally."""
        if not outlet.last.done():
            outlet.last.set_result(tally)
        self._tell(outlet.box_id, (), over=True)

    def _tell(self, box_id: int, rows: Sequence[Mapping[str, Any]], *, over: bool) -> None:
        if self.on_rows is not None:
            self.on_rows(box_id, rows, over)

    def close(self) -> None:
        """End the broker, by the end of its channel. Idempotent."""
        self._closed = True
        if self._link is not None:
            self._link.end("the node is closing")

    async def _broker(self) -> Link:
        async with self._starting:
            if self._link is None or not self._link.is_open():
                sock = await self._start()
                if self._closed:
                    sock.close()
                    raise SandboxFailed("the node is closing")
                self._link = Link(sock, body_limit=_BODY_LIMIT, on_frame=self._on_frame, on_end=self._on_lost)
                self._link.post({"op": "watch", "entries": list(self.watched)})
            return self._link

    def _on_frame(self, header: Header, body: bytes, fds: list[int]) -> None:
        op = header["op"]
        outlet = self._outlets.get(header["id"]) if op in ("opened", "knock") else None
        if outlet is not None and fds:
            outlet.watch(fds.pop())
        close_all(fds)
        if op == "knock":
            self._on_knock(outlet)
            return
        if op in ("keep", "sign", "decisions"):
            self._serve(header, body)
            return
        if op == "closed":
            left = self._leaving.pop(header["id"], None)
            if left is not None:
                self._bury(left, header["tally"])
            return
        self.orders.answered(header)

    def _on_knock(self, outlet: Outlet | None) -> None:
        """What was parked dials something. It waits until there is a policy."""
        if outlet is None or self._link is None:
            return
        outlet.knocked = True
        if outlet.ahead is not None or outlet.turn.locked():  # whoever gives it a policy will tell
            return
        try:
            self.orders.tell(self._link, outlet)
        except InvalidRequest as error:  # a secret that is no longer held
            log.warning("event=egress_policy_lost box=%d message=%r", outlet.box_id, error.message)
            outlet.policy = NONE
            self.orders.tell(self._link, outlet)

    def _serve(self, header: Header, body: bytes) -> None:
        if header["op"] == "decisions":
            self._tell(header["id"], header["rows"], over=False)
            outlet = self._outlets.get(header["id"]) or self._leaving.get(header["id"])
            if outlet is not None:
                outlet.note(header["tally"])
        elif header["op"] == "keep":
            self.orders.shelf.keep(header["name"], header["key"], body)
        elif self._link is not None:
            self._link.post({"op": "signed", "name": header["name"]}, self.sign(header["name"]))

    def _on_lost(self, reason: str) -> None:
        self.orders.shelf.lose()
        for outlet in (*self._outlets.values(), *self._leaving.values()):
            outlet.blind()
            if outlet.served:
                outlet.served = False
                outlet.lose()
                if not self._closed:
                    self._tell(outlet.box_id, [lost_row()], over=False)
        self.orders.answers.none_will_come(f"the egress broker is gone: {reason}")
        leaving, self._leaving = self._leaving, {}
        for outlet in leaving.values():
            self._bury(outlet, Tally().take())
        if not self._closed:
            log.warning("event=egress_broker_lost reason=%r sandboxes=%d", reason, len(self._outlets))
            self.restarts += 1
            self._reviving = asyncio.ensure_future(self._revive(self._reviving))

    async def _revive(self, before: asyncio.Task[None] | None) -> None:
        """Another broker, and new doors for all that live. The last time may not be over yet."""
        if before is not None:
            await before
        for outlet in tuple(self._outlets.values()):
            if self._closed:
                return
            try:
                async with outlet.turn:
                    await self._hold_to_policy(outlet)
            except Exception as error:  # noqa: BLE001 - the boundary of one sandbox: it stays without a way out
                log.error("event=egress_rewire_failed box=%d error=%r", outlet.box_id, error)
                await asyncio.sleep(_RETRY_S)
