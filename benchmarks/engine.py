"""The runtime without node, HTTP and SDK: fork a box, run, kill it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time

from benchmarks.baselines import CODE, EXPECTED, BareFork
from benchmarks.measure import percentiles
from benchmarks.rows import Row
from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.base import BoxRequest, ExecRequest, Template, TemplateSpec

_BARE_COUNT = 100


def run(*, count: int) -> list[Row]:
    """One round, in a process of its own: the backend wants to be made before any thread is."""
    with BareFork() as forks:
        before = forks(_BARE_COUNT)
        argv = [sys.executable, "-m", "benchmarks.engine", str(count)]
        done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)
        bare = percentiles(before + forks(_BARE_COUNT)).p50
    return [
        Row(name=f"engine, {name}, p50", value=p50, unit="ms", ratio=p50 / bare, of="bare fork")
        for name, p50 in json.loads(done.stdout).items()
    ]


async def measure(backend: ForkBackend, count: int) -> dict[str, float]:
    """Fresh and parked, code and command."""
    await backend.start()
    try:
        template = await backend.template(TemplateSpec(name="python"))
        code = ExecRequest(kind="code", program=CODE.encode())
        command = ExecRequest(kind="command", program=b"echo 499500")
        return {
            "fresh, code": await latency(template, code, count, spare=False),
            "fresh, command": await latency(template, command, count, spare=False),
            "parked, code": await latency(template, code, count, spare=True),
        }
    finally:
        await backend.close()


async def latency(template: Template, request: ExecRequest, count: int, *, spare: bool) -> float:
    """Fork and run; the kill is not waited for, as in a rollout."""
    taken = []
    for _ in range(count + 20):
        await asyncio.sleep(0.004 if spare else 0.001)
        begun = time.perf_counter()
        box = await template.fork(BoxRequest(use_spare=spare))
        outcome = await box.exec(request)
        taken.append(time.perf_counter() - begun)
        assert outcome.stdout == EXPECTED.encode(), outcome
        await box.kill()
    return percentiles(taken[20:]).p50


def main() -> None:
    """Print the latencies as JSON."""
    backend = ForkBackend(ForkSettings())
    print(json.dumps(asyncio.run(measure(backend, int(sys.argv[1])))))


if __name__ == "__main__":
    main()
