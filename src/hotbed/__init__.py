"""Warm, forkable, seeded sandboxes for RL rollouts, on the machine you already have."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hotbed.errors import (
    AtCapacity,
    BadAction,
    BadEnvDir,
    BadImage,
    BadPath,
    BakeFailed,
    BoltzUnavailable,
    DeadlineExceeded,
    Draining,
    EnvFailed,
    EpisodeDone,
    Error,
    FileDenied,
    FileMissing,
    Forbidden,
    GradingFailed,
    InvalidRequest,
    InvalidSeed,
    InvalidSpec,
    IsolationUnavailable,
    KeyReused,
    NodeUnavailable,
    NoSpace,
    NotAFile,
    NotFound,
    NotReset,
    PoolBusy,
    PoolClosed,
    PortClosed,
    ProtocolError,
    SandboxBusy,
    SandboxFailed,
    SandboxGone,
    SandboxSuspended,
    SnapshotUnsupported,
    TemplateFailed,
    TooLarge,
    Unauthorized,
    UnknownRollout,
    UnknownTemplate,
    WrongActionCount,
)

if TYPE_CHECKING:
    from hotbed.grading import (
        CallLimits,
        Check,
        CheckerReward,
        CommandReward,
        Compare,
        Extraction,
        GradeResult,
        OutputCompare,
        PropertyReward,
        StdioReward,
        UnitTestReward,
        extract,
        extract_code,
        group_seeds,
        seed_from_key,
    )
    from hotbed.pools.branching import Snapshot
    from hotbed.sdk.async_forking import AsyncForkGroup, AsyncSandboxSnapshot
    from hotbed.sdk.async_jobs import AsyncJob
    from hotbed.sdk.async_process import AsyncProcess
    from hotbed.sdk.async_sandbox import AsyncSandbox
    from hotbed.sdk.client import AsyncClient, Client
    from hotbed.sdk.connect import aconnect, connect
    from hotbed.sdk.forking import ForkGroup, SandboxSnapshot
    from hotbed.sdk.grading import agrade, agrade_batch, grade, grade_batch
    from hotbed.sdk.groups import AsyncSandboxGroup, SandboxGroup
    from hotbed.sdk.jobs import Job
    from hotbed.sdk.port_forward import PortForward
    from hotbed.sdk.process import Process
    from hotbed.sdk.results import Result
    from hotbed.sdk.rl_pool import RLPool
    from hotbed.sdk.rollouts import arollout_once, rollout_once
    from hotbed.sdk.sandbox import Sandbox
    from hotbed.sdk.template import Template
    from hotbed.sdk.tracing import traced
    from hotbed.sdk.tunnels import AsyncPortForward
    from hotbed.wire.checks import fresh_seed
    from hotbed.wire.templates import Ready

__version__ = "0.1.0"

# The wire's dataclasses alone take longer to define than `import hotbed` may take, so each of these comes when it is
# first asked for. A test keeps the table, the imports above and `__all__` alike.
_HOMES = {
    "AsyncClient": "hotbed.sdk.client",
    "AsyncForkGroup": "hotbed.sdk.async_forking",
    "AsyncJob": "hotbed.sdk.async_jobs",
    "AsyncPortForward": "hotbed.sdk.tunnels",
    "AsyncProcess": "hotbed.sdk.async_process",
    "AsyncSandbox": "hotbed.sdk.async_sandbox",
    "AsyncSandboxGroup": "hotbed.sdk.groups",
    "AsyncSandboxSnapshot": "hotbed.sdk.async_forking",
    "CallLimits": "hotbed.grading",
    "Check": "hotbed.grading",
    "CheckerReward": "hotbed.grading",
    "Client": "hotbed.sdk.client",
    "CommandReward": "hotbed.grading",
    "Compare": "hotbed.grading",
    "Extraction": "hotbed.grading",
    "ForkGroup": "hotbed.sdk.forking",
    "GradeResult": "hotbed.grading",
    "Job": "hotbed.sdk.jobs",
    "OutputCompare": "hotbed.grading",
    "PortForward": "hotbed.sdk.port_forward",
    "Process": "hotbed.sdk.process",
    "PropertyReward": "hotbed.grading",
    "RLPool": "hotbed.sdk.rl_pool",
    "Ready": "hotbed.wire.templates",
    "Result": "hotbed.sdk.results",
    "Sandbox": "hotbed.sdk.sandbox",
    "SandboxGroup": "hotbed.sdk.groups",
    "SandboxSnapshot": "hotbed.sdk.forking",
    "Snapshot": "hotbed.pools.branching",
    "StdioReward": "hotbed.grading",
    "Template": "hotbed.sdk.template",
    "UnitTestReward": "hotbed.grading",
    "aconnect": "hotbed.sdk.connect",
    "agrade": "hotbed.sdk.grading",
    "agrade_batch": "hotbed.sdk.grading",
    "arollout_once": "hotbed.sdk.rollouts",
    "connect": "hotbed.sdk.connect",
    "extract": "hotbed.grading",
    "extract_code": "hotbed.grading",
    "fresh_seed": "hotbed.wire.checks",
    "grade": "hotbed.sdk.grading",
    "grade_batch": "hotbed.sdk.grading",
    "group_seeds": "hotbed.grading",
    "rollout_once": "hotbed.sdk.rollouts",
    "seed_from_key": "hotbed.grading",
    "traced": "hotbed.sdk.tracing",
}

__all__ = [
    "AsyncClient",
    "AsyncForkGroup",
    "AsyncJob",
    "AsyncPortForward",
    "AsyncProcess",
    "AsyncSandbox",
    "AsyncSandboxGroup",
    "AsyncSandboxSnapshot",
    "AtCapacity",
    "BadAction",
    "BadEnvDir",
    "BadImage",
    "BadPath",
    "BakeFailed",
    "BoltzUnavailable",
    "CallLimits",
    "Check",
    "CheckerReward",
    "Client",
    "CommandReward",
    "Compare",
    "DeadlineExceeded",
    "Draining",
    "EnvFailed",
    "EpisodeDone",
    "Error",
    "Extraction",
    "FileDenied",
    "FileMissing",
    "Forbidden",
    "ForkGroup",
    "GradeResult",
    "GradingFailed",
    "InvalidRequest",
    "InvalidSeed",
    "InvalidSpec",
    "IsolationUnavailable",
    "Job",
    "KeyReused",
    "NoSpace",
    "NodeUnavailable",
    "NotAFile",
    "NotFound",
    "NotReset",
    "OutputCompare",
    "PoolBusy",
    "PoolClosed",
    "PortClosed",
    "PortForward",
    "Process",
    "PropertyReward",
    "ProtocolError",
    "RLPool",
    "Ready",
    "Result",
    "Sandbox",
    "SandboxBusy",
    "SandboxFailed",
    "SandboxGone",
    "SandboxGroup",
    "SandboxSnapshot",
    "SandboxSuspended",
    "Snapshot",
    "SnapshotUnsupported",
    "StdioReward",
    "Template",
    "TemplateFailed",
    "TooLarge",
    "Unauthorized",
    "UnitTestReward",
    "UnknownRollout",
    "UnknownTemplate",
    "WrongActionCount",
    "__version__",
    "aconnect",
    "agrade",
    "agrade_batch",
    "arollout_once",
    "connect",
    "extract",
    "extract_code",
    "fresh_seed",
    "grade",
    "grade_batch",
    "group_seeds",
    "rollout_once",
    "seed_from_key",
    "traced",
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
