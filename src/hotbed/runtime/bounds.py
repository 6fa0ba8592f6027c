"""What a template's own process, and whoever makes layers for it, may use of the machine.

A template imports what it was asked to, and of an image it is the image's interpreter: no more trusted than a sandbox,
so it is in a group like one. Its children leave that group for their own before anything else; what the kernel
allocates to fork them stays, and is allowed for once it is warm. Where there are no groups a limit of its data stands
in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hotbed.errors import TemplateFailed
from hotbed.runtime.base import Limits
from hotbed.runtime.groups import Groups, Slot
from hotbed.runtime.launching import Launching
from hotbed.runtime.templates import TemplateProcess

MEMORY_MIB = 1024
FORKS_MIB = 4096  # page tables and kernel stacks of some thousands of living children
_COPY_MIB = 64
_PIDS = 4096
_CPUS = 2.0


def of_template(limits: Limits) -> Limits:
    """As much memory as one of its sandboxes, and no less than a GiB."""
    return replace(Limits(), memory_mib=max(MEMORY_MIB, limits.memory_mib), pids=_PIDS, cpus=_CPUS)


def of_copy(limits: Limits) -> Limits:
    """Of who copies a sandbox's files: they are memory."""
    return replace(Limits(), memory_mib=limits.disk_mib + _COPY_MIB, disk_mib=limits.disk_mib, pids=8, cpus=_CPUS)


class Bound:
    """The group of one template's process, for as long as that lives."""

    def __init__(self, groups: Groups, slot: Slot) -> None:
        self._groups = groups
        self._slot = slot
        self.ran_out = False

    def allow_forks(self) -> None:
        """It is warm: what it will be charged for its children comes on top."""
        limits = self._slot.limits
        if limits is not None:
            self._slot.set_limits(replace(limits, memory_mib=limits.memory_mib + FORKS_MIB))

    def end(self) -> None:
        """The process has ended."""
        self.ran_out = self._slot.was_out_of_memory()
        self._groups.discard(self._slot)


async def start(
    launching: Launching, groups: Groups, limits: Limits, orders: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> tuple[TemplateProcess, Bound | None]:
    """A template's process, in a group of its own where there are groups; it is not warm yet."""
    plan, config = orders
    allowed = of_template(limits)
    slot = await groups.set_apart(allowed)
    if slot is None:
        return await launching.start({**plan, "data_mib": allowed.memory_mib}, config), None
    bound = Bound(groups, slot)
    try:
        process = await launching.start(plan, config, slot.procs)
    except BaseException:
        bound.end()
        raise
    process.gone.add_done_callback(lambda _: bound.end())
    return process, bound


async def warmed(process: TemplateProcess, bound: Bound | None, timeout_s: float) -> Mapping[str, Any]:
    """Wait until it is warm; what it said. Raises `TemplateFailed`."""
    try:
        told = await process.ready(timeout_s)
    except TemplateFailed as error:
        if bound is None or not bound.ran_out:
            raise
        raise TemplateFailed(
            f"the template ran out of memory while it was warmed\n{error.message}",
            hint="limits.memory_mib is what it may use as well: preload less, or allow more",
        ) from None
    if bound is not None:
        bound.allow_forks()
    return told
