"""Show what this host allows, which isolation results, and what to do about the rest."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hotbed.cli.output import Output, Progress

if TYPE_CHECKING:
    from hotbed.runtime.probe import Check
    from hotbed.runtime.selfcheck.table import Verdict


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed doctor`."""
    parser = commands.add_parser(
        "doctor",
        help="check this host",
        description="Try what sandboxes need, on this host and as this user; say which isolation results, what is "
        "missing and how to mend it. Exits with 1 when something needed is missing or an attack succeeds.",
    )
    parser.add_argument("--self-check", action="store_true", help="also attack sandboxes on this host")
    return parser


def run(args: argparse.Namespace) -> int:
    """Check it."""
    from hotbed.runtime import probe

    output = Output.of(args)
    host = probe.checks()
    isolation = probe.isolation_of(host)
    isolates = isolation != "none"
    answer: dict[str, Any] = {"isolation": isolation, "host": [check_data(check) for check in host]}
    if not output.json:
        show_host(output, host)
        output.line(f"isolation: {output.paint(isolation, 'green' if isolates else 'red')}")
    good = isolates
    if args.self_check and isolates:
        verdicts = attack(output)
        good = all(verdict.held for verdict in verdicts)
        answer["self_check"] = [verdict_data(verdict) for verdict in verdicts]
        if not output.json:
            output.line(summary(output, verdicts))
    if output.json:
        output.data(answer)
    return 0 if good else 1


def attack(output: Output) -> list[Verdict]:
    """Run the abuse tables, telling each verdict as it comes."""
    from hotbed.cli import grading_attacks
    from hotbed.runtime.selfcheck import table

    if not output.json:
        output.line(output.paint("self-check", "bold"))
    verdicts = []
    with Progress("self-check", len(table.ATTEMPTS) + len(grading_attacks.ATTEMPTS)) as progress:

        def tell(verdict: Verdict) -> None:
            verdicts.append(verdict)
            if not output.json:
                progress.clear()
                show_verdict(output, verdict)
            progress.advance(verdict.claim)

        attack_sandboxes(tell)
        for verdict in grading_attacks.run_all():
            tell(verdict)
    return verdicts


def attack_sandboxes(tell: Callable[[Verdict], None]) -> None:
    """Run the runtime's table on a backend of its own."""
    import asyncio

    from hotbed.runtime.backends.fork import ForkBackend
    from hotbed.runtime.selfcheck import table

    # The backend forks its launcher, so it is made before the event loop.
    backend = ForkBackend()

    async def attempts() -> None:
        try:
            await backend.start()
            async for verdict in table.run_all(backend):
                tell(verdict)
        finally:
            await backend.close()

    asyncio.run(attempts())


def show_host(output: Output, checks: list[Check]) -> None:
    """One line a check, and under what fails how to mend it."""
    output.line(output.paint("host", "bold"))
    for check in checks:
        word, color = ("OK", "green") if check.ok else ("no", "red" if check.needed else "yellow")
        output.line(f"  {output.paint(word, color)}  {check.name}{f': {check.detail}' if check.detail else ''}")
        if not check.ok and check.hint:
            output.line(f"      hint: {check.hint}")


def show_verdict(output: Output, verdict: Verdict) -> None:
    """One line a claim."""
    word, color = ("OK", "green") if verdict.held else ("BROKEN", "red")
    output.line(f"  {output.paint(word, color)}  {verdict.claim}{f': {verdict.detail}' if verdict.detail else ''}")


def summary(output: Output, verdicts: list[Verdict]) -> str:
    """How many held."""
    held = sum(verdict.held for verdict in verdicts)
    text = f"{held} of {len(verdicts)} claims hold"
    return f"self-check: {output.paint(text, 'green' if held == len(verdicts) else 'red')}"


def check_data(check: Check) -> dict[str, Any]:
    """A check for `--json`."""
    return {name: getattr(check, name) for name in ("name", "ok", "detail", "hint", "needed")}


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    """A verdict for `--json`."""
    return {
        "claim": verdict.claim,
        "held": verdict.held,
        "detail": verdict.detail,
        "seconds": round(verdict.seconds, 3),
    }
