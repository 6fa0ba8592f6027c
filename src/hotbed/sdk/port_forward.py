"""A local port that leads into a sandbox, for programs without asyncio: one thread of its own serves it."""

from __future__ import annotations

import asyncio
import os
import threading

from hotbed.sdk.transport import Link
from hotbed.sdk.tunnels import AsyncPortForward


class PortForward:
    """A local port that leads to one of a sandbox, from `Sandbox.port_forward`, until it is closed.

    It is served by a thread of this process. A child that forks off does not serve it.
    """

    def __init__(self, link: Link, sandbox_id: str, port: int) -> None:
        self._forward = AsyncPortForward(link, sandbox_id, port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="hotbed-port-forward", daemon=True)
        self._pid = os.getpid()

    def _listen(self, host: str, port: int) -> None:
        try:
            self._thread.start()
        except BaseException:
            self._loop.close()
            raise
        try:
            asyncio.run_coroutine_threadsafe(self._forward._listen(host, port), self._loop).result()
        except BaseException:
            self.close()
            raise

    @property
    def host(self) -> str:
        """The local address."""
        return self._forward.host

    @property
    def port(self) -> int:
        """The local port."""
        return self._forward.port

    @property
    def address(self) -> str:
        """Where to connect to, `host:port`."""
        return self._forward.address

    @property
    def url(self) -> str:
        """The same for a browser."""
        return self._forward.url

    def close(self) -> None:
        """Take no more connections and end those that are open. Idempotent; in a forked child it does nothing."""
        if self._loop.is_closed() or self._pid != os.getpid():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        await self._forward.close()
        late = asyncio.all_tasks() - {asyncio.current_task()}  # of a connection that was just being accepted
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        await asyncio.sleep(0)  # a transport that was closed lets go of its socket in the next round

    def __enter__(self) -> PortForward:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
