"""Candidates in, verdicts out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotbed.cli.candidates import Candidate, as_line, pass_at_k, read_candidates, read_spec, summary
from hotbed.errors import InvalidRequest, InvalidSpec
from hotbed.grading import GradeResult
from hotbed.grading.verdicts import infra_failure

OK, FAILED = GradeResult(reward=1.0), GradeResult(reward=0.25, status="failed", trust="beside", suspected_tamper=True)


def read(path: Path, *lines: Any, entry: str = "") -> list[Candidate]:
    """The candidates of a file."""
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return read_candidates(str(path), entry)


def test_candidates_come_in_three_forms(tmp_path: Path) -> None:
    """Code, files, and a model's answer of which the code is taken."""
    found = read(
        tmp_path / "c.jsonl",
        {"code": "x = 1"},
        "",
        {"id": 7, "group": "g", "files": {"a.py": "y"}, "seed": 5},
        {"completion": "Sure:\n```python\ndef solve(): pass\n```\n", "id": "c"},
        {"completion": "I cannot."},
        entry="solve",
    )

    assert [each.id for each in found] == ["0", "7", "c", "3"]
    assert [each.group for each in found] == ["0", "g", "c", "3"]
    assert [each.code for each in found] == ["x = 1", {"a.py": "y"}, "def solve(): pass\n", ""]
    assert found[1].seed == f"{5:064x}"
    assert "no code" in found[3].reason


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    """Models write U+2028 and form feeds, and JSON lets the former through as it is."""
    text = "x = '\u2028\x85'"

    assert read(tmp_path / "c.jsonl", json.dumps({"code": text}, ensure_ascii=False) + "\r")[0].code == text


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[1]",
        "{}",
        '{"code": 1}',
        '{"code": "", "files": {}}',
        '{"files": {"a": 1}}',
        '{"cod": "x"}',
        '{"code": "", "seed": "x"}',
    ],
)
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    """By its number."""
    with pytest.raises(InvalidRequest, match="line 2"):
        read(tmp_path / "c.jsonl", {"code": ""}, line)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Absent, binary, empty."""
    binary = tmp_path / "b"
    binary.write_bytes(b"\xff\xfe")
    for path, words in ((tmp_path / "none", "cannot be read"), (binary, "UTF-8")):
        with pytest.raises(InvalidRequest, match=words):
            read_candidates(str(path), "")
    with pytest.raises(InvalidRequest, match="no candidate"):
        read(tmp_path / "c.jsonl", "")


def test_a_spec_is_json(tmp_path: Path) -> None:
    """And a spec."""
    path = tmp_path / "spec.json"
    path.write_text('{"tests": "assert solve(1) == 2"}')
    assert read_spec(str(path)).template == "python"
    for text in ("{", '{"tests": ""}'):
        path.write_text(text)
        with pytest.raises(InvalidSpec):
            read_spec(str(path))


def test_a_verdict_says_when_there_was_no_code() -> None:
    """The grader saw an empty program, which is true and does not help."""
    none = Candidate(id="a", group="g", code="", reason="the thought has no end")

    assert (
        as_line(none, GradeResult(reward=0.0, reason="defines no solve"))["reason"] == "no code: the thought has no end"
    )
    assert as_line(none, infra_failure("lost"))["reason"] == "lost"


def test_summary_counts_and_means_what_has_a_reward() -> None:
    """The others are counted apart and are in no mean."""
    candidates = [Candidate(id=str(n), group="gh"[n // 2], code="") for n in range(4)]
    found = summary(candidates, [OK, FAILED, OK, infra_failure("lost")])

    assert found["statuses"] == {"ok": 2, "failed": 1, "infra_error": 1}
    assert (found["mean_reward"], found["invalid"], found["beside"], found["suspected_tamper"]) == (0.75, 1, 1, 1)
    assert found["pass_at"] == {"1": 0.75}
    assert summary(candidates[:1], [infra_failure("lost")])["mean_reward"] is None


def test_pass_at_k_is_the_unbiased_estimate() -> None:
    """Against the definition, for numbers that can be checked by hand."""
    assert pass_at_k(4, 1, 1) == 0.25
    assert pass_at_k(4, 1, 4) == 1.0
    assert pass_at_k(4, 0, 2) == 0.0
    assert pass_at_k(4, 2, 2) == pytest.approx(1 - 1 / 6)


def test_single_candidates_have_no_pass_at_k() -> None:
    """It would be the mean under another name."""
    assert summary([Candidate(id="a", group="a", code="")], [OK])["pass_at"] == {}
