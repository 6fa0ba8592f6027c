"""What is remembered of bakes from one run of the node to the next: a file for each template."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotbed.node.bakes.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How far a template came. `image` is its image's digest once it has one."""

    recipe: Recipe
    phase: str = "Pending"
    error: str = ""
    fails: int = 0
    image: str = ""
    live_state: str = "none"
    spec: Mapping[str, Any] = field(default_factory=dict)
    width: int = 1
    log: str = ""
    progress: Mapping[str, Any] = field(default_factory=dict)


class Journal:
    """A directory of entries. Without one nothing is remembered."""

    def __init__(self, home: str) -> None:
        self._folder = Path(home) / "templates" if home else None

    def read(self) -> list[Entry]:
        """Every entry that can be read; what cannot is of a version that we do not know, and is left alone."""
        if self._folder is None or not self._folder.is_dir():
            return []
        found = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                plain = json.loads(path.read_text())
                found.append(Entry(**{**plain, "recipe": Recipe.from_plain(plain["recipe"])}))
            except (OSError, ValueError, TypeError, KeyError):
                continue
        return found

    def write(self, entry: Entry) -> None:
        """Remember an entry in place of an earlier one."""
        if self._folder is None:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        plain = {name: getattr(entry, name) for name in Entry.__slots__ if name not in ("recipe", "progress")}
        with tempfile.NamedTemporaryFile("w", dir=self._folder, prefix=".", delete=False) as file:
            json.dump({**plain, "recipe": entry.recipe.to_plain()}, file)
        os.replace(file.name, self._path(self._folder, entry.recipe.name))

    def forget(self, name: str) -> None:
        """Remove an entry."""
        if self._folder is not None:
            self._path(self._folder, name).unlink(missing_ok=True)

    @staticmethod
    def _path(folder: Path, name: str) -> Path:
        return folder / (hashlib.sha256(name.encode()).hexdigest()[:32] + ".json")
