"""What an idle sandbox holds, and its template."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from benchmarks.lab import node
from benchmarks.rows import Row
from hotbed import Client, Sandbox
from hotbed.cli.leavings import nested_processes
from hotbed.cli.memory import used_mib

IDLE = 64
BARS = {"python": 1.5, "python-numpy": 2.5}


def run(*, count: int) -> list[Row]:
    """One round."""
    rows = []
    for template, bar in BARS.items():
        with node(spares=0, warm=template) as (client, _):
            rows += idle(client, template, bar)
    return rows


def idle(client: Client, template: str, bar: float) -> list[Row]:
    """Proportional set size of each, and what the machine as a whole lost: page tables, tmpfs, network namespaces."""
    with Sandbox(template, client=client):
        pass
    before, free = set(nested_processes()), used_mib()
    with ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(Sandbox(template, client=client))
        taken = used_mib() - free
        sizes = [pss_mib(pid) for pid in set(nested_processes()) - before]
    known = [size for size in sizes if size is not None]
    rows = [Row(name=f"idle {template} sandbox, of the machine", value=taken / IDLE, unit="MiB")]
    if known:
        note = f"{len(known)} processes of {IDLE} sandboxes"
        rows.append(Row(name=f"idle {template} sandbox, PSS", value=sum(known) / IDLE, unit="MiB", bar=bar, note=note))
    return rows


def pss_mib(pid: int) -> float | None:
    """Proportional set size; None where it may not be read, as for an ordinary user's sandboxes."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))
