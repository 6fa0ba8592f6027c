"""Every program that templates may name is where its name says."""

from __future__ import annotations

import importlib

import pytest

from hotbed.guest.places import module_of


@pytest.mark.parametrize("program", ["candidate", "judge", "env_server"])
def test_a_program_is_where_its_name_says(program: str) -> None:
    """A template that cannot import one would fail only when it is first used."""
    assert callable(importlib.import_module(module_of(program)).main)
