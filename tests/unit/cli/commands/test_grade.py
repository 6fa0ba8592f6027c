"""hotbed grade, over programs: those need no judge, so the fake node grades them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotbed.cli.commands import grade
from tests.unit.cli.conftest import Hotbed

SPEC = {"type": "stdio", "cases": [{"stdin": "2", "stdout": "4"}]}
LINES = [
    {"id": "a", "group": "g", "code": "print(int(input()) ** 2)"},
    {"id": "b", "group": "g", "completion": "```python\nprint(5)\n```"},
    {"id": "c", "group": "h", "code": "print(4)"},
    {"id": "d", "group": "h", "files": {"main.py": "print(4)"}},
]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Arguments that name a spec and candidates."""
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    return ["--spec", str(tmp_path / "spec.json"), "--candidates", str(tmp_path / "c.jsonl")]


def test_one_line_a_candidate_in_order_and_a_summary(hotbed: Hotbed, files: list[str]) -> None:
    """Verdicts are data, the summary is talk."""
    said = hotbed("grade", *files)
    lines = [json.loads(line) for line in said.out.splitlines()]

    assert said.code == 0
    assert [(line["id"], line["reward"]) for line in lines] == [("a", 1.0), ("b", 0.0), ("c", 1.0), ("d", 1.0)]
    assert "mean reward 0.75" in said.err
    assert "pass@1 0.75, pass@2 1" in said.err


def test_a_level_is_the_groups(hotbed: Hotbed, files: list[str]) -> None:
    """What it pinned would be told with each verdict; the fake node pins nothing, and says so."""
    lines = [json.loads(line) for line in hotbed("grade", *files, "--determinism", "rng").out.splitlines()]

    assert {(line["seed_ack"], tuple(line["pinned"])) for line in lines} == {("no-ack", ())}
    assert hotbed("grade", *files, "--determinism", "wild").code == 2


def test_verdicts_go_into_a_file(hotbed: Hotbed, files: list[str], tmp_path: Path) -> None:
    """The summary alone is left to print."""
    out = tmp_path / "out.jsonl"
    said = hotbed("grade", *files, "--out", str(out), "--json")

    assert said.json["candidates"] == 4
    assert len(out.read_text().splitlines()) == 4
    assert hotbed("grade", *files, "--out", str(tmp_path / "no" / "dir")).code == 2


def test_json_is_one_value(hotbed: Hotbed, files: list[str]) -> None:
    """With verdicts and summary."""
    said = hotbed("grade", *files, "--json")

    assert [line["id"] for line in said.json["results"]] == ["a", "b", "c", "d"]
    assert said.json["summary"]["statuses"] == {"ok": 3, "failed": 1}


def test_no_verdict_is_a_no(hotbed: Hotbed, files: list[str]) -> None:
    """Nothing can be done in no time."""
    said = hotbed("grade", *files, "--deadline", "0.000001")

    assert said.code == 1
    assert "no candidate has a reward" in said.err


def test_a_broken_spec_is_asked_wrongly(hotbed: Hotbed, files: list[str], tmp_path: Path) -> None:
    """Exit code 2, and nothing is graded."""
    (tmp_path / "spec.json").write_text("{}")

    assert hotbed("grade", *files).code == 2


def test_a_long_file_takes_several_requests(monkeypatch: pytest.MonkeyPatch, hotbed: Hotbed, files: list[str]) -> None:
    """Unless it is to be one group."""
    monkeypatch.setattr(grade, "BATCH_LIMIT", 3)

    assert len(hotbed("grade", *files).out.splitlines()) == 4
    assert hotbed("grade", *files, "--group-id", "g").code == 2


def test_what_should_be_looked_at_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Verdicts that are not sealed, and candidates that tampered."""
    from hotbed.cli.output import Output

    found: dict[str, Any] = {"candidates": 2, "statuses": {"ok": 2}, "mean_reward": 1.0, "pass_at": {}}
    grade.tell(Output(), {**found, "beside": 1, "suspected_tamper": 1})

    err = capsys.readouterr().err
    assert "1 verdicts are not sealed" in err
    assert "1 candidates wrote into the channel" in err
