"""The certificates of hosts that are read, as the node signs and keeps them: asked for when a sandbox goes there."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from hotbed.runtime.egress import tls
from hotbed.runtime.egress.targets import Refused

PATIENCE_S = 10.0
_WAITING_LIMIT = 256


class Certificates:
    """`ask` has the node sign for a name; its answer comes by `tell`."""

    def __init__(self, ask: Callable[[str], object]) -> None:
        self._ask = ask
        self._waiting: dict[str, asyncio.Future[bytes]] = {}

    async def context(self, name: str) -> ssl.SSLContext:
        """What a connection to this host is answered with. Raises `Refused`."""
        waiting = self._waiting.get(name)
        if waiting is None:
            if len(self._waiting) >= _WAITING_LIMIT:
                raise Refused("too many certificates are waited for")
            waiting = self._waiting[name] = asyncio.get_running_loop().create_future()
            self._ask(name)
        try:
            chain = await asyncio.wait_for(asyncio.shield(waiting), PATIENCE_S)
        except asyncio.TimeoutError:
            self._waiting.pop(name, None)
            raise Refused(f"no certificate for {name}") from None
        if not chain:
            raise Refused(f"no certificate for {name}")
        return tls.inside(chain)

    def tell(self, name: str, chain: bytes) -> None:
        """The node has signed; with nothing, it could not."""
        waiting = self._waiting.pop(name, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(chain)
