"""Templates: what a sandbox is forked from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hotbed.wire.checks import require


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTemplate:
    """Name a template. The same name and content again is the same template; other content is refused."""

    name: str
    image: str = "host"
    preload: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        require(self.name != "", "name is empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateRow:
    """A template. `phase` is Pending until its interpreter is warm, then Live; Failed says why in `error`."""

    id: str
    name: str
    image: str
    digest: str = ""
    phase: str = "Pending"
    preload: tuple[str, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    visibility: str = "private"
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateList:
    """Every template the caller can use."""

    templates: tuple[TemplateRow, ...] = ()
