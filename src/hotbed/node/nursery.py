"""Background work with an owner: every task is held, its failure is logged, and its owner can wait for all of it.

`asyncio.TaskGroup` cancels its siblings when one task fails; here each task is the teardown or the watch of one
sandbox, and one sandbox's trouble must not be another's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from hotbed.errors import Error

T = TypeVar("T")

log = logging.getLogger(__name__)


class Nursery:
    """Holds tasks until they end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        """Run a coroutine in the background. Its failure, if nobody awaits it, is logged and goes no further."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def wait_empty(self, *, timeout_s: float) -> bool:
        """Wait until nothing runs; whether that happened in time."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=timeout_s)
        return not self._tasks

    async def cancel_all(self) -> None:
        """Cancel what still runs and wait for it to end."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            refused = isinstance(error, Error) and error.status < 500  # which who asked is told, and need not be ours
            level = logging.INFO if refused else logging.ERROR
            log.log(level, "event=background_failed task=%s error=%r", task.get_name(), error)
