"""Keys: what clients of a server show to be let in. They are kept under HOTBED_HOME; a running server sees changes."""

from __future__ import annotations

import argparse
import re
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotbed.cli.commands.node import needing_node
from hotbed.cli.output import Output
from hotbed.errors import InvalidRequest

if TYPE_CHECKING:
    from hotbed.node.keys.key import Key
    from hotbed.server.settings import Settings

_SPAN = re.compile(r"(\d{1,5})([hdw])")
_SCOPES = "run,grade,read"
_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed keys`."""
    parser = commands.add_parser("keys", help="make, list and revoke keys", description=__doc__)
    parser.add_argument("action", choices=("create", "list", "revoke"))
    parser.add_argument("id", nargs="?", help="the key to revoke")
    parser.add_argument("--tenant", metavar="NAME", help="whose it is (create)")
    parser.add_argument("--tier", metavar="NAME", help="demo, pro, ent or one of the settings file (pro)")
    parser.add_argument("--scopes", metavar="LIST", help="of admin, run, grade, read, metrics (run,grade,read)")
    parser.add_argument("--expires", metavar="SPAN", help="for how long it is good: 12h, 30d, 8w (for ever)")
    parser.add_argument("--label", metavar="TEXT", help="what it is for")
    parser.add_argument("--collimate", action="store_true", help="in the shape that the published client knows, col_…")
    parser.add_argument("--settings", metavar="FILE", help="a TOML file of settings")
    return parser


def run(args: argparse.Namespace) -> int:
    """Do one of them."""
    with needing_node():
        from hotbed.node.keys.store import KeyStore
        from hotbed.server.settings import read_settings
    settings = read_settings({"settings": args.settings})
    output = Output.of(args)
    store = KeyStore(Path(settings.home), settings.database)
    try:
        return _ACTIONS[args.action](args, settings, store, output)
    finally:
        store.close()


def create(args: argparse.Namespace, settings: Settings, store: Any, output: Output) -> int:
    """Make one. Its text is shown now and never again."""
    from hotbed.node.keys.key import Key, key_text, new_secret
    from hotbed.node.tenants import tiers_from

    if not args.tenant:
        raise InvalidRequest("whose key is it?", hint="hotbed keys create --tenant NAME")
    tier, tiers = args.tier or "pro", tiers_from(settings.tiers)
    if tier not in tiers:
        raise InvalidRequest(f"no tier {tier!r}", hint=f"tiers: {', '.join(tiers)}; more in the settings file")
    key = Key(
        tenant=args.tenant,
        tier=tier,
        scopes=frozenset(word.strip() for word in (_SCOPES if args.scopes is None else args.scopes).split(",")),
        label=args.label or "",
        expires_at=time.time() + span(args.expires) if args.expires else None,
    )
    secret = new_secret()
    store.add(key, secret)
    text = key_text(key, secret, collimate=args.collimate)
    if output.json:
        output.data({**row(key), "key": text})
        return 0
    output.line(text)
    output.talk(f"key {key.id} of tenant {key.tenant}, tier {key.tier}; it is not shown again")
    return 0


def listing(args: argparse.Namespace, settings: Settings, store: Any, output: Output) -> int:
    """Every key that was ever made."""
    rows = [row(key) for key, _ in store.all()]
    if output.json:
        output.data(rows)
        return 0
    head = ("id", "tenant", "tier", "scopes", "state", "created", "expires", "label")
    output.table([name.upper() for name in head], [[item[name] for name in head] for item in rows])
    return 0


def revoke(args: argparse.Namespace, settings: Settings, store: Any, output: Output) -> int:
    """Make one useless, at once and for good."""
    if not args.id:
        raise InvalidRequest("which key?", hint="hotbed keys revoke ID; `hotbed keys list` shows them")
    key = store.revoke(args.id)
    if output.json:
        output.data(row(key))
    output.talk(f"key {key.id} of tenant {key.tenant} is revoked")
    return 0


def row(key: Key) -> dict[str, str]:
    """A key as listed, without anything that lets somebody in."""
    trouble = key.trouble(time.time())
    state = {None: "good", "it was revoked": "revoked"}.get(trouble, "expired")
    return {
        "id": key.id,
        "tenant": key.tenant,
        "tier": key.tier,
        "scopes": ",".join(sorted(key.scopes)),
        "state": state,
        "created": moment(key.created_at),
        "expires": moment(key.expires_at) if key.expires_at is not None else "never",
        "label": key.label,
    }


def span(text: str) -> int:
    """A span of time in seconds."""
    match = _SPAN.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise InvalidRequest(f"{text!r} is not a span of time", hint="such as 12h, 30d or 8w")
    return int(match[1]) * _SECONDS[match[2]]


def moment(at: float) -> str:
    """A time in UTC."""
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


_ACTIONS = {"create": create, "list": listing, "revoke": revoke}
