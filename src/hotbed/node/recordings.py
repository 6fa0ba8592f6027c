"""What rollouts heard from the network, kept below the node's home: a directory a recording, a file an answer."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

_DAY_S = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The rollout that was recorded first, as the ledger knows it."""

    id: str
    tenant: str
    group: str = ""


class Recordings:
    """Of one node. What nobody added to for `days` is removed when the next one begins."""

    def __init__(self, place: Path, *, days: float = 30.0) -> None:
        self._place = place
        self._days = days

    def name(self, of: Recorded) -> str:
        """The recording of a rollout, which is its group's if it has one."""
        told = "\0".join((of.tenant, "group" if of.group else "rollout", of.group or of.id))
        return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()

    def read(self, name: str) -> Iterator[tuple[str, bytes]]:
        """Its answers by their keys."""
        folder = self._place / name
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if not path.name.endswith(".new"):
                yield path.name, path.read_bytes()

    def keep(self, name: str, key: str, reply: bytes) -> None:
        """One more. A disk that refuses it costs the replay, not the rollout."""
        folder = self._place / name
        try:
            if not folder.is_dir():
                self._prune()
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = folder / f"{key}.new"
            fresh.write_bytes(reply)
            os.replace(fresh, folder / key)
        except OSError as error:
            log.error("event=recording_not_kept recording=%s error=%r", name, error)

    def _prune(self) -> None:
        oldest = time.time() - self._days * _DAY_S
        for folder in self._place.iterdir() if self._place.is_dir() else ():
            if folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)
