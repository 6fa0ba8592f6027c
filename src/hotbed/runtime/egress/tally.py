"""What a sandbox tried, counted, and told to the node in bounded pieces.

Every decision is counted. Alike ones within a moment become one row with a count, and there is a cap on the rows of a
moment, so that a program that asks a million times costs a million additions and no more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

ROWS_LIMIT = 512
REFUSED_SHOWN = 32
_COUNTS = ("allowed", "denied", "bytes_up", "bytes_down")
_KEY = ("kind", "name", "address", "port", "method", "verdict", "reason")


@dataclass(slots=True)
class Tally:
    """Of one sandbox. `take` gives what came since it was last taken, `rows` what the node has not been told yet."""

    allowed: int = 0
    denied: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    suspected_leak: bool = False
    total_bytes: int = 0
    _refused: dict[tuple[str, int, str], int] = field(default_factory=dict)
    _rows: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    _dropped: int = 0

    def carried(self, *, up: int = 0, down: int = 0) -> None:
        """Bytes went through."""
        self.bytes_up += up
        self.bytes_down += down
        self.total_bytes += up + down

    def count(self, *, allowed: bool) -> None:
        """One decision."""
        if allowed:
            self.allowed += 1
        else:
            self.denied += 1

    def note(self, *, up: int = 0, down: int = 0, leak: bool = False, **row: Any) -> None:
        """A row for the node: what a decision was about."""
        full: dict[str, Any] = {name: _safe(row[name]) if name in row else 0 if name == "port" else "" for name in _KEY}
        if full["verdict"] in ("denied", "cut"):
            self.suspected_leak = self.suspected_leak or leak
            key = (full["name"] or full["address"], full["port"], full["reason"])
            if key in self._refused or len(self._refused) < REFUSED_SHOWN:
                self._refused[key] = self._refused.get(key, 0) + 1
        known = self._rows.get(found := tuple(full.values()))
        if known is None:
            if len(self._rows) >= ROWS_LIMIT:
                self._dropped += 1
                return
            known = self._rows[found] = {**full, "at": time.time(), "count": 0, "up": 0, "down": 0, "leak": leak}
        known["count"] += 1
        known["up"] += up
        known["down"] += down

    def rows(self) -> list[dict[str, Any]]:
        """What has not been told yet."""
        rows, self._rows = list(self._rows.values()), {}
        if self._dropped:
            blank: dict[str, Any] = dict.fromkeys(_KEY, "")
            about = {"kind": "more", "port": 0, "verdict": "", "reason": "rows beyond the cap were only counted"}
            rows.append(
                {**blank, **about, "at": time.time(), "count": self._dropped, "up": 0, "down": 0, "leak": False}
            )
            self._dropped = 0
        return rows

    def take(self) -> dict[str, Any]:
        """The counts since they were last taken."""
        refused = [
            {"to": to, "port": port, "reason": why, "count": count} for (to, port, why), count in self._refused.items()
        ]
        taken = {
            "allowed": self.allowed,
            "denied": self.denied,
            "bytes_up": self.bytes_up,
            "bytes_down": self.bytes_down,
            "suspected_leak": self.suspected_leak,
            "refused": refused,
        }
        self.allowed = self.denied = self.bytes_up = self.bytes_down = 0
        self.suspected_leak, self._refused = False, {}
        return taken


def total(*taken: dict[str, Any]) -> dict[str, Any]:
    """What was taken of one sandbox at several times, as if it had been taken at once."""
    found: dict[str, Any] = {name: sum(one[name] for one in taken) for name in _COUNTS}
    refused: dict[tuple[Any, ...], int] = {}
    for row in (row for one in taken for row in one["refused"]):
        key = (row["to"], row["port"], row["reason"])
        if key in refused or len(refused) < REFUSED_SHOWN:
            refused[key] = refused.get(key, 0) + row["count"]
    rows = [{"to": to, "port": port, "reason": why, "count": count} for (to, port, why), count in refused.items()]
    return {**found, "suspected_leak": any(one["suspected_leak"] for one in taken), "refused": rows}


def lost_row() -> dict[str, Any]:
    """The row that says that there may have been others."""
    about = {"kind": "lost", "port": 0, "reason": "the egress broker was lost, and with it what was tried last"}
    return {**dict.fromkeys(_KEY, ""), **about, "at": time.time(), "count": 1, "up": 0, "down": 0, "leak": False}


def _safe(value: Any) -> Any:
    """What a program said, in letters that any log and database keeps."""
    if not isinstance(value, str) or (value.isascii() and value.isprintable()):
        return value
    return value.encode("unicode_escape").decode()
