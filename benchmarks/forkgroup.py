"""Fork groups: many forks of one sandbox with 100 MB of changed files, as a client sees them.

The baseline is creating as many sandboxes of the template, one by one, through the same client. Memory is the node's
machine's, before and after: what is available less, divided by the children, which all stand on one copy of the
parent's files.
"""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.rows import Row
from hotbed import Sandbox, connect

CHILDREN = 512
PARENT_MB = 100
_PLAIN = 64


def run(*, count: int) -> list[Row]:
    """One round."""
    with connect() as client, Sandbox("python", client=client) as parent:
        parent.exec(command=f"head -c {PARENT_MB}000000 /dev/urandom > /work/changed", timeout_seconds=120)
        plain = _plain(parent)
        before = available_mib()
        begun = time.perf_counter()
        with parent.fork_group(CHILDREN, seed_mode="vanilla") as group:
            forked = time.perf_counter() - begun
            used = before - available_mib()
            group[CHILDREN - 1].exec(command="test -s /work/changed")
            closing = time.perf_counter()
        closed = time.perf_counter() - closing
    each = 1e3 * forked / CHILDREN
    return [
        Row(name="create, one by one", value=plain, unit="ms"),
        Row(name=f"fork_group({CHILDREN}), {PARENT_MB} MB", value=1e3 * forked, unit="ms"),
        Row(name="a child of it", value=each, unit="ms", ratio=each / plain, of="create", bar=1.5),
        Row(
            name="memory of a child", value=used / CHILDREN, unit="MiB", note=f"the copy, {PARENT_MB} MB once, included"
        ),
        Row(name=f"ending all {CHILDREN}", value=1e3 * closed, unit="ms"),
    ]


def _plain(parent: Sandbox) -> float:
    """Milliseconds for a sandbox of the template that no spare serves."""
    made = []
    begun = time.perf_counter()
    for _ in range(_PLAIN):
        made.append(Sandbox("python", client=parent._client, limits={"pids": 255}))
        made[-1].start()
    taken = time.perf_counter() - begun
    for sandbox in made:
        sandbox.close()
    return 1e3 * taken / _PLAIN


def available_mib() -> float:
    """Memory that the machine has left."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("MemAvailable:"))
