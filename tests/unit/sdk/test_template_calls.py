"""The operations on templates, before any I/O."""

from __future__ import annotations

import json
from typing import Any

from hotbed.sdk import template_calls
from hotbed.wire.templates import CreateTemplate


def test_each_call_knows_its_path() -> None:
    """A name is one part of it, whatever is in it."""
    calls: list[Any] = [
        template_calls.listing(),
        template_calls.get("a/b"),
        template_calls.delete("x"),
        template_calls.images(),
    ]

    assert [(call.method, call.target) for call in calls] == [
        ("GET", "/v1/templates"),
        ("GET", "/v1/templates/a%2Fb"),
        ("DELETE", "/v1/templates/x"),
        ("GET", "/v1/images"),
    ]


def test_answers_become_rows() -> None:
    """Of the wire's own types."""
    row = {"id": "x", "name": "x", "image": "host", "phase": "Live"}

    assert template_calls.listing().read(json.dumps({"templates": [row]}).encode())[0].phase == "Live"
    assert template_calls.images().read(json.dumps({"images": [row]}).encode())[0].name == "x"
    assert template_calls.delete("x").read(b'{"id": "x"}').deleted


def test_what_is_asked_is_in_the_body() -> None:
    """Without what was not given."""
    call = template_calls.create(CreateTemplate(name="x", setup=("a",)))

    body = {"name": "x", "image": "host", "setup": ["a"], "warm_cmd": "", "width": 1, "network": True}
    assert json.loads(call.body) == body
