"""A check finds what is wrong with an environment, and says nothing of one that is well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import BadEnvDir
from hotbed.sdk.env_check import Plan, check, scan
from tests.unit.pools.conftest import Pooling, pooling

__all__ = ["pooling"]

GOLD = {"code": "a long enough gold answer"}
WELL = """
from hotbed.env import serve
def reset(seed):
    return {"task": seed}
def step(action):
    return {"got": action}, float(bool(action and action["code"])), True, {}
serve(reset, step)
"""


def verdicts(pooling: Pooling, text: str, tmp_path: Path, **plan: Any) -> dict[str, tuple[str, str]]:
    """Every finding about an env.py, by name."""
    pool, _ = pooling(2, text)
    chosen = Plan(**{"gold": (GOLD,), "empty": {"code": ""}, **plan})
    return {found.name: (found.verdict, found.text) for found in check(tmp_path, chosen, pool)}


def test_an_environment_that_is_well_passes(pooling: Pooling, tmp_path: Path) -> None:
    """With what it cost."""
    found = verdicts(pooling, WELL, tmp_path)

    assert {verdict for verdict, _ in found.values()} == {"ok"}
    assert set(found) == {
        "leaks",
        "loads",
        "same seed, same episode",
        "reset leaves nothing",
        "gold answer",
        "empty answer",
        "latency",
    }
    assert "MiB" in found["loads"][1]


@pytest.mark.parametrize(
    ("change", "name", "text"),
    [
        (
            ('return {"task": seed}', "import os; return os.urandom(9).hex()"),
            "same seed, same episode",
            "in their task",
        ),
        (('{"got": action}', "__import__('os').getpid()"), "same seed, same episode", "differ at step 1"),
        (('float(bool(action and action["code"]))', "1.0"), "gold answer", "earns 1, the empty one 1"),
        (('return {"got"', 'raise ValueError("no"); return {"got"'), "gold answer", "ValueError: no"),
    ],
)
def test_what_is_wrong_is_found(
    pooling: Pooling, tmp_path: Path, change: tuple[str, str], name: str, text: str
) -> None:
    """By the finding that names it."""
    verdict, said = verdicts(pooling, WELL.replace(*change), tmp_path)[name]

    assert verdict == "fail"
    assert text in said


def test_what_an_episode_leaves_behind_is_found(pooling: Pooling, tmp_path: Path) -> None:
    """Here a counter that reset does not reset."""
    text = "n = 0\n" + WELL.replace('    return {"got"', '    global n; n += 1\n    return {"n": n, "got"')
    found = verdicts(pooling, text, tmp_path)

    assert found["same seed, same episode"][0] == "ok"
    assert found["reset leaves nothing"] == ("fail", "the second episode of a worker differs from its first at step 1")


def test_an_environment_that_does_not_load_is_only_that(pooling: Pooling, tmp_path: Path) -> None:
    """The rest would say nothing more."""
    found = verdicts(pooling, "import no_such_module", tmp_path)

    assert set(found) == {"leaks", "loads"}
    assert "no_such_module" in found["loads"][1]


def test_an_empty_answer_that_breaks_it_is_a_warning(pooling: Pooling, tmp_path: Path) -> None:
    """Agents do answer nothing."""
    found = verdicts(pooling, WELL, tmp_path, empty=["not a dict"])

    assert found["empty answer"][0] == "warn"
    assert "TypeError" in found["empty answer"][1]


def test_without_a_gold_answer_the_empty_one_is_played(pooling: Pooling, tmp_path: Path) -> None:
    """And it is said how to give one."""
    found = verdicts(pooling, WELL, tmp_path, gold=())

    assert found["gold answer"][0] == "warn"
    assert "check.json" in found["gold answer"][1]


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        (".env", "A=1", ".env looks like a secret"),
        ("keys/id_ed25519", "x", "looks like a secret"),
        ("notes.txt", "AKIAABCDEFGHIJKLMNOP", "looks like a secret"),
        ("tests/test_a.py", f"assert {GOLD['code']}", "holds the gold answer"),
    ],
)
def test_what_should_not_be_readable_is_named(tmp_path: Path, name: str, content: str, text: str) -> None:
    """Code in a worker can read all of /env."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content)
    (tmp_path / "check.json").write_text(json.dumps({"gold": [GOLD]}))
    [found] = scan(tmp_path, Plan.of(tmp_path))

    assert found.verdict == "warn"
    assert text in found.text


@pytest.mark.parametrize("text", ["[", "[]", '{"gold": 1}', '{"seed": "x"}'])
def test_a_plan_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    """Not taken for an empty one."""
    (tmp_path / "check.json").write_text(text)
    with pytest.raises(BadEnvDir, match="is not a plan"):
        Plan.of(tmp_path)
