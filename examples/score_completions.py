"""Run a group of candidate programs, each in a sandbox of its own, and see which ones pass a check.

The check runs beside the candidate here, which is enough to look at honest programs and not enough to pay a reward: a
program that wants to can print whatever the check prints.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hotbed import Result, connect, rollout_once

CANDIDATES = {
    "right": "def solve(xs):\n    return sorted(xs)\n",
    "wrong": "def solve(xs):\n    return xs\n",
    "crash": "def solve(xs):\n    return xs[10]\n",
    "hang": "def solve(xs):\n    while True:\n        pass\n",
    "greedy": "def solve(xs):\n    return [0] * 10**10\n",
}
CHECK = "\nassert solve([3, 1, 2]) == [1, 2, 3]\n"


def main() -> None:
    """Print how each candidate ended."""
    with connect() as client, ThreadPoolExecutor(len(CANDIDATES)) as pool:

        def score(code: str) -> Result:
            return rollout_once("python", code=code + CHECK, timeout_seconds=2, client=client)

        for name, result in zip(CANDIDATES, pool.map(score, CANDIDATES.values()), strict=True):
            last = result.stderr.strip().rpartition("\n")[2]
            print(f"{name:8} {result.status:8} {result.total_time_ms:8.1f} ms  {last}")


if __name__ == "__main__":
    main()
