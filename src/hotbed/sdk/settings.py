"""What the client's side reads from the environment, once per `connect()`."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from hotbed.wire.places import runtime_dir

ALIASES = {"collimate_rl": "COLLIMATE", "boltzlabs": "BOLTZLABS"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The environment as the SDK and the command line understand it. An empty variable counts as unset.

    A script that imports us under another name finds us by that name's variables too, where ours are unset.
    """

    url: str | None = None
    api_key: str | None = None
    runtime_dir: str | None = None
    xdg_runtime_dir: str | None = None
    no_color: bool = False
    traceparent: str = ""
    boltz_slots: int = 0

    @classmethod
    def from_environment(cls) -> Settings:
        """Read it now."""
        read = os.environ.get
        return cls(
            url=_first("HOTBED_URL", "BASE_URL"),
            api_key=_first("HOTBED_API_KEY", "API_KEY"),
            runtime_dir=read("HOTBED_RUNTIME_DIR") or None,
            xdg_runtime_dir=read("XDG_RUNTIME_DIR") or None,
            no_color=bool(read("NO_COLOR")),
            traceparent=read("TRACEPARENT") or "",
        )

    @property
    def node_dir(self) -> str:
        """Where this user's node keeps its socket."""
        return self.runtime_dir or runtime_dir(self.xdg_runtime_dir)

    @property
    def node_socket(self) -> str:
        """This user's node answers here, if one runs."""
        return os.path.join(self.node_dir, "node.sock")


def _first(name: str, other: str) -> str | None:
    """A variable of ours, else that of the alias that was imported: never a key that is meant for somebody else."""
    prefixes = [ALIASES[module] for module in ALIASES if hasattr(sys.modules.get(module), "HOTBED_ALIAS")]
    names = (name, *(f"{prefix}_{other}" for prefix in prefixes))
    return next((value for value in map(os.environ.get, names) if value), None)


def child_environment() -> dict[str, str]:
    """The environment that an embedded node inherits."""
    return dict(os.environ)
