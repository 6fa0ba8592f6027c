"""Tests decide whether a program is right. A worker sees this directory at /env."""

import subprocess
from pathlib import Path

from hotbed.env import serve


def reset(seed):
    Path("/workspace/candidate.py").unlink(missing_ok=True)
    return {"task": Path("/env/TASK.md").read_text()}


def step(action):
    Path("/workspace/candidate.py").write_text(action["code"])
    check = subprocess.run(
        ["python3", "-m", "unittest", "discover", "-s", "/env/tests"],
        cwd="/workspace",
        capture_output=True,
        text=True,
        timeout=30,
    )
    output = check.stdout + check.stderr
    return {"test_output": output[-2000:]}, float(check.returncode == 0), True, {}


serve(reset=reset, step=step)
