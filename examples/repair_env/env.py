"""A small repository with a bug; the agent looks around, edits, and runs the tests, one command a turn.

An action is {"command": text} or {"submit": true}. The reward comes with the submission: the share of the other tests
that pass, less a little for each turn. What those tests put into the inventory is drawn with the seed, so that naming
the expected answer does not help. Nothing here is sealed, though: they run beside what the agent wrote.
"""

import random
import subprocess
import sys
from pathlib import Path

from hotbed.env import serve

TURNS = 12
REPOSITORY = Path("/workspace/repository")
FILES = {
    "inventory.py": """class Inventory:
    def __init__(self):
        self.items = {}

    def add(self, name, count=1):
        self.items[name] = self.items.get(name, 0) + count

    def remove(self, name, count=1):
        if self.items.get(name, 0) < count:
            raise KeyError(name)
        self.items[name] -= count

    def names(self):
        return sorted(name for name, count in self.items.items() if count >= 0)
""",
    "test_inventory.py": """from inventory import Inventory


def test_add():
    box = Inventory()
    box.add("nut", 2)
    assert box.items == {"nut": 2}
""",
}
OTHERS = """import sys
from inventory import Inventory

kept, sold = sys.argv[1:]
box = Inventory()
box.add(kept, 2)
box.add(sold)
box.remove(sold)
checks = [box.names() == [kept], box.items[kept] == 2]
box.add(sold, 3)
checks.append(box.names() == sorted([kept, sold]))
try:
    box.remove(kept, 3)
    checks.append(False)
except KeyError:
    checks.append(True)
print(sum(checks) / len(checks))
"""

WARES = ["washer", "screw", "hinge", "spring", "bracket", "dowel"]

turn = 0
wares = WARES[:2]


def reset(seed):
    """A fresh checkout. The seed chooses how the task is put, and what is tested with."""
    global turn, wares
    turn, wares = 0, random.sample(WARES, 2)
    run(["rm", "-rf", str(REPOSITORY)], Path("/"))
    REPOSITORY.mkdir()
    for name, text in FILES.items():
        (REPOSITORY / name).write_text(text)
    put = random.choice(["Sold-out items are still listed by names().", "names() lists items of which none are left."])
    return {"task": put + " Fix it.", "files": sorted(FILES), "turns": TURNS}


def step(action):
    """One command, or the end."""
    global turn
    turn += 1
    if action.get("submit") or turn >= TURNS:
        score = other_tests()
        return {"output": f"{score:.0%} of the other tests pass"}, max(0.0, score - 0.01 * turn), True, {"turns": turn}
    code, output = run(["sh", "-c", action["command"]], REPOSITORY)
    return {"exit_code": code, "output": output[-4000:]}, 0.0, False, {"turns": turn}


def other_tests():
    """The share that passes, judged in a process of its own."""
    code, output = run([sys.executable, "-c", OTHERS, *wares], REPOSITORY)
    try:
        return float(output.split()[-1]) if code == 0 else 0.0
    except (IndexError, ValueError):
        return 0.0


def run(argv, where):
    """A program's exit code and output; a slow one is cut off."""
    try:
        done = subprocess.run(argv, cwd=where, capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return 124, "timed out"
    return done.returncode, done.stdout + done.stderr


serve(reset=reset, step=step)
