"""A template's name is what it is made of."""

from __future__ import annotations

import importlib.metadata

import pytest

from hotbed.runtime import digests
from hotbed.runtime.base import Limits, TemplateSpec


def test_equal_specs_have_one_digest() -> None:
    """So that they share one warm process."""
    assert digests.of_spec(TemplateSpec(name="a", preload=("json",))) == digests.of_spec(
        TemplateSpec(name="a", preload=("json",))
    )


def test_any_difference_is_another_template() -> None:
    """A result names the digest; a replay looks for it."""
    specs = [
        TemplateSpec(name="a"),
        TemplateSpec(name="b"),
        TemplateSpec(name="a", preload=("json",)),
        TemplateSpec(name="a", env=(("A", "1"),)),
        TemplateSpec(name="a", limits=Limits(pids=7)),
    ]

    assert len({digests.of_spec(spec) for spec in specs}) == len(specs)


def test_an_upgraded_package_makes_another_template(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay on another numpy would compare two things at once."""
    spec = TemplateSpec(name="a", preload=("json", "numpy.random"))
    before = digests.of_spec(spec)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.0.0")

    assert digests.versions_of(spec.preload) == {"numpy": "0.0.0"}
    assert digests.of_spec(spec) != before
    assert digests.versions_of(("json", "hotbed.guest")) == {}
