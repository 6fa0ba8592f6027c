"""Prometheus' text, read by Prometheus' own parser."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families
from starlette.types import ASGIApp

from tests.unit.server.asking import ask, make_sandbox, served


async def scraped(app: ASGIApp) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample, by its name and labels."""
    answer = await ask(app, "GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families: Iterable[object] = text_string_to_metric_families(answer.body.decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples  # type: ignore[attr-defined]  # the library has no types for it
    }


def test_what_happened_is_counted() -> None:
    """By route and status, by state, and in seconds."""

    async def scenario() -> None:
        async with served() as (_, app):
            await make_sandbox(app)
            for code in ("print(1)", "raise SystemExit(3)"):
                await ask(app, "POST", "/v1/rollouts", {"template": "python", "code": code})
            await ask(app, "GET", "/v1/sandboxes/nope")
            found = await scraped(app)

            assert found["hotbed_requests_total", (("route", "rollout"), ("status", "200"))] == 2
            assert found["hotbed_requests_total", (("route", "get_sandbox"), ("status", "404"))] == 1
            assert found["hotbed_sandboxes", (("state", "idle"),)] == 1
            assert found["hotbed_execs_total", (("status", "exit"),)] == 1
            assert found["hotbed_rollout_seconds_count", ()] == 2
            assert found["hotbed_queue_seconds_count", ()] == 3
            assert found["hotbed_exec_seconds_bucket", (("le", "+Inf"),)] == 2
            assert found["hotbed_leaks_found_total", ()] == 0
            assert found["hotbed_process_open_fds", ()] > 0

    asyncio.run(scenario())


def test_buckets_only_grow() -> None:
    """A histogram of Prometheus counts what is at most a bound."""

    async def scenario() -> None:
        async with served() as (node, app):
            for took_ms in (0.1, 3, 3, 70, 10**6):
                node.stats.grade_ms.add(took_ms)
            found = await scraped(app)
            buckets = [(float(labels[0][1]), value) for (name, labels), value in found.items() if name == _GRADES]

            assert [value for _, value in sorted(buckets)] == sorted(value for _, value in buckets)
            assert dict(buckets)[0.003] == 3
            assert max(buckets) == (float("inf"), 5)
            assert found["hotbed_grade_seconds_sum", ()] == (0.1 + 3 + 3 + 70 + 10**6) / 1e3

    asyncio.run(scenario())


_GRADES = "hotbed_grade_seconds_bucket"
