"""Which backend a node runs on. Made before the event loop starts: see serving.py."""

from __future__ import annotations

from hotbed.runtime.backends.fake import FakeBackend
from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.base import Backend
from hotbed.server.settings import Settings


def make_backend(settings: Settings) -> Backend:
    """The backend that the settings name. Raises `IsolationUnavailable`."""
    if settings.backend == "fake":
        return FakeBackend()
    return ForkBackend(ForkSettings(spares=settings.spares, images=settings.home and f"{settings.home}/images"))
