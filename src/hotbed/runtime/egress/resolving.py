"""Looking names up outside, by this host's own resolver, off the event loop.

An answer is kept for a moment, and who dials gets addresses, never a name: what was checked is what is dialled, however
the name resolves in the next second.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

from hotbed.egress.addresses import Address, plain

KEPT_S, FAILURE_KEPT_S = 30.0, 3.0
_KEPT_LIMIT = 4096
_THREADS = 16
_PATIENCE_S = 10.0


class Unresolved(Exception):
    """The lookup failed; `final` if the name does not exist, as far as anybody knows."""

    def __init__(self, name: str, *, final: bool) -> None:
        super().__init__(f"{name} does not resolve")
        self.final = final


class Resolver:
    """One for the whole broker."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="lookup")
        self._known: OrderedDict[str, tuple[float, tuple[Address, ...]]] = OrderedDict()
        self._asked: dict[str, asyncio.Future[tuple[Address, ...]]] = {}

    async def addresses(self, name: str) -> tuple[Address, ...]:
        """All of a name's addresses. Raises `Unresolved`."""
        known = self._known.get(name)
        if known is not None and known[0] > time.monotonic():
            if not known[1]:
                raise Unresolved(name, final=True)
            return known[1]
        asked = self._asked.get(name)
        if asked is None:
            loop = asyncio.get_running_loop()
            asked = self._asked[name] = loop.run_in_executor(self._threads, look_up, name)
            asked.add_done_callback(lambda done: self._keep(name, done))
        try:
            return await asyncio.wait_for(asyncio.shield(asked), _PATIENCE_S)
        except asyncio.TimeoutError:
            raise Unresolved(name, final=False) from None

    def _keep(self, name: str, done: asyncio.Future[tuple[Address, ...]]) -> None:
        self._asked.pop(name, None)
        if done.cancelled():
            return
        error = done.exception()
        if error is None or (isinstance(error, Unresolved) and error.final):
            kept_s = KEPT_S if error is None else FAILURE_KEPT_S
            self._known[name] = (time.monotonic() + kept_s, done.result() if error is None else ())
            self._known.move_to_end(name)
            if len(self._known) > _KEPT_LIMIT:
                self._known.popitem(last=False)

    def close(self) -> None:
        """Start no more lookups."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def look_up(name: str) -> tuple[Address, ...]:
    """By this host's resolver. Blocks; raises `Unresolved`."""
    try:
        found = socket.getaddrinfo(name.encode(), None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise Unresolved(name, final=error.errno in (socket.EAI_NONAME, socket.EAI_NODATA)) from None
    return tuple(dict.fromkeys(plain(ip_address(str(item[4][0]).partition("%")[0])) for item in found))
