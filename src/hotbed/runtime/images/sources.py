"""Where an image comes from, as one line of text that a user types.

host                          this machine's own system, seen read-only
template:NAME                 another template of this node, with its layers
oci:DIR[:TAG]                 an OCI image layout
docker-archive:FILE[:NAME]    what `docker save` wrote
rootfs:PATH                   a root directory, or a tar of one
deb:PACKAGE[,PACKAGE]         a small Debian with these packages, by mmdebstrap
docker://REGISTRY/NAME[:TAG]  a registry, by skopeo; the prefix may be left out
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast, get_args

from hotbed.errors import InvalidRequest

Kind = Literal["host", "template", "oci", "docker-archive", "rootfs", "deb", "registry"]

_LOCAL = ("oci", "docker-archive", "rootfs")
_REFERENCE = re.compile(
    r"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?/)?[a-z0-9][a-z0-9._/-]*(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
_PACKAGES = re.compile(r"[a-z0-9][a-z0-9+.-]+(?:,[a-z0-9][a-z0-9+.-]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][\w.+/@:-]*")
_HINT = (
    "image is host, template:NAME, oci:DIR[:TAG], docker-archive:FILE, rootfs:PATH, deb:PACKAGES"
    " or a registry's NAME[:TAG]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A place that holds an image. `place` is a path, a name or a reference; `tag` picks one of several there."""

    kind: Kind
    place: str = ""
    tag: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InvalidRequest(f"no image source {self.kind!r}", hint=_HINT)
        if self.kind in _LOCAL and not self.place.startswith("/"):
            raise InvalidRequest(f"{self.kind}: needs an absolute path, not {self.place[:80]!r}", hint=_HINT)
        if self.kind == "deb" and not _PACKAGES.fullmatch(self.place):
            raise InvalidRequest(f"{self.place[:80]!r} is no list of Debian packages", hint="deb:nodejs,ruby")

    @property
    def is_local(self) -> bool:
        """Whether it is the node's machine's own: its files, or what is made on it. Not every caller may have it."""
        return self.kind in _LOCAL or self.kind == "deb"

    def __str__(self) -> str:
        if self.kind == "host":
            return "host"
        prefix = "docker://" if self.kind == "registry" else f"{self.kind}:"
        return prefix + self.place + (f":{self.tag}" if self.tag else "")


def parse(text: str) -> Source:
    """The source that a line names. Raises `InvalidRequest`."""
    kind, colon, rest = text.partition(":")
    if "\0" in text or len(text) > 4096 or not text:
        raise InvalidRequest("image is empty or not text", hint=_HINT)
    if text == "host":
        return Source(kind="host")
    if colon and kind in ("template", "rootfs", "deb"):
        return Source(kind=cast(Kind, kind), place=rest)
    if colon and kind in _LOCAL:
        place, _, tag = rest.partition(":")
        if tag and not _TAG.fullmatch(tag):
            raise InvalidRequest(f"{tag[:80]!r} is no tag", hint=_HINT)
        return Source(kind=cast(Kind, kind), place=place, tag=tag)
    reference = text[len("docker://") :] if text.startswith("docker://") else text
    if not _REFERENCE.fullmatch(reference):
        raise InvalidRequest(f"image {text[:80]!r} is no source that we know", hint=_HINT)
    return Source(kind="registry", place=reference)
