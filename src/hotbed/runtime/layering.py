"""What a backend may offer besides the contract of `base`: sandboxes held still, their files as layers of others."""

from __future__ import annotations

from typing import Any, Protocol


class Layer(Protocol):
    """The files of a sandbox at one moment. It is of one template, and any number of its sandboxes can share it.

    `size` is in bytes, without what it shares with others; `how` the sandbox was held still; `skipped` names what was
    there and is no file.
    """

    size: int
    how: str
    skipped: tuple[str, ...]

    def is_alive(self) -> bool:
        """Whether sandboxes can still be made with it."""
        ...

    def close(self) -> None:
        """Let go of it; sandboxes that have it keep it. Idempotent."""
        ...


class Layering(Protocol):
    """Holding sandboxes still, and taking layers of them; an attribute `layers` of a backend that can."""

    async def take(self, box: Any, *, end: bool = False) -> Layer:
        """The files of a sandbox at one moment. With `end` it is the sandbox's last, and nothing is copied."""
        ...

    async def freeze(self, box: Any) -> str:
        """Hold it still until `thaw`; how: by its `cgroup`, or by `signals`."""
        ...

    async def thaw(self, box: Any) -> None:
        """Let it go on."""
        ...

    async def reclaim(self, box: Any) -> int | None:
        """Have the kernel take back what memory it can; bytes, or None where it cannot be asked to."""
        ...
