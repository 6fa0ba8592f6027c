"""Sandboxes that outlive one exec, and their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hotbed.wire.checks import require, require_egress, require_level, require_path, require_positive, require_seed
from hotbed.wire.execs import Determinism, Isolation

State = Literal["running", "suspended", "ended"]
FileVerb = Literal["stat", "list", "remove", "mkdir"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSandbox:
    """Fork a template and keep the sandbox until it is deleted, its lease ends, or one of its TTLs runs out.

    With a `snapshot` of a sandbox of the same template it starts with that one's files.
    """

    template: str
    limits: Mapping[str, float] | None = None
    ttl_s: float | None = None
    idle_ttl_s: float | None = None
    label: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    seed: str | None = None
    determinism: Determinism | None = None
    min_isolation: Isolation | None = None
    snapshot: str | None = None
    egress: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        require(self.template != "", "template is empty", "built-in templates: python, python-numpy")
        require_egress(self.egress)
        require_positive("ttl_s", self.ttl_s)
        require_positive("idle_ttl_s", self.idle_ttl_s)
        require_seed(self.seed)
        require_level(self.determinism)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxCreated:
    """A new sandbox and what it cost."""

    id: str
    template: str
    template_id: str
    state: str = "running"
    fork_time_ms: float = 0.0
    create_time_ms: float = 0.0
    warm_hit: bool = False
    isolation: str = ""
    seed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRow:
    """A sandbox as listed. `created_at` is RFC 3339 in UTC."""

    id: str
    template: str
    template_id: str
    state: str
    created_at: str
    age_s: float
    idle_s: float
    exec_count: int
    isolation: str
    warm_hit: bool = False
    fork_time_ms: float = 0.0
    label: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    lease_id: str | None = None
    seed: str = ""
    ttl_s: float | None = None
    idle_ttl_s: float | None = None
    parent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxList:
    """Every live sandbox of the caller."""

    sandboxes: tuple[SandboxRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The answer to a delete, the same the first time and after."""

    id: str
    deleted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Sandboxes of the caller for which all that is given here holds. At least one thing must be."""

    ids: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    lease_id: str | None = None

    def __post_init__(self) -> None:
        named = bool(self.ids or self.labels or self.group or self.lease_id)
        require(named, "nothing says which sandboxes", "give ids, labels, a group or a lease_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxesDeleted:
    """Which sandboxes were ended; nothing of them is left."""

    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWritten:
    """A file was written."""

    path: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeWritten:
    """A tar stream was extracted below `path`."""

    path: str
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOperation:
    """Look at or change a sandbox's files."""

    operation: FileVerb
    path: str

    def __post_init__(self) -> None:
        require_path(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One name in a directory, or what stat says of a path. `type` is file, dir, link or other; `mtime` in seconds."""

    name: str
    type: str
    size: int = 0
    mode: int = 0
    mtime: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAnswer:
    """The answer to a `FileOperation`: `entry` for stat, `entries` for list, neither for remove and mkdir.

    A list of a very large directory is cut short, and `truncated` says so.
    """

    path: str
    entry: FileEntry | None = None
    entries: tuple[FileEntry, ...] = ()
    truncated: bool = False
