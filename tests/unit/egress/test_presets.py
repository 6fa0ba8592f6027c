"""Named lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotbed.egress import presets
from hotbed.errors import InvalidRequest


def test_the_built_in_lists_are_readable_and_have_a_version() -> None:
    """Three of them, each saying what it is for."""
    found = presets.load()

    assert sorted(found) == ["model-hubs", "package-indexes", "rl-leakage"]
    assert all(preset.version and preset.about for preset in found.values())


def test_no_entry_is_there_twice() -> None:
    """A list that grows by hand is kept tidy."""
    for preset in presets.load().values():
        texts = [entry.text for entry in (*preset.allow, *preset.deny)]
        assert len(texts) == len(set(texts)), preset.name


def test_users_add_their_own(tmp_path: Path) -> None:
    """A file in a directory is a preset."""
    body = {"name": "mirror", "version": "1", "about": "ours", "allow": ["mirror.example"]}
    (tmp_path / "mirror.json").write_text(json.dumps(body))

    assert presets.load(tmp_path)["mirror"].allow[0].host == "mirror.example"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "cannot be read"),
        ("[]", "is no object"),
        ('{"version": "1", "about": "x"}', "name is missing"),
        ('{"name": "rl-leakage", "version": "1", "about": "x"}', "already"),
        ('{"name": "x", "version": "1", "about": "x", "deny": ["a b"]}', r"deny\[0\]: 'a b'"),
        ('{"name": "x", "version": "1", "about": "x", "deny": "a"}', "deny is a list"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, named: str) -> None:
    """With what is wrong in it."""
    (tmp_path / "bad.json").write_text(text)

    with pytest.raises(InvalidRequest, match=named) as caught:
        presets.load(tmp_path)

    assert "bad.json" in caught.value.message
