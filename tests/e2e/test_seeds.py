"""The scripts of the published quickstart run as printed, under the name that they import.

What the page leaves to its reader is filled in: the seed, which it abbreviates, `task_source`, `model_completion`, and
the `client` of the earlier part.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SEED = "c0ffee" + 58 * "0"

ROLLOUT = """
from collimate_rl import connect, rollout_once


client = connect()   # reads COLLIMATE_API_KEY


r = rollout_once(
    "python",
    code="print(sum(range(1000)))",
    seed="c0ffee…",          # pin the guest CRNG for a reproducible rollout
    client=client,
)
assert r.ok and r.stdout.strip() == "499500"
print(r.seed, r.seed_ack)   # the exact seed used, and the seed-ack verdict
"""

SANDBOX = """
from collimate_rl import Sandbox, connect


client = connect()   # reads COLLIMATE_API_KEY


with Sandbox("python", client=client) as sb:       # ~ms warm fork
    sb.upload_bytes("/work/task.py", task_source)     # byte-exact file in
    r = sb.exec(command="cd /work && python task.py", timeout_seconds=120)
    if r.ok:
        artifact = sb.download("/work/out.json")       # byte-exact file out
    print("warm hit:", sb.warm_hit)                     # served warm?
"""

GRADING = """
from collimate_rl import connect
from collimate_rl import UnitTestReward, grade, extract_code


client = connect()

spec = UnitTestReward(
    template="python",
    tests="assert solve([3,1,2]) == [1,2,3]\\n",
)
code = extract_code(model_completion)     # pull code out of an LLM completion
result = grade(code, spec, client=client) # runs in an isolated VM
print(result.reward)                       # 1.0 / 0.0
"""

TASK = b"import json\njson.dump({'answer': 42}, open('out.json', 'w'))\n"


@pytest.fixture(autouse=True)
def alias(monkeypatch: pytest.MonkeyPatch) -> None:
    """The alias distribution, whether installed or not."""
    source = Path(__file__).parents[2] / "compat" / "collimate_rl" / "src"
    if source.exists():
        monkeypatch.syspath_prepend(str(source))
    else:
        pytest.importorskip("collimate_rl")


def played(script: str, **given: Any) -> dict[str, Any]:
    """A script's names after it ran."""
    names = {"__name__": "__main__", **given}
    try:
        exec(compile(script, "quickstart", "exec"), names)
    finally:
        names["client"].close()
    return names


def test_rollout_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """With a seed of full length, which is echoed; and nothing is claimed about it that is not so."""
    names = played(ROLLOUT.replace("c0ffee…", SEED))

    seed, acknowledged = capsys.readouterr().out.split()
    assert seed == SEED
    assert acknowledged == names["r"].seed_ack
    assert acknowledged in ("off", "no-ack", "verified")


def test_abbreviated_seed_is_refused_with_what_a_seed_is() -> None:
    """Pasted without a second look."""
    from hotbed import InvalidSeed

    with pytest.raises(InvalidSeed, match="64 hex characters"):
        played(ROLLOUT)


def test_sandbox_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """A program in, its file out."""
    names = played(SANDBOX, task_source=TASK)

    assert names["r"].ok, names["r"]
    assert names["artifact"] == b'{"answer": 42}'
    assert capsys.readouterr().out.startswith("warm hit: ")


@pytest.mark.parametrize(("body", "reward"), [("sorted(xs)", 1.0), ("xs", 0.0)])
def test_grading_runs_as_printed(capsys: pytest.CaptureFixture[str], body: str, reward: float) -> None:
    """A completion in, a reward out; sealed, without a word about it."""
    completion = f"Here you are:\n\n```python\ndef solve(xs):\n    return {body}\n```\n"
    names = played(GRADING, model_completion=completion)

    assert capsys.readouterr().out == f"{reward}\n"
    assert names["result"].trust == "isolated"


def test_alias_has_every_public_name() -> None:
    """And each is the same object."""
    import hotbed

    alias = sys.modules.get("collimate_rl") or __import__("collimate_rl")

    assert alias.__all__ == hotbed.__all__
    assert all(getattr(alias, name) is getattr(hotbed, name) for name in hotbed.__all__)
