"""POST /v1/grade: refusals by the status line, verdicts as lines."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hotbed.errors import TemplateFailed
from hotbed.node.grading import groups
from hotbed.node.templates import Templates
from hotbed.server.routes import grading
from tests.unit.server.asking import ask, served

SPEC = {"type": "stdio", "cases": [{"stdin": "2", "stdout": "4"}]}
GOOD, BAD = "print(int(input()) ** 2)", "print(5)"


def asked(**request: Any) -> tuple[int, Any]:
    """Status, and the lines or the error."""

    async def scenario() -> tuple[int, Any]:
        async with served() as (_, app):
            answer = await ask(app, "POST", "/v1/grade", {"spec": SPEC, "codes": [GOOD, BAD], **request})
            return answer.status, answer.lines if answer.status == 200 else answer.json

    return asyncio.run(scenario())


def test_verdicts_come_as_lines_and_the_end_last() -> None:
    """Whatever their order."""
    status, (*lines, done) = asked(codes=[GOOD, BAD, {"main.py": GOOD}], group_id="g")

    assert status == 200
    assert {line["index"]: line["result"]["reward"] for line in lines} == {0: 1.0, 1: 0.0, 2: 1.0}
    assert {line["event"] for line in lines} == {"grade"}
    assert (done["event"], done["group_id"], done["graded"], done["statuses"]) == (
        "done",
        "g",
        3,
        {"ok": 2, "failed": 1},
    )


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"spec": {"type": "stdio"}}, "invalid_spec"),
        ({"spec": {**SPEC, "template": "none"}}, "unknown_template"),
        ({"codes": "x"}, "invalid_request"),
        ({"concurrency": 0}, "invalid_request"),
        ({"min_isolation": "vm"}, "isolation_unavailable"),
    ],
)
def test_what_is_wrong_with_a_request_is_its_status(request_: dict[str, Any], code: str) -> None:
    """Before the first line, and before anything runs."""
    status, error = asked(**request_)

    assert status >= 400
    assert error["code"] == code


def test_who_waits_gets_empty_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which say that we are there."""
    monkeypatch.setattr(groups, "BEAT_S", 0.01)

    async def scenario() -> bytes:
        async with served() as (_, app):
            slow = "import time; time.sleep(0.3); " + GOOD
            return (await ask(app, "POST", "/v1/grade", {"spec": SPEC, "codes": [slow]})).body

    assert b"\n\n" in b"\n" + asyncio.run(scenario())
    assert grading._written(None) == b"\n"


def test_a_failure_after_the_first_line_is_the_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The status line has been sent by then."""
    monkeypatch.setattr(groups, "BEAT_S", 0.01)

    async def broken(*args: Any, **options: Any) -> None:
        await asyncio.sleep(0.1)
        raise TemplateFailed("it does not start")

    monkeypatch.setattr(Templates, "warm", broken)
    status, lines = asked()

    assert status == 200
    assert [line["event"] for line in lines] == ["error"]
    assert lines[0]["error"]["code"] == "template_failed"
