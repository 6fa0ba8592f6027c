"""Schemas grow by numbered SQL files, applied in order, each once. A database's version is how many it has seen."""

from __future__ import annotations

import importlib.resources

from hotbed.errors import Error


def migrations(package: str) -> list[str]:
    """The SQL of a package's migrations, in order."""
    folder = importlib.resources.files(package) / "migrations"
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql"))
    return [(folder / name).read_text() for name in names]


def pending(package: str, version: int) -> list[tuple[int, str]]:
    """The migrations that a database of this version still needs, by number. Raises for one from a newer Hotbed."""
    found = migrations(package)
    if version > len(found):
        raise Error(
            f"the database was written by a newer Hotbed (schema {version}, this one knows {len(found)})",
            hint="upgrade Hotbed, restore the backup made before, or use another home or database; nothing was changed",
        )
    return list(enumerate(found[version:], version + 1))
