"""What a node is told when it starts: one frozen value, read once.

A flag wins over the environment, the environment over the settings file, the file over the default. Every field can be
given in all three: `max_sandboxes` is `--max-sandboxes`, `HOTBED_MAX_SANDBOXES`, and `max_sandboxes = 500` in TOML.
"""

from __future__ import annotations

import errno
import importlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from hotbed.errors import InvalidRequest
from hotbed.node.capacity import default_max_sandboxes, usable_cores, usable_memory_mib
from hotbed.node.egress import EgressSettings
from hotbed.node.policy import REGISTRIES, Policy
from hotbed.node.tenants import tiers_from
from hotbed.server.mistakes import refused
from hotbed.wire.places import runtime_dir

BackendName = Literal["fork", "fake"]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]

SHARED_PORT = 8080
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A node's settings. Without a `socket` and a port it listens on the runtime directory's `node.sock`.

    One that is `shared` with others (`hotbed serve`) listens on both, and on port 8080 when no other is named.
    """

    socket: str = ""
    host: str = "127.0.0.1"
    port: int = 0
    shared: bool = False
    tls_cert: str = ""
    tls_key: str = ""
    public_url: str = ""
    insecure: bool = False
    tiers: Mapping[str, Any] = field(default_factory=dict)
    runtime_dir: str = ""
    home: str = ""
    database: str = ""
    backend: BackendName = "fork"
    embedded: bool = False
    linger_s: float = 1.0
    first_lease_s: float = 30.0
    drain_s: float = 30.0
    lease_ttl_s: float = 15.0
    max_sandboxes: int = 0
    queue_limit: int = 10_000
    queue_wait_s: float = 60.0
    ttl_s: float = 24 * 3600.0
    idle_ttl_s: float = 3600.0
    max_templates: int = 32
    images_mib: int = 32_768
    registries: tuple[str, ...] = REGISTRIES
    catalog: tuple[str, ...] = ()
    boltz_slots: int = 0
    spares: int = 8
    egress: bool = True
    egress_tenants: tuple[str, ...] = ()
    ledger: bool = True
    ledger_days: float = 30.0
    ledger_mib: int = 4096
    dashboard: bool = True
    warm: tuple[str, ...] = ("python",)
    log_level: LogLevel = "info"
    log_file: str = ""
    log_format: LogFormat = "text"
    otlp_endpoint: str = ""

    def __post_init__(self) -> None:
        for name, allowed in (("backend", BackendName), ("log_level", LogLevel), ("log_format", LogFormat)):
            value = getattr(self, name)
            if value not in get_args(allowed):
                raise InvalidRequest(f"{name} is {' or '.join(get_args(allowed))}, not {value!r}")
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, (int, float)) and value < 0:
                raise InvalidRequest(f"{item.name} must not be negative, not {value!r}")
        if self.port > 65535:
            raise InvalidRequest(f"port must be at most 65535, not {self.port}")
        self._check_sharing()

    def _check_sharing(self) -> None:
        if bool(self.tls_cert) != bool(self.tls_key):
            raise InvalidRequest("TLS needs both tls_cert and tls_key", hint="give --tls-cert and --tls-key")
        if self.public_url and not _is_origin(self.public_url):
            raise InvalidRequest(
                f"public_url is http(s)://HOST[:PORT][/PATH], not {self.public_url!r}",
                hint="the address under which clients reach this server through what stands in front of it",
            )
        if not isinstance(self.tiers, Mapping):
            raise InvalidRequest("tiers is a table of the settings file, [tiers.NAME]")
        tiers_from(self.tiers)
        if self.is_exposed and not self.tls_cert and not self.insecure:
            raise InvalidRequest(
                f"{self.origin} can be reached from elsewhere, and without TLS keys could be read on the way",
                hint="give --tls-cert and --tls-key, bind to 127.0.0.1, or say --insecure",
            )

    @property
    def is_exposed(self) -> bool:
        """Whether other machines may reach the TCP port."""
        return bool(self.port) and self.host not in LOOPBACK

    @property
    def socket_path(self) -> Path | None:
        """Where the Unix socket is; None when the node listens on TCP alone."""
        if self.socket:
            return Path(self.socket)
        return None if self.port and not self.shared else Path(self.runtime_dir) / "node.sock"

    @property
    def origin(self) -> str:
        """The TCP port as an address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_cert else 'http'}://{host}:{self.port}"

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where it serves, as a client names it."""
        local = (f"unix://{self.socket_path}",) if self.socket_path is not None else ()
        return (*local, self.origin) if self.port else local

    @property
    def lanes_path(self) -> Path | None:
        """Where clients on this machine get the lanes of their pools: beside the Unix socket."""
        path = self.socket_path
        return path.with_name(f"{path.stem}-lanes.sock") if path is not None else None

    def policy(self) -> Policy:
        """What the node promises."""
        computed = default_max_sandboxes(memory_mib=usable_memory_mib(), cores=usable_cores())
        return Policy(
            max_sandboxes=self.max_sandboxes or computed,
            queue_limit=self.queue_limit,
            queue_wait_s=self.queue_wait_s,
            ttl_s=self.ttl_s,
            idle_ttl_s=self.idle_ttl_s,
            lease_ttl_s=self.lease_ttl_s,
            max_templates=self.max_templates,
            home=self.home,
            public_url=self.public_url,
            boltz_slots=self.boltz_slots,
            images_mib=self.images_mib,
            registries=self.registries,
            catalog=self.catalog,
            egress=EgressSettings(
                enabled=self.egress,
                tenants=self.egress_tenants,
                presets=Path(self.home) / "egress-presets",
                secrets=Path(self.home) / "egress-secrets.json",
                recordings=Path(self.home) / "egress-recordings",
            ),
        )


def notify_socket() -> str | None:
    """Where a service manager waits to hear that the node serves; taken from the environment, which others inherit."""
    name = os.environ.pop("NOTIFY_SOCKET", None)
    return "\0" + name[1:] if name and name.startswith("@") else name


def read_settings(flags: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process. `flags` holds what was given on the command line; None means "not given"."""
    environ = os.environ if environ is None else environ
    path = flags.get("settings") or environ.get("HOTBED_SETTINGS")
    found: dict[str, Any] = dict(_read_file(Path(path))) if path else {}
    known = {item.name: str(item.type) for item in fields(Settings)}
    for name in known:
        if text := environ.get(f"HOTBED_{name.upper()}"):  # an empty variable counts as unset
            found[name] = text
    found.update({name: value for name, value in flags.items() if name in known and value is not None})
    unknown = sorted(set(found) - set(known))
    if unknown:
        raise InvalidRequest(f"unknown setting {', '.join(unknown)}", hint=f"settings: {', '.join(sorted(known))}")
    if found.get("shared") and not found.get("port"):
        found["port"] = SHARED_PORT
    found.setdefault("runtime_dir", runtime_dir(environ.get("XDG_RUNTIME_DIR")))
    found.setdefault("home", str(Path(environ.get("HOME", "/")) / ".local/state/hotbed"))
    return Settings(**{name: _convert(name, value, known[name]) for name, value in found.items()})


