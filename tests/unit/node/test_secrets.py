"""The secrets that a node holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotbed.errors import InvalidRequest
from hotbed.node.secrets import Secrets

HELD = {
    "own": {"hosts": ["a.org"], "value": "value-one"},
    "shared": {"hosts": ["a.org"], "value": "value-two", "tenants": ["t"]},
    "everyones": {"hosts": ["a.org"], "value": "value-three", "tenants": ["*"]},
}


def held(path: Path, text: str, mode: int = 0o600) -> Secrets:
    """A file with these."""
    path.write_text(text)
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
        ('{"own": "value-one', 0o600, "no JSON object"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused(tmp_path: Path, text: str, mode: int, words: str) -> None:
    """Without its content."""
    with pytest.raises(InvalidRequest, match=words) as refused:
        held(tmp_path / "s.json", text, mode).named(["own"])

    assert "value-one" not in str(refused.value)


def test_no_file_holds_nothing(tmp_path: Path) -> None:
    """And nobody who names none looks for it."""
    assert Secrets(tmp_path / "none.json").named([]) == () == Secrets(None).named(())
    with pytest.raises(InvalidRequest, match="holds no secret"):
        Secrets(tmp_path / "none.json").named(["own"])
