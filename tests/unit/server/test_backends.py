"""Which backend a node runs on."""

from __future__ import annotations

from hotbed.server.backends import make_backend
from hotbed.server.settings import Settings


def test_the_fake_is_only_used_when_it_is_asked_for() -> None:
    """Nothing is ever run unisolated because isolation failed."""
    assert make_backend(Settings(backend="fake")).name == "fake"
    assert Settings().backend == "fork"
