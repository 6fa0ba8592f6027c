"""`python -m benchmarks`: JSON lines into a file, a table on standard output.

Every number is a ratio to a baseline of the same round where it can be one, and the best of three rounds: a shared
machine makes things slower and never faster. What other processes used meanwhile is in the notes; a round in which they
used much says little.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

from benchmarks import (
    dashboard,
    egress,
    engine,
    forkgroup,
    grading,
    http,
    images,
    livefork,
    memory,
    pools,
    replay,
    rollouts,
    threads,
    warmth,
)
from benchmarks.rows import Row, best_of, table

SUITES = {
    "engine": engine,
    "rollouts": rollouts,
    "threads": threads,
    "warmth": warmth,
    "memory": memory,
    "pools": pools,
    "grading": grading,
    "livefork": livefork,
    "forkgroup": forkgroup,
    "replay": replay,
    "http": http,
    "dashboard": dashboard,
    "images": images,
    "egress": egress,
}
#: Not best of anything: what is measured does not depend on who else runs.
ONCE = {"memory"}


def main() -> int:
    """Run what was asked for; 1 when a bar was missed and that matters."""
    args = parse()
    rows: list[Row] = []
    for name in args.suites or SUITES:
        rounds = []
        for number in range(1 if name in ONCE else args.rounds):
            print(f"{name}, round {number + 1}", file=sys.stderr, flush=True)
            rounds.append(SUITES[name].run(count=args.count))
        rows += best_of(rounds)
    write(Path(args.out), rows)
    print(table(rows))
    print(f"\nJSON lines: {args.out}", file=sys.stderr)
    return int(args.strict and any(row.holds is False for row in rows))


def parse() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed and memory against baselines.")
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help=f"any of {', '.join(SUITES)} (all)")
    parser.add_argument("--rounds", type=int, default=3, help="best of so many (3)")
    parser.add_argument("--count", type=int, default=400, help="measurements in a round (400)")
    parser.add_argument("--out", default="build/bench.jsonl", help="where the JSON lines go (build/bench.jsonl)")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a bar is missed")
    return parser.parse_args()


def write(path: Path, rows: list[Row]) -> None:
    """One line about the machine, then one a row."""
    machine = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "uid": os.getuid(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [machine, *(row.as_data() for row in rows)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
