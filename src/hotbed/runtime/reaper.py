"""What a run leaves on this host while it lives, and removing what an earlier run left when it was killed.

Everything a run makes carries its name: `hotbed-<pid>-<start time>-<random>`. Pid and start time together name one
process for ever, so a later run can tell whether the one that made a directory or a cgroup still lives. Processes need
no sweeping: templates die with their launcher and sandboxes with their template, by the kernel. Cgroups are emptied
all the same, before they are removed.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hotbed.runtime.groups import name_of_run, start_time_of
from hotbed.runtime.linux import cgroups

_NAME = re.compile(r"hotbed-(\d+)-(\d+)-[0-9a-f]{8}")


@dataclass(slots=True)
class Run:
    """This run's name and its directory."""

    name: str
    directory: Path
    _roots: int = 0

    @classmethod
    def begin(cls, base: str) -> Run:
        """Make the directory. Only its own can list it."""
        pid = os.getpid()
        name = name_of_run(secrets.token_hex(4), pid, start_time_of(pid) or 0)
        directory = Path(base, name)
        directory.mkdir()
        directory.chmod(0o711)  # a template must reach its root below it with an id of its own
        return cls(name, directory)

    def new_root(self) -> str:
        """An empty directory on which a template's root is put together, seen by its processes only."""
        self._roots += 1
        path = self.directory / f"root-{self._roots}"
        path.mkdir()
        return str(path)

    def end(self) -> None:
        """Remove the directory. Idempotent."""
        shutil.rmtree(self.directory, ignore_errors=True)


def is_abandoned(name: str) -> bool:
    """Whether a name is that of a run whose process no longer exists."""
    match = _NAME.match(name)
    return match is not None and start_time_of(int(match[1])) != int(match[2])


def sweep(base: str) -> int:
    """Remove what dead runs left; how many things were removed. Leaves what is not ours to touch."""
    removed = 0
    for path in _named(Path(base)):
        shutil.rmtree(path, ignore_errors=True)
        removed += 1
    v1, v2 = cgroups.parse(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    for root in {*v1.values(), *((v2,) if v2 else ())}:
        for path in _named(root):
            cgroups.kill_all(path)
            removed += cgroups.remove(path, patience_s=2.0)
    return removed


def _named(root: Path) -> Iterable[Path]:
    try:
        return [path for path in root.iterdir() if is_abandoned(path.name) and _is_ours(path)]
    except (FileNotFoundError, PermissionError):
        return []


def _is_ours(path: Path) -> bool:
    """Whether it is a directory of this user's: another's could not be removed, however long one tries."""
    try:
        info = path.lstat()
    except FileNotFoundError:  # another node's sweep took it
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid()
