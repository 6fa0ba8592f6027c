"""Freezing all processes of a sandbox at once, with the cgroup v2 freezer (Documentation/admin-guide/cgroup-v2.rst).

Where limits are in v2, the sandbox's own group is frozen. In a hybrid layout its processes are moved into a group of
the v2 tree first, made when it is needed: it is frozen before they come, so whoever has been moved forks no more, and
it is full when a look finds nobody outside. The freezer of v1 is not used: what it holds cannot be killed (SIGKILL
waits for the thaw), so a node that was killed would leave processes behind. A frozen process of v2 dies as any other.

Everything here may block for a moment; the runtime calls it from a thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hotbed.runtime.linux import cgroups

_DEADLINE_S = 5.0
_FREEZE, _EVENTS = "cgroup.freeze", "cgroup.events"


@dataclass(frozen=True, slots=True, kw_only=True)
class Freezer:
    """Where to freeze. `root` is the group of the v2 tree below which groups are made, if sandboxes have none in it."""

    own: bool
    root: Path | None = None


def find(layout: cgroups.Layout) -> Freezer | None:
    """How sandboxes of this layout can be frozen; None if they cannot."""
    if layout.kind == "v2":
        return Freezer(own=True)
    if layout.kind == "none":
        return None
    _, v2 = cgroups.parse(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    if v2 is None or cgroups.trial(v2) is not None:
        return None
    return Freezer(own=False, root=v2)


class Freeze:
    """The group of one sandbox. Made when it is first frozen; `end` removes what was made."""

    def __init__(self, freezer: Freezer, name: str, own: Path, members: Callable[[], list[int]]) -> None:
        """`own` is the sandbox's first group, `members` tells its processes."""
        self._members = members
        self._made = not freezer.own
        self._group = own if freezer.root is None else freezer.root / name

    def begin(self) -> None:
        """Freeze, and return when everything is. Raises OSError, with nothing frozen, also when it takes too long."""
        if self._made:
            self._group.mkdir(exist_ok=True)
        cgroups.write(self._group / _FREEZE, "1")
        try:
            deadline = time.monotonic() + _DEADLINE_S
            while self._outside() or not self._is_frozen():
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{self._group} was not frozen in {_DEADLINE_S:.0f} s")
                time.sleep(0.0002)
        except BaseException:
            self.end()
            raise

    def _outside(self) -> bool:
        """Move in who is not there yet; whether there was anybody."""
        if not self._made:
            return False
        missing = set(self._members()) - set(cgroups.members(self._group))
        for pid in missing:
            try:
                cgroups.write(self._group / "cgroup.procs", str(pid))
            except ProcessLookupError:
                continue
        return bool(missing)

    def _is_frozen(self) -> bool:
        return "frozen 1" in (self._group / _EVENTS).read_text()

    def end(self) -> None:
        """Thaw."""
        try:
            cgroups.write(self._group / _FREEZE, "0")
        except FileNotFoundError:
            return

    def remove(self) -> None:
        """The sandbox has ended: remove a group that was made for it."""
        if self._made:
            cgroups.remove(self._group)


def reclaim(group: Path) -> int | None:
    """Have the kernel take back what memory of a group it can; bytes, or None where it offers no way to ask for it."""
    for usage, order, amount in (
        ("memory.current", "memory.reclaim", None),
        ("memory.usage_in_bytes", "memory.force_empty", "0"),
    ):
        try:
            before = int((group / usage).read_text())
            _try_write(group / order, str(before) if amount is None else amount)
            return max(0, before - int((group / usage).read_text()))
        except OSError:
            continue
    return None


def _try_write(path: Path, text: str) -> None:
    """EAGAIN and EBUSY say that not all of it could be done, which is as good as it gets."""
    try:
        cgroups.write(path, text)
    except (BlockingIOError, InterruptedError):
        pass
    except OSError as error:
        if error.errno != 16:  # EBUSY
            raise
