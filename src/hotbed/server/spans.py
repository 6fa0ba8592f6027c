"""Requests as OpenTelemetry spans (`hotbed[otel]`), sent to a collector from a thread of the library's own.

A span is made when its request is over, as a child of what the request's `traceparent` names. Nothing of it is on the
way of a request to a node that sends none.
"""

from __future__ import annotations

import logging
from typing import Any

from hotbed.errors import InvalidRequest
from hotbed.node import trace

log = logging.getLogger(__name__)


class Spans:
    """Makes spans and sends them."""

    def __init__(self, exporter: Any, *, version: str) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        resource = Resource.create({"service.name": "hotbed", "service.version": version})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("hotbed")

    def ended(self, *, route: str, status: int, begun_ns: int, tenant: str) -> None:
        """A request is over."""
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        parent = TraceContextTextMapPropagator().extract({trace.HEADER: trace.CURRENT.get()})
        known: dict[str, Any] = {"hotbed.route": route, "hotbed.tenant": tenant, "http.response.status_code": status}
        span = self._tracer.start_span(
            route, context=parent, kind=SpanKind.SERVER, start_time=begun_ns, attributes={**known, **trace.ids()}
        )
        span.end()

    def close(self) -> None:
        """Send what is left. Blocks for a moment."""
        self._provider.shutdown()


def spans_to(endpoint: str, *, version: str) -> Spans:
    """Spans that go to a collector by OTLP over HTTP, such as `http://127.0.0.1:4318`."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise InvalidRequest("this installation cannot send spans", hint="pip install 'hotbed[otel]'") from None
    log.info("event=spans_sent endpoint=%s", endpoint)
    return Spans(OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces"), version=version)
