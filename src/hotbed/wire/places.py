"""Where a user's node and its clients meet when nobody says."""

from __future__ import annotations

import os

SCRATCH = ("/tmp", "/var/tmp")


def runtime_dir(xdg_runtime_dir: str | None) -> str:
    """The directory of the socket and the log: the session's own, else one of this user's where all may write."""
    if xdg_runtime_dir:
        return os.path.join(xdg_runtime_dir, "hotbed")
    scratch = next((place for place in SCRATCH if os.access(place, os.W_OK | os.X_OK)), SCRATCH[0])
    return os.path.join(scratch, f"hotbed-{os.getuid()}")
