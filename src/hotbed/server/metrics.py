"""What a node counts, in Prometheus' text.

The counting itself is the node's own (`node.stats`): plain integers, since every rollout passes by and a library's
locks and label look-ups would cost more than what they count. The library writes the text: its escapes, its types and
its process figures are not ours to get wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from hotbed.node.counters import counted
from hotbed.node.node import Node

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
HISTOGRAMS = {
    "fork": "from asking for a sandbox to its being ready",
    "exec": "of one exec, by the sandbox's own clock",
    "grade": "of one candidate, from its turn to its verdict",
    "queue": "waited for a turn before a sandbox was forked",
    "rollout": "of a rollout, from its request to its answer",
}
GAUGES = {
    "leases": ("leases", "leases held by clients"),
    "pools": ("pools", "pools that live"),
    "pool_workers": ("pool_workers", "workers of pools"),
    "queued": ("queued_requests", "requests that wait for a turn"),
    "running": ("turns_taken", "turns taken: sandboxes that live or are being ended"),
    "inflight": ("inflight_requests", "requests that a drain waits for"),
    "boltz_slots": ("boltz_slots", "slots for environments of boltz pools"),
    "boltz_slots_free": ("boltz_slots_free", "of these, free ones"),
}
PARKED = {
    "spares": "sandboxes parked ahead of requests",
    "vessels": "empty sandboxes parked for copies of environments",
    "templates": "templates whose interpreter is warm",
    "snapshots": "snapshots that live",
    "snapshot_bytes": "bytes of memory that snapshots hold",
    "cgroups_used": "cgroups in use",
}


def exposition(node: Node) -> bytes:
    """The text."""
    registry = CollectorRegistry()
    registry.register(NodeCollector(node))
    ProcessCollector(namespace="hotbed", registry=registry)
    return generate_latest(registry)


class NodeCollector(Collector):
    """One node's figures as metric families."""

    def __init__(self, node: Node) -> None:
        self._counted = counted(node)
        self._node = node

    def collect(self) -> Iterable[Metric]:
        """All of them."""
        told, backend = self._counted["node"], self._counted["backend"]
        yield from (histogram(name, says, told[f"{name}_ms"]) for name, says in HISTOGRAMS.items())
        yield from (gauge(name, says, told[key]) for key, (name, says) in GAUGES.items())
        yield from (gauge(key, says, backend[key]) for key, says in PARKED.items() if key in backend)
        yield labelled(GaugeMetricFamily, "sandboxes", "sandboxes by what they are doing", "state", told["sandboxes"])
        yield labelled(CounterMetricFamily, "execs", "execs by how they ended", "status", told["outcomes"])
        yield labelled(CounterMetricFamily, "grading", "what came of candidates", "outcome", told["grading"])
        yield counter("forks", "sandboxes handed out", backend["forks"])
        yield counter("warm_hits", "of these, parked ones", backend.get("warm_hits", 0))
        yield counter("refused", "requests refused for want of room", told["refused"])
        yield counter(
            "leaks_found", "sandboxes that nobody knew of; one is worth an alert", told["counts"].get("leaks", 0)
        )
        kept = self._counted["ledger"] or {}
        yield counter("ledger_lost", "ledger lines that neither disk nor database took", kept.get("lost", 0))
        yield gauge("ledger_behind", "ledger lines that wait in the spool for the database", kept.get("behind", 0))
        yield self._requests()
        yield from self._warmth()

    def _warmth(self) -> Iterable[Metric]:
        """Of each template that was forked: what is parked, and how many forks found something parked."""
        parked = GaugeMetricFamily(
            "hotbed_template_spares", "sandboxes parked, by template", labels=("template", "state")
        )
        forks = CounterMetricFamily(
            "hotbed_template_forks", "sandboxes handed out, by whether a parked one was", labels=("template", "served")
        )
        for name in self._node.templates.names:
            warmth = self._node.templates.warmth(name)
            if warmth is None or (warmth.forks, warmth.parked, warmth.frozen) == (0, 0, 0):
                continue
            for state, count in (("warm", warmth.parked), ("frozen", warmth.frozen)):
                parked.add_metric((name, state), count)
            for served, count in (("parked", warmth.hits), ("forked", warmth.forks - warmth.hits)):
                forks.add_metric((name, served), count)
        return parked, forks

    def _requests(self) -> Metric:
        family = CounterMetricFamily("hotbed_requests", "requests by route and status", labels=("route", "status"))
        for (route, status), count in sorted(self._node.stats.requests.items()):
            family.add_metric((route, str(status)), count)
        return family


def histogram(name: str, says: str, told: Mapping[str, Any]) -> Metric:
    """Durations, in seconds as is the custom."""
    buckets, below = [], 0
    for bound, count in zip((*told["bounds_ms"], None), told["counts"], strict=True):
        below += count
        buckets.append(("+Inf" if bound is None else repr(bound / 1e3), float(below)))
    family = HistogramMetricFamily(f"hotbed_{name}_seconds", f"seconds {says}")
    family.add_metric((), buckets, told["sum_ms"] / 1e3)
    return family


def gauge(name: str, says: str, value: float) -> Metric:
    """A figure that goes up and down."""
    return GaugeMetricFamily(f"hotbed_{name}", says, value=value)


def counter(name: str, says: str, value: float) -> Metric:
    """A figure that only goes up."""
    return CounterMetricFamily(f"hotbed_{name}", says, value=value)


def labelled(
    kind: type[GaugeMetricFamily | CounterMetricFamily], name: str, says: str, label: str, values: Mapping[str, int]
) -> Metric:
    """A figure by one label."""
    family = kind(f"hotbed_{name}", says, labels=(label,))
    for value, count in sorted(values.items()):
        family.add_metric((value,), count)
    return family
