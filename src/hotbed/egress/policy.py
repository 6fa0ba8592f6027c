"""A policy: what a sandbox may reach. The published object forms, and ours beside them.

`{"mode": "none"}`, `{"mode": "open"}`, `{"allow": [...]}`, `{"deny": [...]}`, `{"preset": "rl-leakage"}`. Lists and
presets may be given together: what a deny list names is refused, whatever else allows it; with anything to allow, only
that is allowed. A word alone is a mode or a preset. Nothing given is the template's default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from hotbed.egress.entries import Entry, entry_of
from hotbed.egress.presets import Preset
from hotbed.errors import InvalidRequest

Mode = Literal["none", "open", "allowlist", "denylist"]
FIELDS = ("mode", "allow", "deny", "preset", "bytes", "secret_refs", "record")
ENTRIES_LIMIT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is allowed. `max_bytes` is for everything together, both ways. `presets` are those it was made of."""

    mode: Mode
    allow: tuple[Entry, ...] = ()
    deny: tuple[Entry, ...] = ()
    presets: tuple[str, ...] = ()
    max_bytes: int | None = None
    secret_refs: tuple[str, ...] = ()
    record: bool = False
    recording: str = ""  # where its answers are kept: the node's to say, never a request's
    sealed: bool = False  # nothing is fetched: what is not in the recording is refused

    def reads(self, name: str, port: int) -> bool:
        """Whether what is said inside TLS to this host is held against it, too."""
        return self.record or any(
            entry.read and entry.names(name) and entry.on(port) for entry in (*self.allow, *self.deny)
        )

    @property
    def reads_any(self) -> bool:
        """Whether a sandbox under it has to trust the node's authority."""
        return self.record or bool(self.secret_refs) or any(entry.read for entry in (*self.allow, *self.deny))

    @property
    def denies_names(self) -> bool:
        """Whether a destination without a name could be a way around it."""
        return any(entry.host for entry in self.deny)

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports that it names."""
        return tuple(sorted({port for entry in self.allow for port in entry.ports}))

    def to_wire(self) -> dict[str, Any]:
        """As plain data that `parse` reads again without any preset."""
        return {
            "mode": self.mode,
            "allow": [entry.to_wire() for entry in self.allow],
            "deny": [entry.to_wire() for entry in self.deny],
            "bytes": self.max_bytes,
            "secret_refs": list(self.secret_refs),
            "record": self.record,
        }


NONE = Policy(mode="none")


def parse(given: object, presets: Mapping[str, Preset] | None = None) -> Policy:
    """Read a policy. Raises `InvalidRequest` that names what is wrong. Without `presets`, names of them may be any."""
    body = _object(given)
    _check_fields(body)
    named = _preset_names(body.get("preset"))
    known = [_preset(name, presets) for name in named] if presets is not None else []
    allow = (*_entries(body, "allow"), *(entry for preset in known for entry in preset.allow))
    deny = (*_entries(body, "deny"), *(entry for preset in known for entry in preset.deny))
    policy = Policy(
        mode=_mode(body, allow, deny, named),
        allow=allow,
        deny=deny,
        presets=named,
        max_bytes=_bytes(body.get("bytes")),
        secret_refs=_secret_refs(body.get("secret_refs")),
        record=_flag(body, "record"),
    )
    return _checked(policy, body)


def _object(given: object) -> Mapping[str, Any]:
    if isinstance(given, str):
        return {"mode": given} if given in get_args(Mode) else {"preset": given}
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"egress is an object or a word, not {given!r}", hint='such as {"allow": ["example.org"]}')
    return given


def _check_fields(body: Mapping[str, Any]) -> None:
    unknown = sorted(map(str, set(body) - set(FIELDS)))
    if unknown:
        raise InvalidRequest(f"egress: {unknown[0]!r} is not known", hint=f"egress has {', '.join(FIELDS)}")
    mode = body.get("mode")
    if mode is not None and mode not in get_args(Mode):
        raise InvalidRequest(f"egress: {mode!r} is no mode", hint=f"modes: {', '.join(get_args(Mode))}")


def _preset_names(given: object) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else given or ()
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest(f"egress: preset is a name or a list of names, not {given!r}")
    return tuple(names)


def _preset(name: str, presets: Mapping[str, Preset]) -> Preset:
    if name not in presets:
        raise InvalidRequest(f"egress: there is no preset {name[:64]!r}", hint=f"presets: {', '.join(sorted(presets))}")
    return presets[name]


def _entries(body: Mapping[str, Any], name: str) -> tuple[Entry, ...]:
    given = body.get(name)
    if given is None:
        return ()
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InvalidRequest(f"egress: {name} is a list of entries, not {given!r}")
    if len(given) > ENTRIES_LIMIT:
        raise InvalidRequest(f"egress: {name} has {len(given)} entries, {ENTRIES_LIMIT} at most")
    return tuple(entry_of(item, f"egress.{name}[{index}]") for index, item in enumerate(given))


def _mode(body: Mapping[str, Any], allow: Sequence[Entry], deny: Sequence[Entry], named: Sequence[str]) -> Mode:
    given: Mode | None = body.get("mode")
    if given is not None:
        return given
    if allow or body.get("allow") is not None:
        return "allowlist"
    if deny or body.get("deny") is not None or named:
        return "denylist"
    if body.get("secret_refs"):
        return "allowlist"  # of the hosts they are for
    if body.get("bytes") or body.get("record"):
        return "open"
    raise InvalidRequest("egress is empty", hint='say {"mode": "none"}, {"mode": "open"}, or what to allow or deny')


def _checked(policy: Policy, body: Mapping[str, Any]) -> Policy:
    """Refuse what contradicts itself."""
    if policy.mode in ("none", "open") and (body.get("allow") or (body.get("deny") and policy.mode == "none")):
        raise InvalidRequest(f"egress: mode {policy.mode!r} takes no list", hint="leave mode out, or say allowlist")
    if policy.mode == "denylist" and body.get("allow"):
        raise InvalidRequest("egress: mode 'denylist' takes no allow list", hint="leave mode out: only that is allowed")
    if policy.mode == "none" and (policy.secret_refs or policy.record):
        raise InvalidRequest("egress: mode 'none' has nothing to record and nobody to send a secret to")
    for index, entry in enumerate(policy.deny):
        if entry.max_bytes or entry.addresses:
            where = f"egress.deny[{index}]: {entry.text!r}"
            raise InvalidRequest(f"{where} has bytes or addresses, which are for entries of allow")
    return policy


def _bytes(given: object) -> int | None:
    if given is not None and (type(given) is not int or given <= 0):
        raise InvalidRequest(f"egress: bytes must be a whole number above 0, not {given!r}")
    return given if isinstance(given, int) else None


def _secret_refs(given: object) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, (list, tuple)) or not all(isinstance(name, str) for name in given):
        raise InvalidRequest("egress: secret_refs is a list of names of secrets that the node holds")
    return tuple(dict.fromkeys(given))


def _flag(body: Mapping[str, Any], name: str) -> bool:
    given = body.get(name)
    if given is not None and type(given) is not bool:
        raise InvalidRequest(f"egress: {name} is true or false, not {given!r}")
    return bool(given)


def with_deny(policy: Policy, more: Sequence[Entry]) -> Policy:
    """The policy with more refused."""
    return replace(policy, deny=(*policy.deny, *more))
