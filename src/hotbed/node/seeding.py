"""Which seed a request runs with, and how much is pinned by it. Pure.

A request that pins anything is completed here, before it is run and before it is written down: what the ledger holds
can be run again as it stands.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from hotbed.errors import InvalidRequest
from hotbed.runtime.base import Determinism
from hotbed.runtime.replay.streams import derive
from hotbed.wire.checks import fresh_seed
from hotbed.wire.execs import ExecRequest, RolloutRequest
from hotbed.wire.sandboxes import CreateSandbox

Request = TypeVar("Request", ExecRequest, RolloutRequest, CreateSandbox)


def level_of(request: CreateSandbox | ExecRequest) -> Determinism:
    """How much is pinned. When a request does not say, a seed pins randomness."""
    return request.determinism or ("rng" if request.seed is not None else "none")


def completed(request: Request) -> Request:
    """With the seed that it will run with, if it pins anything."""
    level = level_of(request)
    if isinstance(request, ExecRequest) and request.clock is not None and level != "full":
        raise InvalidRequest(
            f"a clock was given, and determinism is {level!r}", hint='only determinism="full" has a virtual clock'
        )
    if level == "none":
        return request
    return replace(request, determinism=level, seed=(request.seed or fresh_seed()).lower())


def in_sandbox(request: ExecRequest, *, seed: str, level: Determinism, number: int) -> ExecRequest:
    """An exec of a sandbox with a seed and a level of its own.

    Where the exec brings none, the first runs with the sandbox's seed, and each later one with a seed derived from it:
    with the same one, two execs would make the same "unique" names.
    """
    if request.seed is None and level != "none" and request.determinism != "none":
        own = seed if number == 1 else derive(bytes.fromhex(seed), "exec", number).hex()
        request = replace(request, seed=own, determinism=request.determinism or level)
    return completed(request)
