"""What is known of an image once it is unpacked: plain data, kept as JSON beside the layers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hotbed.errors import InvalidRequest

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
LAYERS_LIMIT = 400
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def hex_of(digest: str) -> str:
    """A digest as a file's name. Raises `InvalidRequest`: it may be about to become a path."""
    if not _DIGEST.fullmatch(digest):
        raise InvalidRequest(f"{digest[:80]!r} is no sha256 digest")
    return digest.partition(":")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePython:
    """The interpreter an image brings. Its fork is what runs `code` warm."""

    executable: str
    version: str

    def __post_init__(self) -> None:
        if not self.executable.startswith("/") or "\0" in self.executable:
            raise InvalidRequest(f"{self.executable[:80]!r} is no path of an interpreter")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRecord:
    """One image. `layers` are keys of the store, the lowest first; `skipped` counts what unpacking left out.

    `over` are layers that setup commands made, over the image's and over what every sandbox is given. Without layers
    of its own (`host`) it is this machine's system, with these over it.

    `python` is None as long as it has not been looked for, or if there is none that can be used: `python_note` says.
    """

    digest: str
    source: str
    layers: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    host: bool = False
    env: tuple[tuple[str, str], ...] = ()
    workdir: str = ""
    size: int = 0
    entries: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    python: ImagePython | None = None
    python_note: str = ""

    def __post_init__(self) -> None:
        for digest in (self.digest, *self.layers, *self.over):
            hex_of(digest)
        count = len(self.layers) + len(self.over)
        if count > LAYERS_LIMIT:
            raise InvalidRequest(f"the image has {count} layers, and an overlay takes {LAYERS_LIMIT}")
        if self.workdir and not self.workdir.startswith("/"):
            raise InvalidRequest(f"the image's working directory {self.workdir[:80]!r} is not absolute")

    def to_plain(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> ImageRecord:
        """Back from JSON."""
        python = plain.get("python")
        return cls(
            **{
                **plain,
                "layers": tuple(plain["layers"]),
                "over": tuple(plain.get("over", ())),
                "env": tuple((str(name), str(value)) for name, value in plain["env"]),
                "notes": tuple(plain["notes"]),
                "python": ImagePython(**python) if python else None,
            }
        )
