"""Warm, forkable, seeded sandboxes for RL rollouts, on the machine you already have."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hotbed.errors import (
    AtCapacity,
    BadAction,
    BadEnvDir,
    BadPath,
    BoltzUnavailable,
    DeadlineExceeded,
    Draining,
    EnvFailed,
    EpisodeDone,
    Error,
    FileDenied,
    FileMissing,
    Forbidden,
    InvalidRequest,
    InvalidSeed,
    IsolationUnavailable,
    NodeUnavailable,
    NoSpace,
    NotAFile,
    NotFound,
    NotReset,
    PoolBusy,
    PoolClosed,
    ProtocolError,
    SandboxFailed,
    SandboxGone,
    TemplateFailed,
    TooLarge,
    Unauthorized,
    UnknownTemplate,
    WrongActionCount,
)

if TYPE_CHECKING:
    from hotbed.sdk.async_sandbox import AsyncSandbox
    from hotbed.sdk.client import AsyncClient, Client
    from hotbed.sdk.connect import aconnect, connect
    from hotbed.sdk.results import Result
    from hotbed.sdk.rl_pool import RLPool
    from hotbed.sdk.rollouts import arollout_once, rollout_once
    from hotbed.sdk.sandbox import Sandbox
    from hotbed.wire.checks import fresh_seed

__version__ = "0.1.0"

# The wire's dataclasses alone take longer to define than `import hotbed` may take, so each of these comes when it is
# first asked for. A test keeps the table, the imports above and `__all__` alike.
_HOMES = {
    "AsyncClient": "hotbed.sdk.client",
    "AsyncSandbox": "hotbed.sdk.async_sandbox",
    "Client": "hotbed.sdk.client",
    "RLPool": "hotbed.sdk.rl_pool",
    "Result": "hotbed.sdk.results",
    "Sandbox": "hotbed.sdk.sandbox",
    "aconnect": "hotbed.sdk.connect",
    "arollout_once": "hotbed.sdk.rollouts",
    "connect": "hotbed.sdk.connect",
    "fresh_seed": "hotbed.wire.checks",
    "rollout_once": "hotbed.sdk.rollouts",
}

__all__ = [
    "AsyncClient",
    "AsyncSandbox",
    "AtCapacity",
    "BadAction",
    "BadEnvDir",
    "BadPath",
    "BoltzUnavailable",
    "Client",
    "DeadlineExceeded",
    "Draining",
    "EnvFailed",
    "EpisodeDone",
    "Error",
    "FileDenied",
    "FileMissing",
    "Forbidden",
    "InvalidRequest",
    "InvalidSeed",
    "IsolationUnavailable",
    "NoSpace",
    "NodeUnavailable",
    "NotAFile",
    "NotFound",
    "NotReset",
    "PoolBusy",
    "PoolClosed",
    "ProtocolError",
    "RLPool",
    "Result",
    "Sandbox",
    "SandboxFailed",
    "SandboxGone",
    "TemplateFailed",
    "TooLarge",
    "Unauthorized",
    "UnknownTemplate",
    "WrongActionCount",
    "__version__",
    "aconnect",
    "arollout_once",
    "connect",
    "fresh_seed",
    "rollout_once",
]


def __getattr__(name: str) -> Any:
    """A public name on first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hotbed' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return __all__
