"""The published example of a pool: two workers run an agent's code against an environment's tests."""

from __future__ import annotations

from pathlib import Path

from hotbed import RLPool

GOOD = "def add(a, b):\n    return a + b\n"
BAD = "def add(a, b):\n    return a - b\n"


def main() -> None:
    """One answer that passes and one that does not."""
    with RLPool(env_dir=Path(__file__).parent / "my_env", n=2) as pool:
        tasks = pool.reset()
        print("Task:", tasks[0]["task"])
        results, rewards, _, details = pool.step([{"code": GOOD}, {"code": BAD}])
        for index in range(pool.n):
            print("Passed:", bool(rewards[index]))
            print("Worker output:", results[index] or details[index])


if __name__ == "__main__":
    main()
