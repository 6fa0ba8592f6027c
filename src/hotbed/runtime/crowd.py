"""More templates than there is memory for: those that were used least lately end, and are started again when asked for.

A template that anybody has a sandbox of, or a snapshot, stays. Some end at a time, since what a process had is not free
the moment it is killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Protocol

from hotbed.runtime.linux.pressure import Memory

TEMPLATE_MIB = 96  # one with a few spares
_FREED_S = 0.05
_PART = 10


class Idler(Protocol):
    """A template, as far as this goes."""

    used_s: float

    def is_idle(self) -> bool:
        """Whether nobody has anything of it."""
        ...

    async def end_process(self, reason: str) -> None:
        """End it, until somebody asks for it."""
        ...


async def make_room(memory: Memory, templates: Collection[Idler]) -> None:
    """Before another is started: end idle ones until there is memory for it, or nobody to end."""
    while memory.available_mib() < TEMPLATE_MIB and await end_some(templates):
        await asyncio.sleep(_FREED_S)


async def relieve(memory: Memory, templates: Collection[Idler]) -> None:
    """Now and then: end some while the kernel reports pressure."""
    if memory.is_short() or memory.available_mib() < TEMPLATE_MIB:
        await end_some(templates)


async def end_some(templates: Collection[Idler]) -> int:
    """End the tenth of the idle ones that was used least lately; how many."""
    idle = sorted((template for template in templates if template.is_idle()), key=lambda one: one.used_s)
    ending = idle[: -(-len(idle) // _PART)]
    for template in ending:
        await template.end_process("another template needs its memory")
    return len(ending)
