"""One connection out of a sandbox, from the decision that lets it go to its end."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import TYPE_CHECKING

from hotbed.egress.addresses import Address
from hotbed.egress.decisions import Target, Verdict, Way, judge_address, judge_name
from hotbed.egress.policy import Policy
from hotbed.runtime.egress import sockets
from hotbed.runtime.egress.resolving import Unresolved
from hotbed.runtime.egress.targets import Refused

if TYPE_CHECKING:
    from hotbed.runtime.egress.ward import Ward

DIAL_S = 10.0
_TRIES = 3


class Flow:
    """A context: what is open when it ends is closed, and what it carried is told."""

    def __init__(self, ward: Ward, inner: socket.socket, kind: str) -> None:
        self.ward = ward
        self.inner = inner
        self.kind = kind
        self.method = ""
        self.up = self.down = 0
        self.used_s = time.monotonic()
        self._task = asyncio.current_task()
        self._target: Target | None = None
        self._verdict: Verdict | None = None
        self._address: Address | None = None
        self._limit = 0
        self.failure = ""  # what kept it from its end
        self.cut = ""  # why we ended it

    def __enter__(self) -> Flow:
        self.ward.flows.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.ward.flows.discard(self)
        self.ward.forget(self)
        if self._verdict is not None:
            verdict = "cut" if self.cut else "failed" if self.failure else "allowed"
            self._note(verdict, self.cut or self.failure or self._verdict.reason)

    def count_up(self, size: int) -> None:
        """Bytes on their way out. Raises `Refused` when a budget is spent."""
        self.up += size
        self.ward.tally.carried(up=size)
        self._carried()

    def count_down(self, size: int) -> None:
        """Bytes on their way in."""
        self.down += size
        self.ward.tally.carried(down=size)
        self._carried()

    def _carried(self) -> None:
        self.used_s = time.monotonic()
        policy = self.ward.policy
        if policy.max_bytes is not None and self.ward.tally.total_bytes > policy.max_bytes:
            self.cut = f"the budget of {policy.max_bytes} bytes is spent"
        elif self._limit and self.ward.spend(self._verdict, self.up + self.down, self):
            self.cut = f"the budget of {self._limit} bytes is spent"
        else:
            return
        raise Refused(self.cut)

    def refuse(self, target: Target, verdict: Verdict, address: Address | None = None) -> Refused:
        """Count and tell a no; the exception to raise."""
        self._target, self._address = target, address
        self.ward.tally.count(allowed=False)
        self._note("denied", verdict.reason, verdict)
        self._verdict = None
        return Refused(verdict.reason)

    def _note(self, verdict: str, reason: str, decided: Verdict | None = None) -> None:
        target = self._target
        assert target is not None
        address = self._address or target.address
        self.ward.tally.note(
            up=self.up,
            down=self.down,
            leak=decided is not None and self.ward.is_leak(decided, target.name),
            kind=self.kind,
            name=target.name,
            address=str(address or ""),
            port=target.port,
            method=self.method,
            verdict=verdict,
            reason=reason,
        )

    async def addresses(self, target: Target, way: Way) -> list[tuple[Address, Verdict]]:
        """Where to dial: every address checked after it was resolved. Raises `Refused`."""
        named = Target(port=target.port, name=way.name or target.name, address=target.address)
        if not way.verdict.allowed:
            raise self.refuse(named, way.verdict)
        policy = self.ward.policy
        if not way.name:
            assert way.address is not None
            verdict = judge_address(policy, way.address, target.port, own=sockets.is_own(way.address))
            if not verdict.allowed:
                raise self.refuse(named, verdict, way.address)
            return [(way.address, verdict)]
        try:
            found = await self.ward.resolver.addresses(way.name)
        except Unresolved as error:
            raise self.refuse(named, Verdict(allowed=False, reason=str(error))) from None
        if way.address is not None:
            if way.address not in found:
                reason = f"{way.name} does not lead to {way.address}"
                raise self.refuse(named, Verdict(allowed=False, reason=reason), way.address)
            found = (way.address,)
        checked = [
            (item, judge_address(policy, item, target.port, by=way.verdict, own=sockets.is_own(item))) for item in found
        ]
        good = [(address, verdict) for address, verdict in checked if verdict.allowed]
        if not good:
            raise self.refuse(named, checked[0][1], checked[0][0])
        return good

    async def dial(self, target: Target, way: Way) -> socket.socket:
        """The connection outside, to an address that was checked. Raises `Refused`; `OSError` when nobody answers."""
        asked = self.ward.policy
        found = await self.addresses(target, way)
        self.allow(Target(port=target.port, name=way.name or target.name, address=target.address), *found[0])
        if self.ward.policy is not asked:  # it has changed while the name was looked up
            self.recheck(self.ward.policy)
        failure: OSError = ConnectionRefusedError("nobody answers")
        for address, verdict in found[:_TRIES]:
            self._address, self._verdict = address, verdict
            try:
                return await sockets.dial(address, target.port, DIAL_S)
            except asyncio.TimeoutError:
                failure = TimeoutError(f"no answer from {address} for {DIAL_S:.0f} s")
            except OSError as error:
                failure = error
        self.failure = f"{failure}"
        raise failure

    def allow(self, target: Target, address: Address | None, verdict: Verdict) -> None:
        """Count a yes; the rest of its row comes at the end."""
        self._target, self._address, self._verdict = target, address, verdict
        self._limit = verdict.entry.max_bytes or 0 if verdict.entry is not None else 0
        self.ward.tally.count(allowed=True)

    def is_told(self) -> bool:
        """Whether it was let go."""
        return self._verdict is not None

    def recheck(self, policy: Policy) -> None:
        """End it if a new policy would not have let it go."""
        if self._target is None or self._verdict is None:
            return  # not decided yet: it will be by the new one
        by = judge_name(policy, self._target.name, self._target.port) if self._target.name else None
        if by is not None and not by.allowed:
            self.abort(f"the policy has changed: {by.reason}")
        elif self._address is not None:
            own = sockets.is_own(self._address)
            verdict = judge_address(policy, self._address, self._target.port, by=by, own=own)
            if not verdict.allowed:
                self.abort(f"the policy has changed: {verdict.reason}")

    def abort(self, reason: str) -> None:
        """End it now."""
        self.cut = self.cut or reason
        if self._task is not None:
            self._task.cancel()
