"""Named lists that policies are made of: readable files with a version, ours beside this module, yours in a directory.

A file is `{"name", "version", "about", "allow": [...]}` or with `deny`. Yours may not take the name of one of ours:
a policy written down today must mean the same tomorrow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotbed.egress.entries import Entry, entry_of
from hotbed.errors import InvalidRequest

LEAKAGE = "rl-leakage"
_BUILT_IN = Path(__file__).with_name("lists")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One list."""

    name: str
    version: str
    about: str
    allow: tuple[Entry, ...] = ()
    deny: tuple[Entry, ...] = ()


def preset_of(body: Mapping[str, Any], where: str) -> Preset:
    """Read one. Raises `InvalidRequest` that says what is wrong and where."""
    texts = {name: body.get(name) for name in ("name", "version", "about")}
    for name, value in texts.items():
        if not isinstance(value, str) or not value:
            raise InvalidRequest(f"{where}: {name} is missing", hint="a preset has a name, a version and an about")
    lists: dict[str, tuple[Entry, ...]] = {}
    for kind in ("allow", "deny"):
        given = body.get(kind, [])
        if not isinstance(given, list):
            raise InvalidRequest(f"{where}: {kind} is a list")
        lists[kind] = tuple(entry_of(item, f"{where}: {kind}[{index}]") for index, item in enumerate(given))
    return Preset(name=str(texts["name"]), version=str(texts["version"]), about=str(texts["about"]), **lists)


def load(own: Path | None = None) -> dict[str, Preset]:
    """Every preset by name: the built-in ones, and those of a directory."""
    found = {preset.name: preset for preset in map(_read, sorted(_BUILT_IN.glob("*.json")))}
    for path in sorted(own.glob("*.json")) if own is not None else ():
        preset = _read(path)
        if preset.name in found:
            raise InvalidRequest(f"{path}: there is a preset {preset.name!r} already", hint="give it another name")
        found[preset.name] = preset
    return found


def _read(path: Path) -> Preset:
    try:
        body = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"preset {path} cannot be read: {error}") from None
    if not isinstance(body, dict):
        raise InvalidRequest(f"preset {path} is no object")
    return preset_of(body, str(path))
