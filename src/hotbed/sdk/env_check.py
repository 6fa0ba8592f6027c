"""Trying out an environment: what `hotbed env check` looks at, one finding at a time.

Everything that runs, runs in sandboxes of a pool of two. Two workers of one seed are stepped together with the same
actions, so a difference between them is the environment's own; then the first plays the same episode once more, so a
difference from the first time is what the episode left behind.

The plan is `check.json` beside env.py: {"gold": [actions], "empty": action, "seed": int}, each optional. It is never
sent to the node.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hotbed.errors import BadEnvDir
from hotbed.pools import archive
from hotbed.pools.seats import digest_of
from hotbed.pools.vector import VectorPool

STEPS_LIMIT = 64
EMPTY_STEPS = 4
SCANNED_BYTES = 1 << 20
LEAST_ANSWER = 24

_SECRET_NAMES = re.compile(
    r"(^|/)(\.env(\..*)?|id_[a-z0-9]+|.*\.(pem|key|p12|pfx)|\.netrc|\.pypirc|credentials)$", re.I
)
_SECRET_TEXT = re.compile(
    rb"-----BEGIN [A-Z ]*PRIVATE KEY|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{30}|sk-[A-Za-z0-9_-]{32}"
)

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    name: str
    verdict: Verdict
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to play. Without gold actions the empty one is played."""

    gold: tuple[Any, ...] = ()
    empty: Any = None
    seed: int = 0

    @classmethod
    def of(cls, env_dir: Path) -> Plan:
        """The plan of a directory. Raises `BadEnvDir` when there is one that cannot be read."""
        path = env_dir / archive.CHECK_PLAN
        if not path.is_file():
            return cls()
        try:
            found = json.loads(path.read_text())
            gold, seed = found.get("gold", []), found.get("seed", 0)
            if type(gold) is list and type(seed) is int:
                return cls(gold=tuple(gold), empty=found.get("empty"), seed=seed)
        except (ValueError, AttributeError, OSError):
            pass
        raise BadEnvDir(f"{path} is not a plan", hint='{"gold": [action, ...], "empty": action, "seed": 0}')


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One episode of one worker, as far as it can be compared."""

    task: bytes
    steps: tuple[bytes, ...]
    total: float
    failure: str = ""


def check(env_dir: Path, plan: Plan, pool: VectorPool) -> Iterator[Finding]:
    """Look at everything. `pool` has two workers of the directory."""
    yield from scan(env_dir, plan)
    tasks = pool.reset(seed=[plan.seed, plan.seed])
    if not all(tasks) and any(detail["status"] != "ok" for detail in pool.details):
        yield Finding(name="loads", verdict="fail", text=_first_reason(pool))
        return
    started = pool.details
    yield Finding(name="loads", verdict="ok", text=_start_cost(started))
    actions = plan.gold or (plan.empty,) * EMPTY_STEPS
    (one, two), times = _play(pool, tasks, actions)
    if one.failure and len(one.steps) == 1:  # two failures are alike, whatever they come from
        text = f"not tried: its first step failed: {one.failure.splitlines()[-1]}"
        yield Finding(name="same seed, same episode", verdict="warn", text=text)
        yield from _judge(pool, plan, one)
        return
    yield _same("same seed, same episode", one, two, "two workers of one seed differ")
    again = pool.reset(seed=[plan.seed, plan.seed])
    (third, _), _ = _play(pool, again, actions)
    yield _same("reset leaves nothing", one, third, "the second episode of a worker differs from its first")
    yield from _judge(pool, plan, one)
    if times and not one.failure:
        yield Finding(name="latency", verdict="ok", text=f"a step takes {statistics.median(times):.2f} ms")


def scan(env_dir: Path, plan: Plan) -> Iterator[Finding]:
    """What anybody's code in a worker can read at /env and should not."""
    answers = [text.encode() for text in _texts(list(plan.gold)) if len(text) >= LEAST_ANSWER]
    found = []
    for path in sorted(env_dir.rglob("*")):
        name = path.relative_to(env_dir).as_posix()
        if not path.is_file() or name == archive.CHECK_PLAN or set(path.parts) & archive.LEFT_OUT:
            continue
        with path.open("rb") as file:
            data = file.read(SCANNED_BYTES)
        if _SECRET_NAMES.search(name) or _SECRET_TEXT.search(data):
            found.append(f"{name} looks like a secret")
        if any(answer in data for answer in answers):
            found.append(f"{name} holds the gold answer")
    text = "; ".join(found) or "no secret and no gold answer is readable at /env"
    yield Finding(name="leaks", verdict="warn" if found else "ok", text=text)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _play(pool: VectorPool, tasks: list[Any], actions: tuple[Any, ...]) -> tuple[list[Trace], list[float]]:
    """Step both workers with the same actions until an episode is over or the actions are."""
    steps: list[list[bytes]] = [[], []]
    totals, failures, times = [0.0, 0.0], ["", ""], []
    for action in actions[:STEPS_LIMIT]:
        results, rewards, done, details = pool.step([action, action])
        for index in range(2):
            steps[index].append(digest_of([results[index], rewards[index], done[index], details[index]["status"]]))
            totals[index] += rewards[index] or 0.0
            times.append(details[index]["step_ms"])
            if details[index]["status"] != "ok":
                failures[index] = str(details[index]["reason"])
        if any(done):
            break
    traces = [
        Trace(task=digest_of(tasks[i]), steps=tuple(steps[i]), total=totals[i], failure=failures[i]) for i in range(2)
    ]
    return traces, times


def _judge(pool: VectorPool, plan: Plan, played: Trace) -> Iterator[Finding]:
    """Does a good answer earn more than none, and does none do harm."""
    if not plan.gold:
        yield Finding(
            name="gold answer",
            verdict="warn",
            text=f'none is known: put {{"gold": [action, ...]}} into {archive.CHECK_PLAN}',
        )
        yield _empty(played)
        return
    tasks = pool.reset(seed=[plan.seed, plan.seed])
    (empty, _), _ = _play(pool, tasks, (plan.empty,) * EMPTY_STEPS)
    better = played.total > empty.total and not played.failure
    text = f"the gold answer earns {played.total:g}, the empty one {empty.total:g}"
    yield Finding(name="gold answer", verdict="ok" if better else "fail", text=played.failure or text)
    yield _empty(empty)


def _empty(trace: Trace) -> Finding:
    if trace.failure:
        text = f"it makes the environment fail: {trace.failure.splitlines()[-1]}"
        return Finding(name="empty answer", verdict="warn", text=text)
    return Finding(name="empty answer", verdict="ok", text=f"it earns {trace.total:g}")


def _same(name: str, one: Trace, two: Trace, difference: str) -> Finding:
    if one.task != two.task:
        return Finding(name=name, verdict="fail", text=f"{difference} in their task")
    for number, (left, right) in enumerate(zip(one.steps, two.steps, strict=False), start=1):
        if left != right:
            return Finding(name=name, verdict="fail", text=f"{difference} at step {number}")
    return Finding(name=name, verdict="ok", text=f"the same task and {len(one.steps)} same steps")


def _first_reason(pool: VectorPool) -> str:
    return next(str(detail["reason"]) for detail in pool.details if detail["status"] != "ok")


def _start_cost(details: list[dict[str, Any]]) -> str:
    slowest = max(float(detail["step_ms"]) for detail in details)
    memory = max(int(detail["maxrss_kib"]) for detail in details)
    return f"loaded and reset in {slowest:.0f} ms, {memory / 1024:.0f} MiB"
