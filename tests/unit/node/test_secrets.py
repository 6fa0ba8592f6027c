"""The secrets that a node holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotbed.errors import InvalidRequest, NotSupported
from hotbed.node.secrets import Secrets

HELD = {
    "own": {"hosts": ["a.org"], "value": "value-one"},
    "shared": {"hosts": ["a.org"], "value": "value-two", "tenants": ["t"]},
    "everyones": {"hosts": ["a.org"], "value": "value-three", "tenants": ["*"]},
}


def held(path: Path, text: str, mode: int = 0o600) -> Secrets:
    """A file with these."""
    path.write_text(text, encoding="latin-1")
    path.chmod(mode)
    return Secrets(path)


def test_a_tenant_may_name_what_lists_it(tmp_path: Path) -> None:
    """The node's own user may name all; to others the rest does not exist."""
    found = held(tmp_path / "s.json", json.dumps(HELD))

    assert [item.value for item in found.named(["own", "shared"])] == ["value-one", "value-two"]
    assert [item.name for item in found.named(["shared", "everyones"], "t")] == ["shared", "everyones"]
    with pytest.raises(InvalidRequest, match="holds no secret 'own'") as refused:
        found.named(["own"], "t")
    assert str(tmp_path) not in str(refused.value.hint)


def test_a_changed_value_is_used_from_then_on(tmp_path: Path) -> None:
    """Nothing is to be restarted for a new token."""
    found = held(tmp_path / "s.json", json.dumps(HELD))
    held(tmp_path / "s.json", json.dumps({"own": {**HELD["own"], "value": "value-new"}}))

    assert found.named(["own"])[0].value == "value-new"


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        (json.dumps(HELD), 0o640, "not this node's alone to read"),
        ("[]", 0o600, "no JSON object"),
        ('{"own": "value-one', 0o600, "no JSON at line 1, column 9"),
        ('{"own": {"value": "value-one", "value": "x"}}', 0o600, "'value' stands twice"),
        (b'{"own": "value-one\xff"}'.decode("latin-1"), 0o600, "not UTF-8"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused(tmp_path: Path, text: str, mode: int, words: str) -> None:
    """Without its content."""
    with pytest.raises(InvalidRequest, match=words) as refused:
        held(tmp_path / "s.json", text, mode).named(["own"])

    assert "value-one" not in str(refused.value)


def test_a_tenant_is_not_told_what_is_wrong_with_the_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its operator is."""
    found = held(tmp_path / "s.json", "[]")

    with pytest.raises(NotSupported, match="cannot be read") as refused:
        found.named(["shared"], "t")

    assert str(tmp_path) not in str(refused.value)
    assert "no JSON object" in caplog.text


def test_every_mistake_is_found_at_once(tmp_path: Path) -> None:
    """So that nobody mends them one by one."""
    broken = {
        "good": {"hosts": ["a.org"], "value": "value-one"},
        "no value": {"hosts": ["a.org"], "value": "value-one"},
        "nowhere": {"hosts": [], "value": "value-one"},
        "swapped": {"hosts": ["a.org"], "value": "x", "header": "value-one value-two"},
        "host": {"hosts": ["https://a.org/"], "value": "value-one"},
    }

    found = held(tmp_path / "s.json", json.dumps(broken), 0o644).mistakes()

    words = ("chmod 600", "'no value'", "secret 'nowhere'", "secret 'swapped'", "secret 'host'")
    assert len(found) == 5 and all(word in line for word, line in zip(words, found, strict=True))
    assert "value-one" not in str(found)


def test_no_file_holds_nothing(tmp_path: Path) -> None:
    """And nobody who names none looks for it."""
    assert Secrets(tmp_path / "none.json").named([]) == () == Secrets(None).named(())
    with pytest.raises(InvalidRequest, match="holds no secret"):
        Secrets(tmp_path / "none.json").named(["own"])
