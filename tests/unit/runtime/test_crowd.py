"""Which templates end when there are more than memory holds."""

from __future__ import annotations

import asyncio
from typing import Any

from hotbed.runtime import crowd


class Memory:
    """A machine on which each living template takes 100 MiB."""

    def __init__(self, mib: int, templates: list[Template]) -> None:
        self.mib, self.templates = mib, templates
        self.short = False

    def is_short(self) -> bool:
        """As set."""
        return self.short

    def available_mib(self) -> int:
        """What the living leave."""
        return self.mib - 100 * sum(one.alive for one in self.templates)


class Template:
    """Used at some time; busy or not."""

    def __init__(self, used_s: float, *, busy: bool = False) -> None:
        self.used_s, self.busy, self.alive = used_s, busy, True

    def is_idle(self) -> bool:
        """Alive, and not busy."""
        return self.alive and not self.busy

    async def end_process(self, reason: str) -> None:
        """It ends."""
        self.alive = False


def alive(templates: list[Template]) -> list[float]:
    """When those were used that live."""
    return [one.used_s for one in templates if one.alive]


def test_those_used_least_lately_end_and_no_more_than_must() -> None:
    """The one that is busy stays, however long ago it began."""
    templates = [Template(float(number), busy=number == 0) for number in range(8)]
    memory: Any = Memory(750, templates)
    asyncio.run(crowd.make_room(memory, templates))

    assert alive(templates) == [0.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def test_where_nobody_is_idle_nothing_ends() -> None:
    """The kernel may refuse the next; that is an error for who asked for it, and not for others."""
    templates = [Template(1.0, busy=True)]
    memory: Any = Memory(0, templates)
    asyncio.run(crowd.make_room(memory, templates))

    assert alive(templates) == [1.0]


def test_under_pressure_some_end_at_a_time() -> None:
    """Though memory looks available: the kernel has to work for it."""
    templates = [Template(float(number)) for number in range(20)]
    memory: Any = Memory(100_000, templates)
    asyncio.run(crowd.relieve(memory, templates))
    assert len(alive(templates)) == 20
    memory.short = True
    asyncio.run(crowd.relieve(memory, templates))

    assert alive(templates)[0] == 2.0
