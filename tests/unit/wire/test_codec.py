"""The standard-library codec, held against msgspec, which the server uses for the same classes."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotbed.errors import InvalidRequest, ProtocolError
from hotbed.wire.codec import from_wire, to_wire
from hotbed.wire.execs import ExecRequest, ExecResponse, FileSpec, OutputEvent, ResultEvent, RolloutRequest
from hotbed.wire.health import Health
from hotbed.wire.sandboxes import FileAnswer, FileEntry, SandboxList, SandboxRow
from hotbed.wire.templates import TemplateList, TemplateRow

RESPONSE = ExecResponse(
    id="e",
    status="exit",
    ok=False,
    exit_code=3,
    stdout="a",
    stderr_b64=b"\xff\0",
    order=((1, 1), (2, 2)),
    fork_time_ms=1.5,
    pinned=("aslr",),
    steps=({"exit_code": 3},),
)
ROW = SandboxRow(
    id="s", template="t", template_id="t", state="running", created_at="", age_s=1, idle_s=0, exec_count=2,
    isolation="fork", labels={"a": "b"},
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    RolloutRequest(
        template="python",
        code="print(1)",
        files=(FileSpec(path="/work/a", content_b64=b"\xff"), FileSpec(path="/b", content="b", mode=0o755)),
        env={"A": "b"},
        limits={"cpus": 0.5, "memory_mib": 64},
        seed="a" * 64,
        determinism="rng",
    ),
    ExecRequest(commands=(("echo", "é"), ("false",)), keep_going=True, timeout_seconds=1.5),
    RESPONSE,
    ResultEvent(result=RESPONSE),
    SandboxList(sandboxes=(ROW,)),
    FileAnswer(path="/a", entry=FileEntry(name="a", type="file"), entries=(FileEntry(name="b", type="dir"),)),
    TemplateList(templates=(TemplateRow(id="t", name="t", image="host", limits={"cpus": 1.0}),)),
    Health(
        status="ok", version="1", node_id="n", sessions=0, running=1, queued=2, max_inflight=3, templates=("a",),
        isolation="fork",
    ),
)  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_both_codecs_read_what_either_wrote(value: Any) -> None:
    """The client writes with one and the server reads with the other."""
    ours = json.dumps(to_wire(value)).encode()
    theirs = msgspec.json.encode(value)

    for written in (ours, theirs):
        assert from_wire(type(value), json.loads(written)) == value
        assert msgspec.json.decode(written, type=type(value)) == value


def test_what_was_not_given_is_not_sent() -> None:
    """Requests stay small, and the server's defaults apply."""
    sent = to_wire(ExecRequest(code=""))

    assert sent == {"code": "", "timeout_seconds": 60.0, "keep_going": False, "stream": False}


WRONG = [
    ({"id": 1}, "id must be text, not 1"),
    ({"ok": "yes"}, "ok must be true or false"),
    ({"exit_code": 1.5}, "exit_code must be a whole number"),
    ({"exit_code": True}, "exit_code must be a whole number"),
    ({"fork_time_ms": "1"}, "fork_time_ms must be a number"),
    ({"order": [[1]]}, r"order\[0\] must be a list of 2"),
    ({"order": [[1, "x"]]}, r"order\[0\]\[1\] must be a whole number"),
    ({"order": {}}, "order must be a list"),
    ({"stdout_b64": "%%%"}, "stdout_b64 is not base64"),
    ({"steps": [1]}, r"steps\[0\] must be an object"),
    ({"stdout": ["x" * 100]}, r"stdout must be text, not \['x+\.\.\."),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_field_is_named(change: dict[str, Any], message: str) -> None:
    """ "Invalid response" helps nobody."""
    with pytest.raises(ProtocolError, match=message):
        from_wire(ExecResponse, {**to_wire(RESPONSE), **change})


def test_a_missing_field_is_named_where_it_is_missing() -> None:
    """Also below the first level."""
    with pytest.raises(ProtocolError, match=r"result\.id is missing"):
        from_wire(ResultEvent, {"result": {}})
    with pytest.raises(InvalidRequest, match="the body must be an object"):
        from_wire(ResultEvent, [], error=InvalidRequest)
    with pytest.raises(ProtocolError, match="fd must be 1 or 2"):
        from_wire(OutputEvent, {"fd": 3})


def test_fields_of_a_newer_server_are_ignored() -> None:
    """An older client can read it."""
    assert from_wire(ExecResponse, {**to_wire(RESPONSE), "carbon_g": 1}) == RESPONSE


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
NAMES = st.sampled_from([item.name for item in dataclasses.fields(ExecResponse)])


@pytest.mark.slow
@settings(max_examples=50)
@given(st.dictionaries(NAMES, st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))))
def test_any_json_is_a_value_or_one_kind_of_error(data: Any) -> None:
    """What a broken server sends must not surface as a TypeError from our insides."""
    try:
        from_wire(ExecResponse, data)
    except ProtocolError:
        pass
