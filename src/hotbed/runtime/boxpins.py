"""How what runs in one sandbox is pinned: each exec and program by a pin of its own, or by one that waits there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hotbed.errors import SandboxFailed
from hotbed.runtime import execs
from hotbed.runtime.base import ExecRequest
from hotbed.runtime.conversations import Answer
from hotbed.runtime.link import close_all
from hotbed.runtime.replay.pinner import Pinned, Pinner
from hotbed.runtime.replay.request import PinRequest


class BoxPins:
    """Of one sandbox. `fail` ends it: what can no longer be believed must not run on."""

    def __init__(self, pinner: Pinner | None, fail: Callable[[SandboxFailed], None]) -> None:
        self._pinner = pinner
        self._fail = fail
        self._ahead: Pinned | None = None

    @property
    def waits(self) -> bool:
        """Whether one that was put on ahead waits for its seed."""
        return self._ahead is not None

    async def begin(self, pin: PinRequest | None) -> Pinned:
        """A pin whose failure ends the sandbox; without a request, one that is put on before there is a seed."""
        if self._pinner is None:
            raise SandboxFailed("this sandbox was made without a way to pin what runs in it")
        return await self._pinner.begin(pin, self._lost)

    async def begin_ahead(self, ask: Callable[[Pinned], Awaitable[Answer]]) -> None:
        """Have the interpreter that waits there pinned before there is a seed. Raises `SandboxFailed`."""
        self._ahead = ahead = await self.begin(None)
        close_all((await ask(ahead))[2])
        await ahead.put_on()

    async def of_exec(self, request: ExecRequest, seed: bytes) -> Pinned:
        """For one exec. What waits is for this or nothing: it cannot be taken off."""
        pin = PinRequest.of(seed, request.determinism, roots=len(request.argv) or 1, clock=request.clock)
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            return await self.begin(pin)
        if execs.suits_ahead(request):
            ahead.seed(pin)
            return ahead
        ahead.drop()
        return await self.begin(pin)

    def drop(self) -> None:
        """The sandbox has ended. Idempotent."""
        if self._ahead is not None:
            self._ahead.drop()

    def _lost(self, reason: str) -> None:
        self._fail(SandboxFailed(f"what ran was not kept pinned: {reason}"))
