"""Two runs held against each other: the first byte that differs, and the likely reason. Pure."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace

from hotbed.egress.decisions import NOT_RECORDED
from hotbed.wire.execs import ExecResponse
from hotbed.wire.ledger import Difference

_AROUND = 24
_TOKEN = re.compile(rb"[0-9A-Za-z_.:+-]+")
_NUMBER = re.compile(rb"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
_CLOCK_TIME = re.compile(rb"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?|[0-9]{4}-[0-9]{2}-[0-9]{2}.*")
_ADDRESS = re.compile(rb"0x[0-9a-f]{8,16}")
_HEX = re.compile(rb"[0-9a-f-]{8,}|[0-9A-F-]{8,}")
_NETWORK = re.compile(
    rb"refused|unreachable|resolv|timed out|Name or service|getaddrinfo|Temporary failure", re.IGNORECASE
)
_NAMED_PID = re.compile(rb"\bp?pid\b", re.IGNORECASE)
_PID_LIMIT = 1 << 22
_YEAR_S = 365 * 86400.0
_SHUFFLED = 40  # a line longer than that has the bytes of another for a reason


def compare(recorded: ExecResponse, replayed: ExecResponse) -> Iterator[Difference]:
    """Every respect in which two runs differ: status, exit code, signal, the streams, and what a recording lacked."""
    found = list(_compare(recorded, replayed))
    told = replayed.egress or {}
    tried = bool(told.get("allowed") or told.get("denied"))
    for difference in found:
        yield replace(difference, source="network") if tried and difference.source == "unknown" else difference
    for item in told.get("refused", ()) if found else ():
        if item["reason"].startswith(NOT_RECORDED):
            yield Difference(what="network", replayed=item["reason"], source="network")


def _compare(recorded: ExecResponse, replayed: ExecResponse) -> Iterator[Difference]:
    for name in ("status", "exit_code", "signal"):
        old, new = getattr(recorded, name), getattr(replayed, name)
        if old != new:
            source = "timing" if "timeout" in (recorded.status, replayed.status) else "unknown"
            yield Difference(what=name, recorded=str(old), replayed=str(new), source=source)
    for name in ("stdout", "stderr"):
        streams = getattr(recorded, f"{name}_bytes"), getattr(replayed, f"{name}_bytes")
        difference = compare_bytes(name, *streams)
        if difference is not None and difference.source == "rng" and replayed.seed_ack == "verified":
            difference = replace(difference, source=_not_drawn(*streams, "clock" in replayed.pinned))
        if difference is not None:
            yield difference


def _not_drawn(a: bytes, b: bytes, has_clock: bool) -> str:
    """Where draws are pinned, what looks like one is something else; most often what the time does to a number."""
    if _is_shuffled(a, b, first_difference(a, b) or 0):
        return "order"
    return "unknown" if has_clock else "clock"


def compare_bytes(what: str, recorded: bytes, replayed: bytes) -> Difference | None:
    """Where two streams first differ, or None."""
    offset = first_difference(recorded, replayed)
    if offset is None:
        return None
    return Difference(
        what=what,
        offset=offset,
        recorded=_excerpt(recorded, offset),
        replayed=_excerpt(replayed, offset),
        source=likely_source(recorded, replayed, offset),
    )


def first_difference(a: bytes, b: bytes) -> int | None:
    """The offset of the first byte that differs; the shorter length when one is the other's beginning."""
    if a == b:
        return None
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:  # a[:low] is equal, a[:high] is not
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def likely_source(a: bytes, b: bytes, offset: int) -> str:
    """Why two runs may have begun to differ there, from what stands there. A guess, and called one."""
    lines = a.splitlines(), b.splitlines()
    if lines[0] != lines[1] and sorted(lines[0]) == sorted(lines[1]):
        return "order"
    line_a, line_b = _line(a, offset), _line(b, offset)
    if _NETWORK.search(line_a) or _NETWORK.search(line_b):
        return "network"
    token_a, token_b = _token(a, offset), _token(b, offset)
    if _ADDRESS.fullmatch(token_a) and _ADDRESS.fullmatch(token_b):
        return "address"
    if _CLOCK_TIME.fullmatch(token_a) and _CLOCK_TIME.fullmatch(token_b):
        return "clock"
    if _NUMBER.fullmatch(token_a) and _NUMBER.fullmatch(token_b):
        return _number_source(float(token_a), float(token_b), line_a)
    if _HEX.fullmatch(token_a) and _HEX.fullmatch(token_b):
        return "rng"
    return "order" if _is_shuffled(a, b, offset) else "unknown"


def _is_shuffled(a: bytes, b: bytes, offset: int) -> bool:
    """Whether a line has the same words as the other, or, of threads that wrote between each other, the same bytes."""
    lines = _line(a, offset), _line(b, offset)
    words = [sorted(_TOKEN.findall(line)) for line in lines]
    if words[0] == words[1]:
        return len(words[0]) > 1
    return len(lines[0]) > _SHUFFLED and sorted(lines[0]) == sorted(lines[1])


def _number_source(a: float, b: float, line: bytes) -> str:
    if _NAMED_PID.search(line) and max(a, b) < _PID_LIMIT:
        return "pid"
    now = time.time()
    for unit in (1, 1e3, 1e6, 1e9):
        if all(abs(value / unit - now) < 5 * _YEAR_S for value in (a, b)):
            return "clock"
    if a == int(a) and b == int(b) and abs(a - b) < 2000 and max(a, b) < _PID_LIMIT and max(a, b) > 2:
        return "pid" if len(line.split()) == 1 else "rng"
    return "rng"


def _token(data: bytes, offset: int) -> bytes:
    start = max(0, offset - 64)
    for match in _TOKEN.finditer(data, start, offset + 64):
        if match.start() <= offset <= match.end():
            return match.group().strip(b":")  # which JSON has after each name
    return b""


def _line(data: bytes, offset: int) -> bytes:
    start = data.rfind(b"\n", 0, offset) + 1
    end = data.find(b"\n", offset)
    return data[start : end if end >= 0 else len(data)][:4096]


def _excerpt(data: bytes, offset: int) -> str:
    return data[max(0, offset - _AROUND) : offset + _AROUND].decode("utf-8", "backslashreplace")
