"""Requests as spans."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from hotbed.server.spans import Spans, spans_to
from tests.unit.server.asking import ask, served

pytest.importorskip("opentelemetry.sdk")

TRACE, PARENT = "ab" * 16, "cd" * 8


class Kept:
    """An exporter that keeps what it is given."""

    def __init__(self) -> None:
        self.spans: list[Any] = []

    def export(self, spans: Sequence[Any]) -> Any:
        """Take them."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        self.spans += spans
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """There will be no more."""


def test_a_request_is_a_span_of_the_trace_it_came_with() -> None:
    """Known by what ran, so that one leads to the other."""
    kept = Kept()
    spans = Spans(kept, version="1")

    async def scenario() -> str:
        async with served() as (node, app):
            node.stats.heard = spans.ended
            headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
            ran = await ask(app, "POST", "/v1/rollouts", {"template": "python", "code": "1"}, headers=headers)
            await ask(app, "GET", "/v1/sandboxes/nope")
            return str(ran.json["id"])

    rollout_id = asyncio.run(scenario())
    spans.close()

    first, second = kept.spans
    assert (first.name, f"{first.context.trace_id:032x}", f"{first.parent.span_id:016x}") == ("rollout", TRACE, PARENT)
    assert first.attributes["hotbed.id"] == rollout_id
    assert (second.attributes["http.response.status_code"], second.parent) == (404, None)
    assert "hotbed.id" not in second.attributes
    assert 0 < first.end_time - first.start_time < 60e9


def test_a_collector_that_is_away_costs_no_request() -> None:
    """It is the library's thread that waits for it."""
    spans_to("http://127.0.0.1:9", version="1").close()
