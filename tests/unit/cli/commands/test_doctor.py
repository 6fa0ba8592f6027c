"""hotbed doctor."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hotbed.runtime import probe
from hotbed.runtime.probe import Check
from tests.unit.cli.conftest import Hotbed

GOOD = Check(name="user namespaces", ok=True)
OPTIONAL = Check(name="cgroups", ok=False, detail="none", hint="run as root", needed=False)
BAD = Check(name="overlay", ok=False, detail="Operation not permitted", hint="Linux 5.11")

Host = Callable[..., None]


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
    assert "  ok  user namespaces\n" in said.out
    assert "  no  cgroups: none\n      hint: run as root\n" in said.out
    assert "isolation: fork\n" in said.out


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
