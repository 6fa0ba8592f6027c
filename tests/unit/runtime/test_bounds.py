"""A template's process has a group like a sandbox, with room for what forking takes once it is warm."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from hotbed.errors import TemplateFailed
from hotbed.runtime import bounds
from hotbed.runtime.base import Limits


class Groups:
    """Gives out one slot, or none."""

    def __init__(self, slot: Any) -> None:
        self.slot = slot
        self.discarded: list[Any] = []

    async def set_apart(self, limits: Limits) -> Any:
        """The slot, if there is one."""
        if self.slot is not None:
            self.slot.limits = limits
        return self.slot

    def discard(self, slot: Any) -> None:
        """It will not be used again."""
        self.discarded.append(slot)


class Slot:
    """One group."""

    procs = (7,)

    def __init__(self, *, ran_out: bool = False) -> None:
        self.limits = Limits()
        self.was_out_of_memory = lambda: ran_out

    def set_limits(self, limits: Limits) -> None:
        """Others from now on."""
        self.limits = limits


class Process:
    """A template that says what it is told to."""

    def __init__(self, said: Any) -> None:
        self.gone = asyncio.get_running_loop().create_future()
        self._said = said

    async def ready(self, _: float) -> Any:
        """Ready, or what was wrong, after which it has ended."""
        if isinstance(self._said, Exception):
            self.gone.set_result("it ended")
            await asyncio.sleep(0)
            raise self._said
        return self._said


def run(slot: Any, said: Any) -> tuple[Groups, list[Any]]:
    """Start a template and wait for it; the groups, and what the launcher was asked."""
    groups, asked = Groups(slot), list[Any]()

    async def scenario() -> None:
        async def start(plan: Any, config: Any, procs: Any = ()) -> Any:
            asked.append((plan, procs))
            return Process(said)

        launching: Any = SimpleNamespace(start=start)
        process, bound = await bounds.start(launching, groups, Limits(memory_mib=2000), ({"a": 1}, {}))  # type: ignore[arg-type]  # stands in
        await bounds.warmed(process, bound, 1.0)

    asyncio.run(scenario())
    return groups, asked


def test_a_template_is_born_into_its_group_and_gets_room_for_forks_when_warm() -> None:
    """Until then it has no more than one of its sandboxes."""
    slot = Slot()

    groups, asked = run(slot, {"pid": 1})

    assert asked == [({"a": 1}, (7,))] and not groups.discarded
    assert slot.limits.memory_mib == 2000 + bounds.FORKS_MIB


def test_without_groups_its_data_is_limited() -> None:
    """It is something, and no less than is promised."""
    assert run(None, {})[1] == [({"a": 1, "data_mib": 2000}, ())]
    assert bounds.of_template(Limits(memory_mib=600)).memory_mib == bounds.MEMORY_MIB


@pytest.mark.parametrize(("ran_out", "match"), [(True, "ran out of memory"), (False, "^it ended")])
def test_who_ran_out_of_memory_is_told(ran_out: bool, match: str) -> None:
    """A traceback would not say it: there is none."""
    with pytest.raises(TemplateFailed, match=match):
        run(Slot(ran_out=ran_out), TemplateFailed("it ended"))


def test_a_group_ends_with_its_process_or_if_there_is_none() -> None:
    """It is not used again: what was charged to it may stay."""
    groups = Groups(Slot())

    async def scenario() -> None:
        async def fails(*_: object) -> Any:
            raise TemplateFailed("no launcher")

        launching: Any = SimpleNamespace(start=fails)
        with pytest.raises(TemplateFailed):
            await bounds.start(launching, groups, Limits(), ({}, {}))  # type: ignore[arg-type]  # stands in

    asyncio.run(scenario())

    assert groups.discarded == [groups.slot]


def test_a_copy_is_bounded_by_what_it_copies() -> None:
    """Files are memory."""
    assert bounds.of_copy(Limits(disk_mib=100)).memory_mib > 100
