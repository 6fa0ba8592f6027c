"""How what runs in one sandbox is pinned: each exec and program by a pin of its own, or by one that waits there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hotbed.errors import SandboxFailed
from hotbed.runtime import execs
from hotbed.runtime.base import Ahead, ExecRequest
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
        self._kind: Ahead | None = None

    async def begin(self, pin: PinRequest | None) -> Pinned:
        """A pin whose failure ends the sandbox; without a request, one that is put on before there is a seed."""
        if self._pinner is None:
            raise SandboxFailed("this sandbox was made without a way to pin what runs in it")
        return await self._pinner.begin(pin, self._lost)

    async def begin_ahead(self, kind: Ahead, ask: Callable[..., Awaitable[Answer]]) -> None:
        """Have the agent pin what is of that kind before there is a seed. Raises `SandboxFailed`."""
        ahead = await self.begin(None)
        try:
            close_all((await ask({"op": "pin", "kind": kind}, pinned=ahead))[2])
            await ahead.put_on()
        except BaseException:  # also when cancelled: nobody else knows of it
            ahead.drop()
            raise
        self._ahead, self._kind = ahead, kind

    async def of_exec(self, request: ExecRequest, seed: bytes) -> Pinned:
        """For one exec. What waits is for this or nothing: it cannot be taken off."""
        pin = PinRequest.of(seed, request.determinism, roots=len(request.argv) or 1, clock=request.clock)
        if self._ahead is None or execs.ahead_for(request) != self._kind:
            self.drop()
            return await self.begin(pin)
        ahead, self._ahead = self._ahead, None
        ahead.seed(pin)
        return ahead

    def drop(self) -> None:
        """Nothing comes that what waits is for, or the sandbox has ended. Idempotent."""
        if self._ahead is not None:
            self._ahead.drop()
            self._ahead = None

    def _lost(self, reason: str) -> None:
        self._fail(SandboxFailed(f"what ran was not kept pinned: {reason}"))
