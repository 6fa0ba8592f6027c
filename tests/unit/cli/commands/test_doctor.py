"""hotbed doctor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from hotbed.cli import grading_attacks
from hotbed.runtime import probe
from hotbed.runtime.backends import fork
from hotbed.runtime.probe import Check
from hotbed.runtime.selfcheck import table
from hotbed.runtime.selfcheck.table import Verdict
from tests.unit.cli.conftest import Hotbed

GOOD = Check(name="user namespaces", ok=True)
OPTIONAL = Check(name="cgroups", ok=False, detail="none", hint="run as root", needed=False)
BAD = Check(name="overlay", ok=False, detail="Operation not permitted", hint="Linux 5.11")

Host = Callable[..., None]


class IdleBackend:
    """Starts and stops, and makes nothing."""

    def __init__(self) -> None:
        self.running = False

    async def start(self) -> None:
        """Get ready."""
        self.running = True

    async def close(self) -> None:
        """Go away."""
        self.running = False


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    """Pretends to be a host on which these checks came out."""

    def pretend(*checks: Check) -> None:
        monkeypatch.setattr(probe, "checks", lambda: list(checks))

    return pretend


def test_host_that_isolates_is_a_yes(hotbed: Hotbed, host: Host) -> None:
    """What is only nice to have is shown with its hint, and does not decide."""
    host(GOOD, OPTIONAL)
    said = hotbed("doctor")

    assert said.code == 0
    assert "  OK  user namespaces\n" in said.out
    assert "  no  cgroups: none\n      hint: run as root\n" in said.out
    assert "isolation: fork\n" in said.out


@pytest.mark.parametrize(("detail", "code", "words"), [("", 0, "3 of 3"), ("got out", 1, "2 of 3")])
def test_self_check_decides_as_well(
    detail: str, code: int, words: str, hotbed: Hotbed, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attack that succeeds is a no, and is named."""
    host(GOOD)
    verdicts = [
        Verdict(claim="fork-bomb-contained", held=True, detail="", seconds=1.0),
        Verdict(claim="no-egress", held=not detail, detail=detail, seconds=1.0),
    ]

    async def run_all(_: object) -> AsyncIterator[Verdict]:
        for verdict in verdicts:
            yield verdict

    monkeypatch.setattr(table, "run_all", run_all)
    monkeypatch.setattr(fork, "ForkBackend", IdleBackend)
    paid = Verdict(claim="siblings-share-nothing", held=True, detail="", seconds=1.0)
    monkeypatch.setattr(grading_attacks, "run_all", lambda: iter([paid]))
    said, data = hotbed("doctor", "--self-check"), hotbed("doctor", "--self-check", "--json").json

    assert said.code == code
    assert f"  {'BROKEN' if detail else 'OK'}  no-egress{': got out' if detail else ''}\n" in said.out
    assert f"self-check: {words} claims hold\n" in said.out
    assert [verdict["held"] for verdict in data["self_check"]] == [True, not detail, True]


def test_host_that_does_not_isolate_is_not_attacked(hotbed: Hotbed, host: Host) -> None:
    """There is nothing to attack."""
    host(BAD)

    assert "self_check" not in hotbed("doctor", "--self-check", "--json").json


def test_host_that_does_not_is_a_no_with_the_remedy(hotbed: Hotbed, host: Host) -> None:
    """As data, too."""
    host(GOOD, BAD)
    said = hotbed("doctor", "--json")

    assert (said.code, said.json["isolation"]) == (1, "none")
    assert said.json["host"][1] == {
        "name": "overlay",
        "ok": False,
        "detail": "Operation not permitted",
        "hint": "Linux 5.11",
        "needed": True,
    }
