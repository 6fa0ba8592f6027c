"""What grading asks of the node it runs on: sandboxes whose ends are looked after, and room for groups of them.

A group needs several sandboxes at once: its candidates and a judge. Two groups that each hold half of what they need
would wait for each other for ever, so a group takes its whole room here before it forks anything. Half of the node's
sandboxes are for grading; the other half keeps rollouts and pools moving meanwhile.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from hotbed.grading.limits import CallLimits
from hotbed.node.held import HeldBox
from hotbed.node.leases import Lease
from hotbed.node.scheduler import Share
from hotbed.runtime.base import BoxRequest, Determinism, Limits, Program, Solo, Template

Fork = Callable[[Template, BoxRequest, Lease | None], Awaitable[HeldBox]]

_DISK_SHARE = 2  # a sandbox's disk may be at most half of its memory


class Room:
    """A number of sandboxes that groups take all at once, first come first served."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.free = size
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def taken(self, count: int) -> AsyncIterator[None]:
        """Room for so many, at most `size`, for as long as the context lasts."""
        await self._take(count)
        try:
            yield
        finally:
            self._give(count)

    async def _take(self, count: int) -> None:
        if self.free >= count and not self._waiting:
            self.free -= count
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (count, granted)
        self._waiting.append(entry)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():
                if entry in self._waiting:
                    self._waiting.remove(entry)
                self._give(0)  # whoever waited behind it may fit
            else:
                self._give(count)
            raise

    def _give(self, count: int) -> None:
        self.free += count
        while self._waiting and self._waiting[0][0] <= self.free:
            wanted, granted = self._waiting.popleft()
            if not granted.done():
                self.free -= wanted
                granted.set_result(None)


class TenantRoom(Room):
    """One tenant's part of the room: half of its share, since what is left is for what it keeps."""

    def __init__(self, share: Share, outer: Room) -> None:
        super().__init__(max(2, min(share.limit // 2, outer.size)))
        self.share = share
        self._outer = outer

    @asynccontextmanager
    async def taken(self, count: int) -> AsyncIterator[None]:
        """Room for so many, in the tenant's part first, so that its line delays nobody else."""
        async with super().taken(count), self._outer.taken(count):
            yield


class Lanes:
    """The CPUs, and how many judges work on each.

    A judge and its candidates that share a CPU halve the cost of a call, and cannot use another CPU that is idle. So
    several candidates share one only when there are no idle ones to use; a single one waits while its judge works.
    """

    def __init__(self, cpus: Iterable[int]) -> None:
        self._busy = {cpu: 0 for cpu in cpus}

    @contextmanager
    def taken(self, candidates: int) -> Iterator[int | None]:
        """The CPU for one more judge and its candidates; None for any."""
        cpu = min(self._busy, key=lambda each: self._busy[each])
        self._busy[cpu] += 1
        try:
            shared = candidates == 1 or sum(self._busy.values()) >= len(self._busy)
            yield cpu if shared and len(self._busy) > 1 else None
        finally:
            self._busy[cpu] -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A guest program in a sandbox of its own, and our end of its channel. `alone`: it is that sandbox's pid 1."""

    held: HeldBox
    program: Program
    channel: socket.socket
    alone: bool

    def end(self) -> None:
        """Close the channel and end the sandbox, without waiting for either. Idempotent."""
        self.channel.close()
        self.held.discard("graded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """How the node forks sandboxes, of which template, and the lease that a group lives under.

    A parked sandbox answers sooner and costs more: it was made ready for code that grading does not send. So
    `use_spares` is for a group that is alone on its node.
    """

    fork: Fork
    template: Template
    lease: Lease | None
    use_spares: bool = True
    program_config: Mapping[str, Any] = field(default_factory=dict)
    made: list[HeldBox] = field(default_factory=list)

    @asynccontextmanager
    async def sandbox(
        self, limits: CallLimits | None = None, *, seed: str | None = None, determinism: Determinism = "none"
    ) -> AsyncIterator[HeldBox]:
        """A fresh sandbox for as long as the context lasts. Its end does not wait for the teardown."""
        held = await self._fork(self._request(limits, seed, determinism))
        try:
            yield held
        finally:
            held.discard("graded")

    async def start(
        self,
        program: str,
        limits: CallLimits | None = None,
        *,
        seed: str | None = None,
        determinism: Determinism = "none",
    ) -> Running:
        """A guest program in a fresh sandbox: alone in it where that can be, which halves what it costs to make."""
        request = self._request(limits, seed, determinism)
        ours, theirs = socket.socketpair()
        try:
            if self.template.solos and request.seed is None:
                solo = Solo(program=program, config=self.program_config, channel=theirs)
                held = await self._fork(replace(request, solo=solo, use_spare=False))
                found: Any = held.box  # the two are one
                return Running(held=held, program=found, channel=ours, alone=True)
            if request.seed is not None:  # beside what a spare has waiting, its process would have another number
                request = replace(request, use_spare=False)
            held = await self._fork(request)
            try:
                running = await held.box.start(program, self.program_config, theirs)
            except BaseException:
                held.discard("its program could not be started")
                raise
            return Running(held=held, program=running, channel=ours, alone=False)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()  # unless it has gone with the sandbox already

    def _request(self, limits: CallLimits | None, seed: str | None, determinism: Determinism) -> BoxRequest:
        return BoxRequest(
            limits=box_limits(self.template.spec.limits, limits) if limits is not None else None,
            seed=bytes.fromhex(seed) if seed is not None and determinism != "none" else None,
            determinism=determinism,
            use_spare=self.use_spares,
        )

    async def _fork(self, request: BoxRequest) -> HeldBox:
        held = await self.fork(self.template, request, self.lease)
        self.made.append(held)
        return held

    async def wait_ended(self) -> None:
        """Wait until nothing is left of any sandbox that was made here."""
        await asyncio.gather(*(held.end("graded") for held in self.made))


def box_limits(base: Limits, limits: CallLimits) -> Limits | None:
    """The sandbox's limits for a spec's; None where the template's own will do, so that a parked one fits."""
    if limits.memory_mib == base.memory_mib:
        return None
    disk = max(1, min(base.disk_mib, limits.memory_mib // _DISK_SHARE))
    return replace(base, memory_mib=limits.memory_mib, disk_mib=disk)
