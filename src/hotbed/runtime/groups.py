"""A pool of cgroups: made ahead, handed to sandboxes, used again only when they are empty and clean.

A *slot* is one group per hierarchy, with the files that matter already open: `cgroup.procs`, to which the newborn
sandbox writes itself (the kernel checks the rights of whoever opened the file, which is the node), and the event
counters. All that the kernel may block on happens in one thread; taking a slot that is ready does not.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hotbed.runtime.base import Limits
from hotbed.runtime.linux import cgroups
from hotbed.runtime.linux.cgroups import Layout
from hotbed.runtime.pulse import Pulse

log = logging.getLogger(__name__)

_READY = 24
_BATCH = 8
_CLEAN_BYTES = 8 << 20
_PATIENCE_S = 2.0


class Slot:
    """The groups of one sandbox, and descriptors of their files."""

    def __init__(self, layout: Layout, name: str, limits: Limits) -> None:
        self._layout = layout
        self._name = name
        self.limits: Limits | None = None
        self.directories = [root / name for root in layout.roots()]
        self._files: list[int] = []
        try:
            self._make(limits)
        except OSError:  # this process may be short of descriptors, and would be for ever by what is left of this
            self.destroy()
            raise
        self._oom_base = 0

    def _make(self, limits: Limits) -> None:
        for directory in self.directories:
            directory.mkdir()
        self.set_limits(limits)
        self.procs = tuple(self._open(d / "cgroup.procs", os.O_WRONLY) for d in self.directories)
        v2 = self._layout.kind == "v2"
        self.memory_events = self._look_at("memory", "memory.events" if v2 else "memory.oom_control")
        self.pids_events = self._look_at("pids", "pids.events")
        self._usage = self._look_at("memory", "memory.current" if v2 else "memory.usage_in_bytes")

    def _look_at(self, controller: str, name: str) -> int | None:
        root = self._layout.controllers.get(controller)
        return None if root is None else self._open(root / self._name / name, os.O_RDONLY)

    def _open(self, path: Path, flags: int) -> int:
        fd = os.open(path, flags | os.O_CLOEXEC)
        self._files.append(fd)
        return fd

    def set_limits(self, limits: Limits) -> None:
        """Change them where they differ from what is set."""
        if limits == self.limits:
            return
        self.limits = None  # until all of them are set
        for controller, root in self._layout.controllers.items():
            settings = cgroups.limit_settings(
                self._layout.kind, controller, memory_mib=limits.memory_mib, pids=limits.pids, cpus=limits.cpus
            )
            cgroups.apply(root / self._name, settings)
        self.limits = limits

    def begin(self) -> None:
        """A new sandbox uses it from now on."""
        self._oom_base = self._oom_kills()

    def was_out_of_memory(self) -> bool:
        """Whether the kernel has killed for memory since `begin`."""
        return self._oom_kills() > self._oom_base

    def _oom_kills(self) -> int:
        if self.memory_events is None:
            return 0
        words = os.pread(self.memory_events, 4096, 0).split()
        return int(words[words.index(b"oom_kill") + 1]) if b"oom_kill" in words else 0

    def memory_directory(self) -> Path | None:
        """Its group of the memory controller, if there is one."""
        root = self._layout.controllers.get("memory")
        return None if root is None else root / self._name

    def members(self) -> list[int]:
        """The pids in it, as this process sees them."""
        return cgroups.members(self.directories[0]) if self.directories else []

    def is_clean(self) -> bool:
        """Whether nothing lives in it and nothing much is still charged to it."""
        return self.is_light() and not any(cgroups.members(directory) for directory in self.directories)

    def is_light(self) -> bool:
        """Whether the kernel has taken back the memory that was charged to it."""
        return self._usage is None or int(os.pread(self._usage, 64, 0)) <= _CLEAN_BYTES

    def destroy(self) -> bool:
        """Close its files, kill what is in it, remove its groups. Whether they are gone."""
        while self._files:
            os.close(self._files.pop())
        gone = True
        for directory in self.directories:
            if cgroups.members(directory):
                cgroups.kill_all(directory)
            gone = cgroups.remove(directory) and gone
        return gone


class Groups:
    """The pool. `take` and `give_back` are for the event loop; `make`, `close` for before and after it."""

    def __init__(self, layout: Layout, name: str, limits: Limits, pulse: Pulse | None = None) -> None:
        self.layout = layout
        self._name = name
        self._limits = limits
        self._pulse = pulse or Pulse(None)
        self._free: deque[Slot] = deque()
        self._cooling: deque[tuple[float, Slot]] = deque()
        self._closed = False
        self._count = 0
        self._out = 0
        self._filling: asyncio.Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hotbed-cgroups")

    @property
    def enabled(self) -> bool:
        """Whether there are groups at all."""
        return bool(self.layout.controllers)

    def stats(self) -> dict[str, int]:
        """How many there are."""
        return {"cgroups_free": len(self._free), "cgroups_used": self._out}

    async def fill(self) -> None:
        """Have a stock ready."""
        if self.enabled and len(self._free) < _READY:
            if self._filling is None or self._filling.done():
                loop = asyncio.get_running_loop()
                self._filling = loop.run_in_executor(self._thread, self._make, _BATCH)
            await asyncio.shield(self._filling)

    def _make(self, count: int) -> None:
        for _ in range(count):
            self._count += 1
            self._free.append(Slot(self.layout, f"{self._name}-{self._count}", self._limits))

    async def take(self, limits: Limits) -> Slot | None:
        """A slot with these limits; None where there are no groups."""
        if not self.enabled:
            return None
        self._pulse.beat()
        while not self._free:
            await self.fill()
        slot = self._free.popleft()
        self._out += 1
        if len(self._free) < _READY // 2:
            asyncio.ensure_future(self.fill())
        try:
            slot.set_limits(limits)
            slot.begin()
        except OSError:
            self.give_back(slot)
            raise
        return slot

    def give_back(self, slot: Slot) -> None:
        """Take a slot whose sandbox has been reaped. Used again once it is clean, or removed."""
        self._out -= 1
        if slot.is_light() and len(self._free) < 4 * _READY:  # its pid 1 is reaped, so no process is in it
            self._free.append(slot)
            return
        self._cooling.append((time.monotonic(), slot))
        if not self._closed:
            self._thread.submit(self._recycle)

    async def set_apart(self, limits: Limits) -> Slot | None:
        """The same for what is no sandbox, and is to be discarded."""
        slot = await self.take(limits)
        self._out -= slot is not None
        return slot

    def discard(self, slot: Slot) -> None:
        """Remove a slot that was set apart, with whatever is still in it."""
        if self._closed:
            slot.destroy()
        else:
            self._thread.submit(slot.destroy)

    def _recycle(self) -> None:
        """Look at each slot that cools; the kernel lets go of a dead sandbox's memory a moment later."""
        for _ in range(len(self._cooling)):
            since, slot = self._cooling.popleft()
            if slot.is_clean() and len(self._free) < 4 * _READY:
                self._free.append(slot)
            elif time.monotonic() - since < _PATIENCE_S and len(self._free) < _READY:
                self._cooling.append((since, slot))
            elif not slot.destroy():
                log.warning("event=cgroup_left name=%s", slot.directories[0])
        if self._cooling and not self._closed:
            time.sleep(0.005)
            self._thread.submit(self._recycle)

    def close(self) -> None:
        """Remove every group, waiting for the thread. Blocks; idempotent."""
        self._closed = True
        self._pulse.close()
        self._thread.shutdown(wait=True)
        for slot in (*self._free, *(slot for _, slot in self._cooling)):
            slot.destroy()
        self._free.clear()
        self._cooling.clear()


def run_delay_s(pid: int) -> float:
    """How long a process was runnable without a CPU, all told (Documentation/scheduler/sched-stats.rst)."""
    try:
        with open(f"/proc/{pid}/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):  # it is gone, or the kernel keeps no such statistics
        return 0.0


def name_of_run(node: str, pid: int, start_time: int) -> str:
    """The name that groups of one run begin with, from which a later run can tell whether it still lives."""
    return f"hotbed-{pid}-{start_time}-{node}"


def start_time_of(pid: int) -> int | None:
    """A process's start time in clock ticks; with its pid it names one process for ever. None if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(text.rpartition(")")[2].split()[19])