def make_private_dir(path: Path) -> None:
    """Make a directory that only this user can enter. Raises `InvalidRequest` when somebody else's is in its place."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        hint = "set HOTBED_RUNTIME_DIR to a directory of your own"
        raise refused(error, f"the runtime directory {path} cannot be made", hint=hint) from None
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise InvalidRequest(
            f"{path} is not a directory that only uid {os.getuid()} can enter",
            hint="remove it, or set HOTBED_RUNTIME_DIR to a directory of your own (mode 0700)",
        )


def make_home(path: Path) -> None:
    """Make the directory that holds what a node keeps, where there is none."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        hint = "set HOTBED_HOME to a directory that it may write"
        raise refused(error, f"the node cannot keep its state in {path}", hint=hint) from None


def _read_file(path: Path) -> Mapping[str, Any]:
    try:
        tomllib: Any = importlib.import_module("tomllib")
    except ImportError:
        raise InvalidRequest("a settings file needs Python 3.11", hint="use flags or HOTBED_ variables") from None
    try:
        found: Mapping[str, Any] = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:  # what is not TOML or not UTF-8 is a ValueError
        raise InvalidRequest(f"settings file {path} cannot be read: {error}") from None
    return found


def _is_origin(text: str) -> bool:
    try:
        found = urlsplit(text)
        found.port  # noqa: B018 - raises for what is no number
    except ValueError:
        return False
    plain = not (found.query or found.fragment or found.username or found.password)
    return found.scheme in ("http", "https") and bool(found.hostname) and plain and text.isprintable()


_WORDS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
    "": False,
}


def _convert(name: str, value: Any, kind: str) -> Any:
    """A setting's text as its type; a value that is not text passes through to the checks of `Settings`."""
    try:
        if kind.startswith("tuple"):
            items = value.split(",") if isinstance(value, str) else value
            return tuple(str(item).strip() for item in items if str(item).strip())
        if not isinstance(value, str):
            return {"int": int, "float": float}.get(kind, lambda same: same)(value)
        if kind == "bool":
            return _WORDS[value.lower()]
        return {"int": int, "float": float}.get(kind, str)(value)
    except (ValueError, TypeError, KeyError):
        raise InvalidRequest(f"setting {name} is not {kind}: {value!r}") from None
