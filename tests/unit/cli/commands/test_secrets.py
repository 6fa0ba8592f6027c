"""hotbed secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotbed.cli.main import main

HELD = {
    "github": {"hosts": ["api.github.com", "*.example.org:8443"], "value": "Bearer value-one", "tenants": ["research"]},
    "mirror": {"hosts": [{"host": "mirror.test", "ports": [444]}], "header": "X-Key", "value": "value-two"},
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own."""
    monkeypatch.setenv("HOTBED_HOME", str(tmp_path))
    return tmp_path


def held(home: Path, given: Any, mode: int = 0o600) -> Path:
    """The file of a node's secrets."""
    path = home / "egress-secrets.json"
    path.write_text(given if isinstance(given, str) else json.dumps(given))
    path.chmod(mode)
    return path


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `hotbed secrets`."""
    code = main(["secrets", *argv])
    return code, *capsys.readouterr()


def test_names_are_listed_and_values_are_not(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where each is for, in which header, and who may name it."""
    held(home, HELD)

    code, out, err = said(capsys, "list", "--json")

    assert code == 0 and "value-" not in out + err
    assert json.loads(out) == [
        {
            "name": "github",
            "hosts": ["api.github.com:443", "*.example.org:8443"],
            "header": "authorization",
            "tenants": ["research"],
        },
        {"name": "mirror", "hosts": ["mirror.test:444"], "header": "x-key", "tenants": []},
    ]
    _, table, _ = said(capsys, "list")
    assert "api.github.com:443, *.example.org:8443" in table and "value-" not in table


def test_no_file_is_no_secrets(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing to check."""
    assert said(capsys, "list", "--json")[:2] == (0, "[]\n")
    code, _, err = said(capsys, "check")
    assert code == 2 and str(home / "egress-secrets.json") in err


def test_a_sound_file_is_said_to_be(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With how many there are."""
    held(home, HELD)

    code, out, err = said(capsys, "check")

    assert (code, out) == (0, "") and "2 secrets" in err


def test_what_is_wrong_is_said_before_a_policy_meets_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In whichever file; without a value."""
    path = held(home, {"one": {"hosts": [], "value": "value-one"}, "two": {"value": "value-two"}}, 0o640)
    path = path.rename(home / "new.json")

    code, out, err = said(capsys, "check", "--file", str(path))

    assert code == 1 and len(out.splitlines()) == 3 and "value-" not in out + err
    told = json.loads(said(capsys, "check", "--file", str(path), "--json")[1])
    assert told == {"file": str(path), "ok": False, "mistakes": out.splitlines()}
    assert said(capsys, "list", "--file", str(path))[0] == 2


def test_json_that_is_none_is_pointed_at(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without showing it."""
    held(home, '{"one": {\n "value": "value-one" "hosts"')

    code, out, _ = said(capsys, "check")

    assert code == 1 and "line 2, column 23" in out and "value-one" not in out
