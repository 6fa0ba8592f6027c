"""Show what this host allows, which isolation results, and what to do about the rest."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Protocol

from hotbed.cli.output import Output


class Check(Protocol):
    """One thing a host allows or not, or a sandbox withstands or not."""

    @property
    def name(self) -> str: ...
    @property
    def ok(self) -> bool: ...
    @property
    def detail(self) -> str: ...
    @property
    def hint(self) -> str | None: ...
    @property
    def needed(self) -> bool: ...


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed doctor`."""
    parser = commands.add_parser(
        "doctor",
        help="check this host",
        description="Try what sandboxes need, on this host and as this user; say which isolation results, what is "
        "missing and how to mend it. Exits with 1 when something needed is missing or an attack succeeds.",
    )
    parser.add_argument("--self-check", action="store_true", help="also attack a sandbox on this host")
    return parser


def run(args: argparse.Namespace) -> int:
    """Check it."""
    from hotbed.runtime import probe

    output = Output.of(args)
    host = probe.checks()
    isolation = probe.isolation_of(host)
    good = isolation != "none"
    if output.json:
        output.data({"isolation": isolation, "host": [as_data(check) for check in host]})
    else:
        show(output, "host", host)
        output.line(f"isolation: {output.paint(isolation, 'green' if good else 'red')}")
    return 0 if good else 1


def show(output: Output, title: str, checks: Iterable[Check]) -> None:
    """One line a check, and under what fails how to mend it."""
    output.line(output.paint(title, "bold"))
    for check in checks:
        word, color = ("ok", "green") if check.ok else ("no", "red" if check.needed else "yellow")
        output.line(f"  {output.paint(word, color)}  {check.name}{f': {check.detail}' if check.detail else ''}")
        if not check.ok and check.hint:
            output.line(f"      hint: {check.hint}")


def as_data(check: Check) -> dict[str, object]:
    """A check for `--json`."""
    return {name: getattr(check, name) for name in ("name", "ok", "detail", "hint", "needed")}
