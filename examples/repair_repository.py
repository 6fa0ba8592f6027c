"""A multi-turn environment: agents look around in a repository, repair it and submit. Here the agents are lists.

One repairs, one submits what was there, one writes down an answer instead of computing it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hotbed import RLPool

GOOD = ["ls", "cat inventory.py", "sed -i 's/count >= 0/count > 0/' inventory.py", "python3 -c 'import test_inventory'"]
LAZY = ["ls"]
CHEATING = ["cat /env/env.py | head -3", "sed -i 's/return sorted.*/return [\"nut\"]/' inventory.py"]
AGENTS = [GOOD, LAZY, CHEATING]


def turn(agent: list[str], number: int) -> dict[str, Any]:
    """What an agent does next."""
    return {"command": agent[number]} if number < len(agent) else {"submit": True}


def main() -> None:
    """Play one episode with each agent, all at once, until the last has submitted."""
    with RLPool(Path(__file__).parent / "repair_env", n=len(AGENTS)) as pool:
        print("task:", pool.reset(seed=1)[0]["task"])
        done, totals, number = [False] * pool.n, [0.0] * pool.n, 0
        while not all(done):
            waiting = [not one for one in done]
            actions = [turn(agent, number) for agent in AGENTS]
            results, rewards, done, details = pool.step(actions, mask=waiting)
            for index in range(pool.n):
                if waiting[index]:
                    totals[index] += rewards[index] or 0.0
                    output = (results[index] or details[index]).get("output", "").strip()
                    print(f"agent {index}, turn {details[index]['step']}: {output[:70]!r}")
            number += 1
        print("totals:", [f"{total:.2f}" for total in totals])


if __name__ == "__main__":
    main()
