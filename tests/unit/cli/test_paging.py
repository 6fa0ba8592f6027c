"""Lists that come a page at a time."""

from __future__ import annotations

import argparse

from hotbed.cli import paging


def test_options_are_named_as_their_fields_without_id() -> None:
    """And what was not given is not asked for."""
    parser = argparse.ArgumentParser()
    paging.add_options(parser, limit=7, filters=("sandbox_id", "status"))

    given = parser.parse_args(["--sandbox", "x", "--before", "3"])

    assert paging.asked(given, ("sandbox_id", "status")) == {"limit": 7, "before": 3, "sandbox_id": "x"}
    assert paging.asked(parser.parse_args([])) == {"limit": 7, "before": None}
