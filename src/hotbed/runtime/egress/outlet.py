"""One sandbox's way out, and what it is given by."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from hotbed.egress.policy import Policy
from hotbed.runtime.egress.tally import total
from hotbed.runtime.link import Link

PORTS = (53, 80, 443, 22, 3128)


class Home(Protocol):
    """What is needed of the template a sandbox came from."""

    def wire(self, box_id: int, ports: Sequence[int], channel: int) -> None:
        """Have it make doors in a sandbox and send them over the channel, which it takes over."""
        ...

    def kill_box(self, box_id: int) -> None:
        """Kill a sandbox's pid 1."""
        ...


class Attached(Protocol):
    """A sandbox that can have a way out."""

    id: int
    home: Home
    outlet: Outlet | None
    environ: Mapping[str, str]

    async def open(self, path: str, mode: Literal["r", "w", "a"], perm: int = 0o644) -> tuple[int, int]:
        """A descriptor of a file in it."""
        ...


class Outlet:
    """One sandbox's way out."""

    def __init__(self, owner: Owner, box_id: int, home: Home, policy: Policy) -> None:
        self.box_id = box_id
        self.home = home
        self.policy = policy
        self.ahead: tuple[int, ...] | None = None  # the ports of one that waits for its policy
        self.knocked = False  # something was dialled before the broker knew the policy
        self.ports: set[int] = set()
        self.closed_ports: tuple[int, ...] = ()
        self.turn = asyncio.Lock()  # of whoever wires it or changes its policy
        self.link: Link | None = None  # to the broker that has its doors
        self.served = False  # that broker knows the policy: something may have been tried that it alone knows of
        self._witness = -1
        self._told: list[dict[str, Any]] = []  # tallies since the last result
        self._complete = True
        self.last: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()  # tally, when it is over
        self._owner = owner

    async def change(self, policy: Policy) -> None:
        """Another policy from now on, for what is open as well. Raises `SandboxFailed`."""
        await self._owner.change(self, policy)

    async def tally(self) -> dict[str, Any]:
        """What was tried since the last time."""
        return await self._owner.tally(self)

    def note(self, tally: dict[str, Any]) -> None:
        """The broker has told what was tried since it last did."""
        self._told = [total(*self._told, tally)]

    def lose(self) -> None:
        """What was tried since then will not be known."""
        self._complete = False

    def taken(self, rest: dict[str, Any]) -> dict[str, Any]:
        """All that is known to have been tried since this was last asked for, and whether that is all there was."""
        found, complete = total(*self._told, rest), self._complete
        self._told, self._complete = [], True
        return {
            **found,
            "suspected_leak": found["suspected_leak"] or (False if complete else None),
            "complete": complete,
        }

    def watch(self, witness: int) -> None:
        """Take over the broker's descriptor that is readable once anything was dialled (see `doorway`)."""
        self.blind()
        self._witness = witness

    def blind(self) -> None:
        """Let go of it. Idempotent."""
        if self._witness >= 0:
            os.close(self._witness)
            self._witness = -1

    def is_untouched(self) -> bool:
        """Whether nothing was dialled since its doors were made, as the kernel knows without asking the broker.

        The link is looked at last: a broker that ends closes it before what the witness watches.
        """
        if self._witness < 0 or self.link is None or not self.link.is_open():
            return False
        looks = select.poll()
        looks.register(self._witness, select.POLLIN)
        return not looks.poll(0) and not self.link.is_hung_up()

    def close(self) -> None:
        """The sandbox has ended. Idempotent."""
        self._owner.drop(self)


class Owner(Protocol):
    """Who looks after it: `Outlets`."""

    async def change(self, outlet: Outlet, policy: Policy) -> None:
        """Hold it to another policy."""
        ...

    async def tally(self, outlet: Outlet) -> dict[str, Any]:
        """What was tried."""
        ...

    def drop(self, outlet: Outlet) -> None:
        """Close it."""
        ...


def ports_of(policy: Policy) -> tuple[int, ...]:
    """Where a sandbox with this policy has doors."""
    return tuple(dict.fromkeys((*PORTS, *policy.ports)))
