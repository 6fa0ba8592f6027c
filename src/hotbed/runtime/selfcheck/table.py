"""Every attempt, and running them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from hotbed.errors import Error
from hotbed.runtime.backends.fork import ForkBackend
from hotbed.runtime.selfcheck import outside, paths, processes, resources, rights, surface
from hotbed.runtime.selfcheck.bench import Attempt, Bench, Broken

ATTEMPTS: tuple[Attempt, ...] = (
    *rights.ATTEMPTS,
    *surface.ATTEMPTS,
    *processes.ATTEMPTS,
    *resources.ATTEMPTS,
    *paths.ATTEMPTS,
    *outside.ATTEMPTS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a claim held, and if not, what happened."""

    claim: str
    held: bool
    detail: str
    seconds: float


def find(claim: str) -> Attempt:
    """The attempt on a claim. Raises `KeyError`."""
    return {attempt.claim: attempt for attempt in ATTEMPTS}[claim]


async def run_all(backend: ForkBackend, claims: Iterable[str] | None = None) -> AsyncIterator[Verdict]:
    """Run the attempts on a started backend, one after the other, telling each verdict as it comes."""
    bench = await Bench.of(backend)
    for attempt in ATTEMPTS if claims is None else map(find, claims):
        began = time.monotonic()
        detail = ""
        try:
            await attempt.run(bench)
        except (Broken, Error, TimeoutError) as error:
            detail = str(error) or type(error).__name__
        yield Verdict(claim=attempt.claim, held=not detail, detail=detail, seconds=time.monotonic() - began)
