"""Write an environment to start from, and try one out."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from hotbed.cli.output import Output
from hotbed.errors import BadEnvDir

FILES = {
    "env.py": '''"""An agent writes a program, and tests decide. A worker sees this directory at /env."""

import re
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
        cwd="/workspace", capture_output=True, text=True, timeout=30,
    )
    output = re.sub(r" in [0-9.]+s", "", check.stdout + check.stderr)  # the same answer, the same observation
    return {"test_output": output[-2000:]}, float(check.returncode == 0), True, {}


serve(reset=reset, step=step)
''',
    "TASK.md": "Write a function `add(a, b)` that returns the sum of its arguments.\n",
    "tests/test_add.py": """import unittest

from candidate import add


class TestAdd(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(add(1, 2), 3)
""",
    "check.json": '{"gold": [{"code": "def add(a, b):\\n    return a + b\\n"}], "empty": {"code": ""}}\n',
}
_COLOR = {"ok": "green", "warn": "yellow", "fail": "red"}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed env`."""
    parser = commands.add_parser(
        "env",
        help="write an environment for a pool, or check one",
        description="init DIR writes an environment to start from. check DIR tries one out in sandboxes: does it load, "
        "does the same seed give the same episode, what does one episode leave for the next, what of it can be read "
        "that should not, does the gold answer earn more than the empty one, what does a step cost. Exits with 1 "
        "when something fails.",
    )
    parser.add_argument("action", choices=("init", "check"), help="what to do")
    parser.add_argument("directory", metavar="DIR", type=Path, help="the environment's directory")
    parser.add_argument("--template", default="python", help="fork this template (python)")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="of each reset and step (60)")
    return parser


def run(args: argparse.Namespace) -> int:
    """Do it."""
    output = Output.of(args)
    return init(args.directory, output) if args.action == "init" else check(args, output)


def init(directory: Path, output: Output) -> int:
    """Write the files, over none that is there."""
    taken = [name for name in FILES if (directory / name).exists()]
    if taken:
        raise BadEnvDir(f"{directory} has {', '.join(taken)} already", hint="choose another directory")
    for name, text in FILES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if output.json:
        output.data({"directory": str(directory), "files": list(FILES)})
    output.talk(f"wrote {', '.join(FILES)} to {directory}; next: hotbed env check {directory}")
    return 0


def check(args: argparse.Namespace, output: Output) -> int:
    """Try it out."""
    from hotbed.sdk import env_check
    from hotbed.sdk.connect import connect
    from hotbed.sdk.rl_pool import RLPool

    plan = env_check.Plan.of(args.directory)
    findings = []
    options = {"template": args.template, "step_timeout": args.timeout, "reset_timeout": args.timeout}
    with connect() as client, RLPool(args.directory, n=2, client=client, **options) as pool:
        for finding in env_check.check(args.directory, plan, pool):
            findings.append(finding)
            if not output.json:
                mark = output.paint(finding.verdict.ljust(4), _COLOR[finding.verdict])
                output.line(f"{mark}  {finding.name}: {finding.text}")
    failed = any(finding.verdict == "fail" for finding in findings)
    if output.json:
        output.data({"ok": not failed, "findings": [asdict(finding) for finding in findings]})
    return 1 if failed else 0
