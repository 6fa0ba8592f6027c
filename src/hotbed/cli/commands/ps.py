"""Show what lives on the node."""

from __future__ import annotations

import argparse

from hotbed.cli.output import Output


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed ps`."""
    return commands.add_parser(
        "ps",
        help="list live sandboxes",
        description="List the sandboxes of the node that HOTBED_URL names, or of this user's own. Starts no node.",
    )


def run(args: argparse.Namespace) -> int:
    """List them."""
    from dataclasses import asdict

    from hotbed.sdk import pool_calls
    from hotbed.sdk.connect import connect_if_running

    output = Output.of(args)
    client = connect_if_running()
    if client is None:
        if output.json:
            output.data({"node": None, "sandboxes": [], "pools": []})
        output.talk("no node is running")
        return 0
    with client:
        health, rows = client.health(), client.sandboxes()
        pools = client.link.send(pool_calls.list_pools())
    if output.json:
        node: dict[str, object] = {"url": client.url, **asdict(health)}
        output.data({"node": node, "sandboxes": [asdict(r) for r in rows], "pools": [asdict(p) for p in pools]})
        return 0
    output.table(
        ("ID", "TEMPLATE", "STATE", "AGE", "IDLE", "EXECS", "ISOLATION", "LABEL"),
        [(r.id, r.template, r.state, span(r.age_s), span(r.idle_s), r.exec_count, r.isolation, r.label) for r in rows],
    )
    for pool in pools:
        about = f"{pool.n} environments of {pool.template}, mode {pool.mode}, age {span(pool.age_s)}"
        output.talk(f"pool {pool.id}: {about}")
    output.talk(f"node {client.url} is {health.status}: {health.running} running, {health.queued} queued")
    return 0


def span(seconds: float) -> str:
    """A duration in the largest unit that fits."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"
