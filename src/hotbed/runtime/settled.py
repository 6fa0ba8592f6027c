"""Waiting for a future that is others' too: it goes on when whoever waits is cancelled, or has waited long enough.

It is `asyncio.wait_for(asyncio.shield(future), timeout_s)` in a quarter of the calls: each sandbox is waited for twice.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


async def settled(future: asyncio.Future[T], timeout_s: float) -> T:
    """What it comes to. Raises that, and `asyncio.TimeoutError`."""
    if not future.done():
        loop = future.get_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        wake = partial(_wake, waiter)
        timer = loop.call_later(timeout_s, wake, None)
        future.add_done_callback(wake)
        try:
            await waiter
        finally:
            timer.cancel()
            future.remove_done_callback(wake)
        if not future.done():
            raise asyncio.TimeoutError
    return future.result()


def _wake(waiter: asyncio.Future[None], _: Any) -> None:
    if not waiter.done():
        waiter.set_result(None)
