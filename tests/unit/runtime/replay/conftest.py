"""A supervisor for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.runtime.replay.supervised import Supervised, supervised


@pytest.fixture
def node() -> Iterator[Supervised]:
    """A supervisor process, as its node sees it."""
    with supervised() as one:
        yield one
