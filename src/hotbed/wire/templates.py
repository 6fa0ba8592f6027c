"""Templates: what a sandbox is forked from, and how one is baked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from hotbed.wire.checks import require, require_egress, require_texts

SETUP_LIMIT = 200
PHASES = ("Pending", "Converting", "Distributing", "Live", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """When a template is ready: `cmd` has exited 0, then `http` answers 2xx, then `ports` are listened on.

    All of it happens inside a sandbox, within `timeout_s`; `http` is a URL of its loopback. What `cmd` leaves running
    is started again, and waited for, in each sandbox. `env` are variables that every program of the template gets.
    """

    cmd: str = ""
    http: str = ""
    ports: tuple[int, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    timeout_s: float = 300.0

    def __post_init__(self) -> None:
        number = isinstance(self.timeout_s, (int, float)) and not isinstance(self.timeout_s, bool)
        good_time = number and 0 < self.timeout_s <= 3600
        require(good_time, f"ready.timeout_s must be above 0 and at most 3600, not {self.timeout_s!r}")
        for port in self.ports:
            require(type(port) is int and 1 <= port <= 65535, f"ready.ports holds {port!r}, which is no port")
        require_texts("ready.cmd and ready.http", (self.cmd, self.http))
        good = not self.http or self.http.startswith(("http://localhost", "http://127.0.0.1", "http://[::1]"))
        require(
            good, f"ready.http {self.http[:80]!r} is not on the sandbox's own loopback", "http://localhost:PORT/PATH"
        )
        require(_has_a_port(self.http), f"ready.http {self.http[:80]!r} has no such port", "http://localhost:PORT/PATH")


def _has_a_port(url: str) -> bool:
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTemplate:
    """Name a template. The same name and content again is the same template; other content is refused.

    `image` is where its files come from: host, template:NAME, oci:DIR[:TAG], docker-archive:FILE, rootfs:PATH, or a
    registry's NAME[:TAG]. `setup` are commands that are run once, in a sandbox over it; what they change becomes part
    of the template. `warm_cmd` runs its `code`: a command that reads a program on stdin, and waits for it in parked
    sandboxes. `width` is how many its users expect at once.
    `egress` is what its sandboxes get that bring no policy; without `network` every policy is refused.
    """

    name: str
    image: str = "host"
    preload: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, float] | None = None
    setup: tuple[str, ...] = ()
    ready: Ready | None = None
    warm_cmd: str = ""
    network: bool = True
    egress: Mapping[str, Any] | None = None
    width: int = 1

    def __post_init__(self) -> None:
        require(self.name != "", "name is empty")
        require_texts("setup", self.setup)
        require_texts("preload", self.preload)
        require(self.ready is None or isinstance(self.ready, Ready), f"ready is {self.ready!r:.80}", "give a Ready")
        require_egress(self.egress)
        require(self.network or self.egress is None, "egress needs a network", "leave egress out, or network at true")
        require(len(self.setup) <= SETUP_LIMIT, f"at most {SETUP_LIMIT} setup commands")
        require(all(command.strip() for command in self.setup), "a setup command is empty")
        require(type(self.width) is int and self.width >= 1, f"width must be a number from 1 on, not {self.width!r}")

    @property
    def is_baked(self) -> bool:
        """Whether making it takes more than warming an interpreter of this host."""
        return self.image != "host" or bool(self.setup) or self.ready is not None or self.warm_cmd != ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectSandboxes:
    """So many sandboxes of a template will be wanted at once; 0 says that none are."""

    width: int

    def __post_init__(self) -> None:
        require(type(self.width) is int and self.width >= 0, f"width must be a number from 0 on, not {self.width!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateRow:
    """A template. `phase` is Pending, then Converting, then Distributing, then Live; Failed says why in `error`.

    `live_state` is "restarted" where what `ready` left running is started again in each sandbox, and "none" where it
    left nothing. `python` is the version of the image's that runs `code`; empty where there is none, and `notes` say
    why, and what else of the image is not honoured. `warm` and `frozen` are parked sandboxes, of `declared` kept ones;
    of `forks` so far, `warm_hits` were parked ones. `progress` tells how far a bake is, `log` what was printed last.
    """

    id: str
    name: str
    image: str
    digest: str = ""
    phase: str = "Pending"
    preload: tuple[str, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    visibility: str = "private"
    error: str = ""
    python: str = ""
    live_state: str = "none"
    declared: int = 1
    warm: int = 0
    frozen: int = 0
    forks: int = 0
    warm_hits: int = 0
    size_bytes: int = 0
    layers: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    progress: Mapping[str, Any] = field(default_factory=dict)
    log: str = ""
    build_fails: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateList:
    """Every template the caller can use."""

    templates: tuple[TemplateRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateDeleted:
    """A template is no more, or a bake has been given up."""

    id: str
    deleted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRow:
    """Something that a template can be made from: a template of the catalog, or an image that is unpacked here."""

    id: str
    name: str
    image: str
    visibility: str = "public"
    description: str = ""
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageList:
    """The catalog and, for the node's own user, what else is unpacked here."""

    images: tuple[ImageRow, ...] = ()
