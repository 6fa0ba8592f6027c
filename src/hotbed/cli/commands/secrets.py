"""What a node adds to requests of sandboxes: which secrets its file names, and whether the file is as it should be."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hotbed.cli.commands.node import needing_node
from hotbed.cli.output import Output
from hotbed.errors import InvalidRequest

if TYPE_CHECKING:
    from hotbed.egress.secrets import Secret
    from hotbed.node.secrets import Secrets

_HEAD = ("NAME", "HOSTS", "HEADER", "TENANTS")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed secrets`."""
    parser = commands.add_parser(
        "secrets",
        help="list the secrets that policies may name, or check their file",
        description="List the secrets that policies may name, never their values, or check the file they are in.",
    )
    parser.add_argument("action", choices=("list", "check"))
    parser.add_argument("--file", metavar="FILE", help="this one (egress-secrets.json under HOTBED_HOME)")
    parser.add_argument("--settings", metavar="FILE", help="the settings file of the node")
    return parser


def run(args: argparse.Namespace) -> int:
    """List or check."""
    with needing_node():
        from hotbed.node.secrets import Secrets
        from hotbed.server.settings import read_settings
    path = Path(args.file) if args.file else read_settings({"settings": args.settings}).policy().egress.secrets
    assert path is not None
    action = check if args.action == "check" else listing
    return action(Secrets(path), path, Output.of(args))


def listing(secrets: Secrets, path: Path, output: Output) -> int:
    """Every one, and for whom and where it is."""
    if not path.exists():
        output.talk(f"there is no {path}, so there are no secrets")
    rows = [row(secret) for secret in secrets.all()]
    if output.json:
        output.data(rows)
        return 0
    output.table(
        _HEAD, [(item["name"], *map(_words, (item["hosts"], item["header"], item["tenants"]))) for item in rows]
    )
    return 0


def check(secrets: Secrets, path: Path, output: Output) -> int:
    """Say all that is wrong with the file; a node refuses every policy that names a secret until nothing is."""
    try:
        found = secrets.mistakes()
    except FileNotFoundError:
        raise InvalidRequest(f"there is no {path}", hint="its form: docs/concepts/egress.md, Secrets") from None
    if output.json:
        output.data({"file": str(path), "ok": not found, "mistakes": found})
    else:
        for line in found:
            output.line(line)
        output.talk(
            f"{path}: {len(found)} mistake{'s' * (len(found) > 1)}"
            if found
            else f"{path}: {len(secrets.all())} secrets, as they should be"
        )
    return 1 if found else 0


def row(secret: Secret) -> dict[str, object]:
    """A secret as listed, without what it is."""
    return {
        "name": secret.name,
        "hosts": [_host(entry.text, entry.ports) for entry in secret.hosts],
        "header": secret.header,
        "tenants": list(secret.tenants),
    }


def _host(text: str, ports: tuple[int, ...]) -> str:
    return text if ":" in text else f"{text}:{','.join(map(str, ports or (443,)))}"


def _words(value: object) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)
