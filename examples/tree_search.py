"""A search over a stateful game: each node is a copy of a running environment, made from its parent by a fork.

The game is a mountain to climb blindfold: eight turns, and only the last height counts. The environment keeps its
state where a real one would, in Python objects and in a file, and offers no `undo`. The search is a beam: each of the
best states it knows is restored, forked into as many workers as there are moves, played on, and the best of what came
of it kept as snapshots.

    python examples/tree_search.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hotbed import RLPool, Snapshot

ENV = """
import math, random
from hotbed.env import serve

class Climber:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.peaks = [(self.rng.uniform(-8, 8), self.rng.uniform(-8, 8), self.rng.uniform(1, 9)) for _ in range(6)]
        self.x = self.y = 0.0
        self.turn = 0

    def height(self):
        return max(top - math.hypot(self.x - px, self.y - py) for px, py, top in self.peaks)

def reset(seed):
    global climber
    climber = Climber(seed)
    open("/workspace/diary", "w").close()
    return {"moves": ["north", "south", "east", "west"], "turns": 8}

def step(move):
    dx, dy = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}[move]
    climber.x += dx
    climber.y += dy
    climber.turn += 1
    with open("/workspace/diary", "a") as diary:
        diary.write(move + "\\n")
    path = open("/workspace/diary").read().split()
    return {"height": climber.height(), "path": path}, climber.height(), climber.turn == 8, {}

serve(reset=reset, step=step)
"""
BEAM = 3


def search(pool: RLPool, moves: list[str], turns: int) -> tuple[float, list[str]]:
    """The best final height found, and the way there."""
    others = range(1, len(moves))
    beam: list[tuple[float, list[str], Snapshot]] = [(0.0, [], pool.snapshot(0))]
    for _ in range(turns):
        grown: list[tuple[float, list[str], Snapshot]] = []
        for _, _, parent in beam:
            pool.restore(parent, 0)
            pool.fork(0, others)
            parent.free()
            results, heights, _, _ = pool.step(moves)
            for worker, (result, height) in enumerate(zip(results, heights, strict=True)):
                grown.append((height or 0.0, result["path"], pool.snapshot(worker)))
        grown.sort(key=lambda node: -node[0])
        for _, _, spare in grown[BEAM:]:
            spare.free()
        beam = grown[:BEAM]
    for _, _, leaf in beam:
        leaf.free()
    height, path, _ = beam[0]
    return height, path


def main() -> None:
    """Search, and say how it went."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "env.py").write_text(ENV)
        with RLPool(directory, n=4, seed=7) as pool:
            task = pool.reset()[0]
            height, path = search(pool, task["moves"], task["turns"])
    print(f"height {height:.2f} by {' '.join(path)}")


if __name__ == "__main__":
    main()
