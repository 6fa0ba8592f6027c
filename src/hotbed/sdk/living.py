"""What the parts of `Sandbox` and `AsyncSandbox` have of the whole: its plan, its client, and a link once it lives."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hotbed.sdk.client import AnyClient
from hotbed.sdk.sandbox_plan import SandboxPlan
from hotbed.sdk.transport import Link


class LivingSandbox(ABC):
    """The part of a `Sandbox` that every other part stands on."""

    _plan: SandboxPlan
    _client: AnyClient | None
    _link: Link | None

    @abstractmethod
    def __init__(self, template: str, *, client: AnyClient | None = None, default_timeout: float = 60.0) -> None:
        """Not forked yet."""

    @abstractmethod
    def _live(self) -> Link:
        """The link to its node, after forking it if that is still to be done."""


class AsyncLivingSandbox(ABC):
    """The part of an `AsyncSandbox` that every other part stands on."""

    _plan: SandboxPlan
    _client: AnyClient | None
    _link: Link | None

    @abstractmethod
    def __init__(self, template: str, *, client: AnyClient | None = None, default_timeout: float = 60.0) -> None:
        """Not forked yet."""

    @abstractmethod
    async def _live(self) -> Link:
        """The link to its node, after forking it if that is still to be done."""
