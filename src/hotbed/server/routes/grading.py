"""Grading a group: one request, a line per candidate as soon as it is known."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import msgspec

from hotbed.node import plans
from hotbed.node.node import Node
from hotbed.node.once import check_key
from hotbed.server.connection import Emit, Stream
from hotbed.server.errors import as_error, error_json
from hotbed.server.operation import Call
from hotbed.server.streams import line
from hotbed.wire.grading import GradeDone, GradeLine, GradeRequest
from hotbed.wire.routes import KEY_HEADER, NDJSON


async def grade(node: Node, call: Call) -> Stream:
    """The lines of a group. What is wrong with the request is an error before the first of them."""
    node.check_open()
    plans.check_isolation(node.isolation, call.body.min_isolation)
    lines = node.graders.grade(_keyed(call), call.lease)
    with node.working():
        first = await anext(lines)

    async def produce(emit: Emit) -> None:
        try:
            with node.working():
                await emit(_written(first))
                async for item in lines:
                    await emit(_written(item))
        except Exception as failure:  # noqa: BLE001  the stream's boundary: the status line has been sent already
            error = msgspec.Raw(error_json(as_error(failure)).encode())
            await emit(line({"error": error, "event": "error"}))
        finally:
            await lines.aclose()

    return Stream(produce, media_type=NDJSON)


def _keyed(call: Call) -> GradeRequest:
    """A group under an idempotency key is one with an id: asked again, nothing is graded twice."""
    request: GradeRequest = call.body
    key = call.request.headers.get(KEY_HEADER)
    if key is None or request.group_id:
        return request
    check_key(key)
    return replace(request, group_id=f"key-{hashlib.sha256(key.encode()).hexdigest()[:40]}")


def _written(item: GradeLine | GradeDone | None) -> bytes:
    """A line; an empty one says that we are still there."""
    return b"\n" if item is None else line(item)
