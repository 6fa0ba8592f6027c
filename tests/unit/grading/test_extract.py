"""Code out of completions."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.grading import extract, extract_code

CASES = [json.loads(line) for line in (Path(__file__).parents[2] / "cases" / "extract.jsonl").read_text().splitlines()]
ADD = "def add(a, b):\n    return a + b\n"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_published_complaints(case: dict[str, Any]) -> None:
    """Each was extracted wrongly by some public grader."""
    code = extract(case["completion"], entry=case["spec"].get("entry")).code
    wanted = case["expect"]["code"]

    assert (code and code.strip()) == wanted


@pytest.mark.parametrize(
    ("completion", "entry"),
    [
        (f"```python\n{ADD}```\n```text\n3\n```\n", None),
        (f"Sure! ```python\n{ADD}```\n", None),
        (f"> ```python\n> {ADD.strip().replace(chr(10), chr(10) + '> ')}\n> ```\n", None),
        (f"- item\n\n  ```py\n  {ADD.strip().replace(chr(10), chr(10) + '  ')}\n  ```\n", None),
        (f"I don't think so</think> it's done\n```\n{ADD}```", None),
        (f"<THINK>x</THINK>\n{ADD}\nThat adds two numbers.\n", None),
        (f"Here it is:\n\n{ADD}\nHope this helps.", None),
        (f"````markdown\n```python\nx\n```\n````\n```python\n{ADD}```", None),
        ("```diff\n--- a\n+++ b\n@@ -1 +1,2 @@\n-def add(a): pass\n+def add(a, b):\n+    return a + b\n```", None),
        (f"```\n{ADD}```\n```\n7\n```", None),
        (f"```python\n{ADD}```\n```python\nclass Helper:\n    pass\n```", "add"),
        (f"# pytest [DONE] exit(0)\n```python\n{ADD}```", None),
        (f"```python\n{ADD}```\r\n".replace("\n", "\r\n"), None),
    ],
)
def test_the_answer_is_found(completion: str, entry: str | None) -> None:
    """Wherever models put it."""
    assert extract_code(completion, entry) == ADD


@pytest.mark.parametrize("completion", ["", "no code here", "<think>\n```python\nx = 1\n```", "x</think>y<think>z"])
def test_there_is_none_and_a_reason(completion: str) -> None:
    """A draft is not an answer."""
    found = extract(completion)

    assert found.code is None and found.span is None and found.reason


def test_code_that_does_not_parse_is_still_the_answer() -> None:
    """It scores 0, by the candidate's fault."""
    found = extract("```python\ndef add(a, b)\n    return\n```")

    assert found.code is not None and found.reason == "the code does not parse"


def test_other_languages_by_their_tags() -> None:
    """Nothing is parsed for these."""
    text = "```python\nx = 1\n```\n```cpp\nint main() {}\n```\n"

    assert extract(text, language="c++").code == "int main() {}\n"
    assert extract(text, language="rust").code is None


@given(st.lists(st.sampled_from(["```", "~~~", "````", "python", "\n", "x = 1", "def f():\n", "    pass\n", "<think>",
                                 "</think>", "'", '"', "\r\n", "> ", " "]), max_size=40).map("".join))  # fmt: skip
def test_the_span_is_where_the_code_was(text: str) -> None:
    """The log can show what was graded."""
    found = extract(text)
    if found.code is not None and found.span is not None:
        start, end = found.span
        taken = [line.strip() for line in text[start:end].replace("\r\n", "\n").split("\n")]
        assert all(any(line.strip() in part for part in taken) for line in found.code.split("\n"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "`" * 1_000_000, "```\n" * 300_000, "```python\nx=(\n" * 100_000, "```python\n" + "(" * 1_000_000,
        "```python\n" + "[" * 100_000 + "]" * 100_000 + "\n```", "a b c d\n" * 1_200_000, '"</think>" ' * 100_000,
        "<think>" * 300_000, "\n" * 2_000_000, "def f(\n" * 300_000, "```" + "a" * 10_000_000,
        "'" * 1_000_000 + "</think>", '```q\nx=1\n"""\n' * 50_000,
    ],
    ids=range(13),
)  # fmt: skip
def test_hostile_text_costs_what_honest_text_costs(text: str) -> None:
    """No quadratic case; the bound leaves room for a loaded machine."""
    started = time.process_time()
    extract(text, entry="f")

    assert time.process_time() - started < 5
