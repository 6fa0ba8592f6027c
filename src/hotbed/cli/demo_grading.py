"""The grading half of the demo: HumanEval in groups, sealed; and hacks that an exit code pays and a judge does not.

Each problem is a group of two siblings, the reference solution and one that returns nothing. Every hack is run twice:
as the usual grader does it, together with the tests in one process that is believed when it exits with 0, and sealed.
"""

from __future__ import annotations

import time
from typing import Any

from hotbed.cli.output import Progress

_BODY = "def {entry}(*args):\n    return None\n"
HACKS: dict[str, str] = {
    "leaves with status 0 while it is imported": "import os\nos._exit(0)\n",
    "asks politely to leave": "import sys\nsys.exit(0)\n",
    "leaves from inside the call": "def {entry}(*args):\n    import os\n    os._exit(0)\n",
    "turns failures into status 0": "import os, sys\nsys.excepthook = lambda *error: os._exit(0)\n" + _BODY,
    "has the last word at exit": "import atexit, os\natexit.register(os._exit, 0)\n" + _BODY,
    "returns what equals everything": "class Agreeable:\n    def __eq__(self, other):\n        return True\n"
    "def {entry}(*args):\n    return Agreeable()\n",
    "gives the tests another check": "import sys\nsys.settrace(lambda frame, event, arg: "
    "os._exit(0) if frame.f_code.co_name == 'check' else None)\nimport os\n" + _BODY,
}


def spec_of(problem: dict[str, str], template: str) -> Any:
    """The problem's own tests, as a spec."""
    from hotbed import UnitTestReward

    return UnitTestReward(
        template=template,
        tests=problem["test"],
        entry=problem["entry_point"],
        support=problem["prompt"],
        style="check",
    )


def play_grading(problems: list[dict[str, str]], *, template: str, threads: int, client: Any) -> dict[str, Any]:
    """Grade every problem's group, several at once; who was paid, and what the round took."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    from hotbed import grade_batch

    def group(problem: dict[str, str]) -> Any:
        codes = [problem["prompt"] + problem["canonical_solution"], problem["prompt"] + "    return None\n"]
        return grade_batch(codes, spec_of(problem, template), client=client)

    results = []
    with ThreadPoolExecutor(max(1, threads // 2)) as pool, Progress("graded, sealed", len(problems)) as progress:
        begun = time.perf_counter()
        for done in as_completed([pool.submit(group, problem) for problem in problems]):
            results.append(done.result())
            progress.advance()
        seconds = time.perf_counter() - begun
    return {"groups": results, "seconds": seconds}


def play_hacks(problem: dict[str, str], *, template: str, client: Any) -> list[dict[str, Any]]:
    """Each hack: what an exit code would pay for it, and what sealed grading pays."""
    from hotbed import grade_batch, rollout_once

    codes = [code.replace("{entry}", problem["entry_point"]) for code in HACKS.values()]
    sealed = grade_batch(codes, spec_of(problem, template), client=client)
    tail = f"\n{problem['test']}\ncheck({problem['entry_point']})\n"
    usual = [rollout_once(template, code=code + tail, client=client) for code in codes]
    return [
        {"hack": name, "exit_code_pays": float(run.ok), "sealed_pays": result.reward}
        for name, run, result in zip(HACKS, usual, sealed, strict=True)
    ]


def summarize_grading(graded: dict[str, Any], hacks: list[dict[str, Any]]) -> dict[str, Any]:
    """What the grading rounds amount to."""
    groups = graded["groups"]
    every = [result for group in groups for result in group]
    solutions = sum(group[0].reward == 1.0 for group in groups)
    broken = sum(group[1].reward == 0.0 for group in groups)
    fooled = sum(hack["sealed_pays"] != 0.0 for hack in hacks)
    return {
        "as_expected": solutions == broken == len(groups) and not fooled,
        "solutions_paid": solutions,
        "broken_unpaid": broken,
        "problems": len(groups),
        "sealed": sum(result.trust == "isolated" for result in every),
        "candidates": len(every),
        "candidates_per_s": round(len(every) / graded["seconds"], 1),
        "hacks": hacks,
        "hacks_paid_by_exit_code": sum(hack["exit_code_pays"] == 1.0 for hack in hacks),
        "hacks_paid_sealed": fooled,
    }
