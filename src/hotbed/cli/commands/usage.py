"""What each tenant used."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from hotbed.cli.output import Output
from hotbed.wire.usage import TenantUsage

GB = 1e9


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed usage`."""
    parser = commands.add_parser(
        "usage",
        help="what each tenant used",
        description="Usage by tenant on the node that HOTBED_URL names, or on this user's own. A key sees its own "
        "tenant's, an admin's key and the node's own user everybody's. Hours count whole.",
    )
    parser.add_argument("--since", metavar="TIME", help="RFC 3339, such as 2026-11-01 (30 days ago)")
    parser.add_argument("--until", metavar="TIME", help="RFC 3339 (now)")
    return parser


def run(args: argparse.Namespace) -> int:
    """Show it."""
    from hotbed.sdk.accounts import usage
    from hotbed.sdk.connect import connect

    output = Output.of(args)
    with connect() as client:
        report = client.link.send(usage(since=args.since, until=args.until))
    if output.json:
        output.data(asdict(report))
        return 0
    output.table(
        ("TENANT", "SANDBOX-S", "CPU-S", "SANDBOXES", "ROLLOUTS", "EXECS", "GRADES", "GB"),
        [cells(tenant) for tenant in report.tenants],
    )
    output.talk(f"from {report.since} to {report.until}")
    return 0


def cells(used: TenantUsage) -> tuple[object, ...]:
    """A line of the table."""
    moved = (used.bytes_in + used.bytes_out) / GB
    seconds = (f"{used.sandbox_s:.1f}", f"{used.cpu_s:.1f}")
    return (used.tenant or "-", *seconds, used.sandboxes, used.rollouts, used.execs, used.grades, f"{moved:.3f}")
