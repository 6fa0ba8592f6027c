"""The task of a worker that has none."""

from __future__ import annotations

from typing import Any, NoReturn

from hotbed.errors import EnvFailed


class FailedTask(dict[str, Any]):
    """What `reset` gives for a worker that failed: its details. False, and any other key raises with the reason."""

    def __bool__(self) -> bool:
        return False

    def __missing__(self, key: object) -> NoReturn:
        raise EnvFailed(
            f"worker {self.get('index')} has no task, its environment failed: {self.get('reason')}",
            hint="pool.details has the status and reason of each worker",
        )
