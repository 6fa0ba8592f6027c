"""The pool of cgroups, over plain directories that stand for them, and over real ones where we may."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from hotbed.runtime.base import Limits
from hotbed.runtime.groups import Groups, Slot, name_of_run, start_time_of
from hotbed.runtime.linux import cgroups
from hotbed.runtime.linux.cgroups import Layout

MEMORY = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control", "memory.usage_in_bytes")


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """One hierarchy whose groups get their files from us instead of from the kernel."""
    mkdir = Path.mkdir

    def make(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        mkdir(path, mode, parents, exist_ok)
        for name in (*MEMORY, "cgroup.procs"):
            (path / name).write_text("oom_kill 0\n" if name == "memory.oom_control" else "0" if "usage" in name else "")

    monkeypatch.setattr(Path, "mkdir", make)
    monkeypatch.setattr(cgroups, "remove", lambda path, **_: True)
    return Layout(kind="v1", controllers={"memory": tmp_path})


def test_slot_writes_limits_only_when_they_change(layout: Layout, tmp_path: Path) -> None:
    """Most sandboxes have the default ones."""
    slot = Slot(layout, "a", Limits(memory_mib=700))
    limit = tmp_path / "a" / "memory.limit_in_bytes"
    assert limit.read_text() == str(700 << 20)
    limit.write_text("")

    slot.set_limits(Limits(memory_mib=700))
    assert limit.read_text() == ""
    slot.set_limits(Limits(memory_mib=800))

    assert limit.read_text() == str(800 << 20)
    slot.destroy()


def test_slot_counts_out_of_memory_kills_from_its_beginning(layout: Layout, tmp_path: Path) -> None:
    """An earlier sandbox's are not this one's."""
    slot = Slot(layout, "a", Limits())
    (tmp_path / "a" / "memory.oom_control").write_text("oom_kill_disable 0\noom_kill 3\n")
    slot.begin()
    assert not slot.was_out_of_memory()

    (tmp_path / "a" / "memory.oom_control").write_text("oom_kill_disable 0\noom_kill 4\n")

    assert slot.was_out_of_memory()
    slot.destroy()


def test_light_slot_is_used_again_and_heavy_one_is_not(layout: Layout, tmp_path: Path) -> None:
    """Memory that is still charged would be the next sandbox's."""

    async def run() -> None:
        groups = Groups(layout, "run", Limits())
        light, heavy = await groups.take(Limits()), await groups.take(Limits())
        assert light is not None and heavy is not None and light is not heavy
        (heavy.directories[0] / "memory.usage_in_bytes").write_text(str(100 << 20))

        groups.give_back(light)
        groups.give_back(heavy)
        taken = {id(await groups.take(Limits())) for _ in range(groups.stats()["cgroups_free"])}

        assert id(light) in taken and id(heavy) not in taken
        await asyncio.get_running_loop().run_in_executor(None, groups.close)

    asyncio.run(run())


def test_without_groups_there_are_no_slots() -> None:
    """rlimits stand in; nothing is pretended."""

    async def run() -> None:
        groups = Groups(Layout(kind="none"), "run", Limits())
        await groups.fill()

        assert await groups.take(Limits()) is None and not groups.enabled
        groups.close()

    asyncio.run(run())


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of files that cannot be opened, for there is no descriptor left."""
    real, names = os.open, list[str]()

    def one_less(path: Path, *args: int, **about: int) -> int:
        if Path(path).name in names:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(path, *args, **about)

    monkeypatch.setattr(os, "open", one_less)
    return names


def test_a_slot_that_cannot_be_made_leaves_nothing(
    layout: Layout, missing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is short of descriptors would have fewer each time it tried."""
    removed: list[str] = []

    def remove(path: Path, **_: object) -> bool:
        removed.append(path.name)
        return True

    monkeypatch.setattr(cgroups, "remove", remove)
    missing.append("memory.usage_in_bytes")
    before = len(os.listdir("/proc/self/fd"))

    with pytest.raises(OSError, match="Too many"):
        Slot(layout, "a", Limits())

    assert len(os.listdir("/proc/self/fd")) == before and removed == ["a"]


def test_a_slot_that_cannot_be_set_is_given_back(layout: Layout, missing: list[str]) -> None:
    """And has its limits set again by whoever takes it next: some of them may be others'."""

    async def run() -> None:
        groups = Groups(layout, "run", Limits())
        await groups.fill()
        free = groups.stats()["cgroups_free"]
        missing.append("memory.limit_in_bytes")
        for _ in range(free):
            with pytest.raises(OSError, match="Too many"):
                await groups.take(Limits(memory_mib=900))
        assert groups.stats() == {"cgroups_free": free, "cgroups_used": 0}
        missing.clear()
        again = await groups.take(Limits())
        assert again is not None
        assert (again.directories[0] / "memory.limit_in_bytes").read_text() == str(Limits().memory_mib << 20)
        groups.give_back(again)
        await asyncio.get_running_loop().run_in_executor(None, groups.close)

    asyncio.run(run())


@pytest.mark.root
def test_real_slots_come_and_go() -> None:
    """Nothing is left in the kernel's tree."""
    layout = cgroups.discover()
    if layout.kind in ("none", "v2"):
        pytest.skip(f"cgroups here: {layout.kind}")
    name = name_of_run("0badcafe", os.getpid(), start_time_of(os.getpid()) or 0)

    async def run() -> None:
        groups = Groups(layout, name, Limits())
        slot = await groups.take(Limits(memory_mib=600))
        assert slot is not None and all(directory.is_dir() for directory in slot.directories)
        groups.give_back(slot)
        await asyncio.get_running_loop().run_in_executor(None, groups.close)

    asyncio.run(run())

    assert [path for root in layout.roots() for path in root.glob(name + "*")] == []


def test_what_is_set_apart_is_counted_with_no_sandbox_and_not_used_again(layout: Layout) -> None:
    """It may be charged with what outlives it."""
    groups = Groups(layout, "g", Limits())

    async def scenario() -> None:
        apart = await groups.set_apart(Limits(memory_mib=600))
        assert apart is not None and groups.stats()["cgroups_used"] == 0
        free = groups.stats()["cgroups_free"]
        groups.discard(apart)
        assert groups.stats() == {"cgroups_used": 0, "cgroups_free": free}

    asyncio.run(scenario())
    groups.close()
