"""What is counted: the official checks, fixed before a candidate is asked anything.

A check passes by positive evidence only: it ran, and it never failed. Whatever was skipped, expected to fail, or never
reached is not passed; whatever ran beyond the official list counts for nothing.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

MESSAGE_LIMIT = 400


class SpecError(Exception):
    """The spec cannot be graded; no candidate had a part in it. The reward will be None."""


class Checks:
    """The outcome of each official check for one candidate."""

    def __init__(self, names: List[str]) -> None:
        self._found: Dict[str, Tuple[str, str]] = {name: ("not_run", "") for name in names}

    def record(self, name: str, outcome: str, message: str = "") -> None:
        """Note one run of a check. A failure stays; names that are not official are ignored."""
        if self._found.get(name, ("", ""))[0] in ("not_run", "passed"):
            self._found[name] = (outcome, message[:MESSAGE_LIMIT])

    def outcome(self, name: str) -> str:
        """What is known of a check."""
        return self._found[name][0]

    def names(self) -> List[str]:
        """The official checks in order."""
        return list(self._found)

    def passed(self) -> int:
        """How many passed."""
        return sum(outcome == "passed" for outcome, _ in self._found.values())

    def outcomes(self) -> List[str]:
        """What each check came to."""
        return [outcome for outcome, _ in self._found.values()]

    def first_message(self) -> str:
        """Why the first check that did not pass did not."""
        for name, (outcome, message) in self._found.items():
            if outcome not in ("passed", "not_run"):
                return f"{name}: {message or outcome}"
        return ""

    def never_reached(self) -> str:
        """The checks that nothing came to, the first few of them."""
        names = [name for name, (outcome, _) in self._found.items() if outcome == "not_run"]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"never reached: {', '.join(names[:3])}{more}" if names else ""

    def to_wire(self) -> List[List[str]]:
        """[name, outcome, message] of each."""
        return [[name, outcome, message] for name, (outcome, message) in self._found.items()]


def explain(error: BaseException) -> str:
    """An exception in one line."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  an exception of the tests may have any __str__
        text = ""
    line = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return line[:MESSAGE_LIMIT]


class Verdict:
    """One candidate's verdict in the making."""

    def __init__(self, checks: Optional[Checks] = None) -> None:
        self.checks = checks or Checks([])
        self.status = ""
        self.reason = ""
        self.unsealed: List[str] = []
        self.tampered = ""
        self.gone = False
        self.calls = 0

    def say(self, status: str, reason: str) -> None:
        """Set the status once; the first thing that went wrong explains the rest."""
        if not self.status:
            self.status, self.reason = status, reason[:MESSAGE_LIMIT]

    def to_wire(self) -> Dict[str, Any]:
        """The verdict as a header's fields."""
        passed, total = self.checks.passed(), len(self.checks.names())
        if not self.status:
            reason = self.checks.first_message() or self.checks.never_reached()
            self.say("ok" if passed == total else "failed", "" if passed == total else reason)
        return {
            "checks": self.checks.to_wire(),
            "passed": passed,
            "total": total,
            "status": self.status,
            "reason": self.reason,
            "unsealed": self.unsealed,
            "tampered": self.tampered,
            "gone": self.gone,
            "calls": self.calls,
        }
