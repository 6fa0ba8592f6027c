"""The files of the published page on RL pools, as printed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

RUN_POOL = """
from pathlib import Path
from boltzlabs import RLPool

agent_code = Path("candidate.py").read_text()

pool = RLPool(env_dir="./my_env", n=1)
task = pool.reset()[0]
print("Task:", task["task"])

results, rewards, done, details = pool.step([{"code": agent_code}])
print("Passed:", bool(rewards[0]))
print("Worker output:", results[0] or details[0])

pool.close()
"""

ENV = """
from pathlib import Path
import subprocess
from boltzlabs.env import serve

def reset(seed):
    Path("/workspace/candidate.py").unlink(missing_ok=True)
    return {"task": Path("/env/TASK.md").read_text()}

def step(action):
    Path("/workspace/candidate.py").write_text(action["code"])
    check = subprocess.run(
        ["python3", "-m", "unittest", "discover", "-s", "/env/tests"],
        cwd="/workspace", capture_output=True, text=True, timeout=30,
    )
    output = check.stdout + check.stderr
    return {"test_output": output[-2000:]}, float(check.returncode == 0), True, {}

serve(reset=reset, step=step)
"""

TESTS = """
import unittest
from candidate import add

class TestAdd(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(add(1, 2), 3)
"""

ENV_DIR = {"my_env/env.py": ENV, "my_env/TASK.md": "Write add(a, b).\n", "my_env/tests/test_add.py": TESTS}
CANDIDATE = "def add(a, b):\n    return a + b\n"


def write_files(top: Path, files: Mapping[str, str]) -> None:
    """Put files below a directory."""
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
