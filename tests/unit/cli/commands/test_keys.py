"""hotbed keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotbed.cli.commands import keys
from hotbed.cli.main import main
from hotbed.errors import InvalidRequest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own."""
    monkeypatch.setenv("HOTBED_HOME", str(tmp_path))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `hotbed keys`."""
    code = main(["keys", *argv])
    return code, *capsys.readouterr()


def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The keys there are."""
    rows: list[dict[str, Any]] = json.loads(said(capsys, "list", "--json")[1])
    return rows


def test_a_key_is_shown_once_and_never_again(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard output alone, so that it can be piped; nothing on disk has it."""
    code, out, err = said(capsys, "create", "--tenant", "acme", "--label", "trainer", "--expires", "30d")
    text = out.strip()
    secret = text.rpartition("_")[2]

    assert code == 0 and text.startswith("hb_") and "\n" not in text
    assert secret not in err
    assert all(secret.encode() not in file.read_bytes() for file in home.iterdir())
    [row] = listed(capsys)
    assert (row["tenant"], row["tier"], row["scopes"], row["state"]) == ("acme", "pro", "grade,read,run", "good")
    assert secret not in str(row) and row["expires"] != "never"


def test_a_key_in_the_published_shape_tells_its_tier(capsys: pytest.CaptureFixture[str]) -> None:
    """The client reads its fan-out from it."""
    _, out, _ = said(
        capsys, "create", "--tenant", "acme", "--tier", "demo", "--collimate", "--scopes", "read", "--json"
    )
    made = json.loads(out)

    assert made["key"].startswith(f"col_demo_{made['id']}_")
    assert made["scopes"] == "read"


def test_a_revoked_key_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """It stays in the list."""
    said(capsys, "create", "--tenant", "acme")
    [row] = listed(capsys)

    assert said(capsys, "revoke", row["id"])[0] == 0

    assert listed(capsys)[0]["state"] == "revoked"
    assert "revoked" in said(capsys, "list")[1]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("create",), "whose key"),
        (("create", "--tenant", "A B"), "is not a name"),
        (("create", "--tenant", "acme", "--tier", "gold"), "no tier"),
        (("create", "--tenant", "acme", "--scopes", "root"), "no scope root"),
        (("create", "--tenant", "acme", "--scopes", ""), "no scope"),
        (("create", "--tenant", "acme", "--expires", "soon"), "span of time"),
        (("revoke",), "which key"),
    ],
)
def test_what_makes_no_sense_is_asked_wrongly(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], words: str
) -> None:
    """Exit code 2, and nothing is made."""
    code, _, err = said(capsys, *argv)

    assert (code, words in err) == (2, True), err
    assert listed(capsys) == []


def test_a_span_is_hours_days_or_weeks() -> None:
    """And more than nothing."""
    assert (keys.span("12h"), keys.span("30d"), keys.span("2w")) == (43_200, 2_592_000, 1_209_600)
    for text in ("0d", "1", "d", "-1d", "1.5h"):
        with pytest.raises(InvalidRequest):
            keys.span(text)
