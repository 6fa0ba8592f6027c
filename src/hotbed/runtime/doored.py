"""Sandboxes of one template that are parked with their doors made, for requests with a network.

Making doors costs a request more than all the rest that a network adds: a namespace that is not used again, sockets in
it, and a turn of the template and of the broker. So the second request with the same ports finds them made, and only
its policy is told. Whoever names no ports shares one stock; for others there are a few stocks, of the ports used last.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from hotbed.egress.policy import Policy
from hotbed.runtime.egress.outlet import ports_of
from hotbed.runtime.lot import Lot
from hotbed.runtime.sandboxes import ForkBox
from hotbed.runtime.spares import Spares

Ports = tuple[int, ...]
_KINDS = 3


class Doored:
    """`make` forks one more with doors at these ports. Each stock is made from its first use on."""

    def __init__(self, size: int, make: Callable[[Ports], Awaitable[ForkBox]], lot: Lot | None = None) -> None:
        self._size = size
        self._lot = lot
        self._make = make
        self._stocks: OrderedDict[Ports, Spares] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return sum(map(len, self._stocks.values()))

    def take(self, policy: Policy) -> ForkBox | None:
        """One whose doors are where this policy needs them; and have its stock filled soon."""
        ports = ports_of(policy)
        stock = self._stocks.get(ports)
        if stock is None:
            stock = Spares(self._size, lambda: self._make(ports), lot=self._lot, from_first_use=True, most=self._size)
            self._stocks[ports] = stock
        self._stocks.move_to_end(ports)
        if len(self._stocks) > _KINDS:
            self._drop(self._stocks.popitem(last=False)[1])
        return stock.take()

    def _drop(self, stock: Spares) -> None:
        task = asyncio.ensure_future(stock.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def stocks(self) -> tuple[Spares, ...]:
        """One for each list of ports."""
        return tuple(self._stocks.values())

    async def close(self) -> None:
        """End them all. Idempotent."""
        while self._stocks:
            self._drop(self._stocks.popitem()[1])
        await asyncio.gather(*self._closing)
