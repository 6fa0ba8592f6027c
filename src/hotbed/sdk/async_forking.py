"""Live operations on a sandbox, for asyncio. The twin of `forking.py`; a test keeps them alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from hotbed.errors import Error, NodeUnavailable, NotFound, SandboxGone
from hotbed.sdk import job_calls, live_calls, snapshot_calls
from hotbed.sdk.client import AnyClient
from hotbed.sdk.forking import THREADS, OnInfraError, fork_request, template_of
from hotbed.sdk.living import AsyncLivingSandbox
from hotbed.sdk.programs import Determinism, EgressPolicy, Seed
from hotbed.sdk.results import Result
from hotbed.sdk.transport import Link
from hotbed.wire.checks import require
from hotbed.wire.live import ForkSandbox, SandboxForked, SandboxState, SeedMode
from hotbed.wire.sandboxes import Selector
from hotbed.wire.snapshots import SnapshotRow

if TYPE_CHECKING:
    from hotbed.sdk.async_sandbox import AsyncSandbox

T = TypeVar("T")
Work = Callable[[int, "AsyncSandbox"], Awaitable[T]]
Forking = TypeVar("Forking", bound="AsyncForkingSandbox")


class AsyncSandboxSnapshot:
    """A sandbox's files at one moment. Kept on the node until it is freed, or its lease ends."""

    def __init__(self, row: SnapshotRow, link: Link) -> None:
        self.id = row.id
        self.template = row.template
        self.size = row.size
        self.skipped = row.skipped
        self.take_time_ms = row.take_time_ms
        self._link = link

    async def free(self) -> None:
        """Let go of it; sandboxes that were started with it keep what they have. Idempotent."""
        if not self._link.closed:
            await self._link.asend(snapshot_calls.free(self.id))

    async def __aenter__(self) -> AsyncSandboxSnapshot:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.free()

    def __repr__(self) -> str:
        return f"<AsyncSandboxSnapshot {self.id} of {self.template!r}, {self.size / 2**20:.1f} MiB>"


class AsyncForkingSandbox(AsyncLivingSandbox):
    """What a sandbox can do while it lives, besides running things."""

    @classmethod
    def from_snapshot(
        cls: type[Forking],
        snapshot: AsyncSandboxSnapshot | str,
        *,
        template: str | None = None,
        seed: Seed | None = None,
        determinism: Determinism | None = None,
        egress: EgressPolicy | None = None,
        client: AnyClient | None = None,
        default_timeout: float = 60.0,
    ) -> Forking:
        """A sandbox that starts with a snapshot's files. For a snapshot given by its id, name its template too."""
        pinned: Any = {"seed": seed, "determinism": determinism, "egress": egress}
        sandbox = cls(template_of(snapshot, template), client=client, default_timeout=default_timeout, **pinned)
        sandbox._plan.begin_with(snapshot if isinstance(snapshot, str) else snapshot.id)
        return sandbox

    async def snapshot(self, *, end: bool = False) -> AsyncSandboxSnapshot:
        """Keep its files as they are now; it is held still while they are copied, and goes on.

        With `end` it ends instead, and nothing has to be copied: its own file system becomes the snapshot.
        """
        link = await self._live()
        row = await link.asend(live_calls.snapshot(self._plan.live_id(), end=end))
        if end:
            self._plan.let_go()
        return AsyncSandboxSnapshot(row, link)

    async def fork(self: Forking, n: int = 1, *, labels: Sequence[str] | None = None) -> tuple[Forking, ...]:
        """`n` sandboxes with its files as they are at one instant: all of them, or none."""
        made = await self._fork(fork_request(n, labels=labels))
        return tuple(self._child(made, index) for index in range(n))

    async def fork_group(
        self: Forking,
        n: int,
        *,
        seed_mode: SeedMode = "crn",
        base_seed: Seed | None = None,
        determinism: Determinism | None = None,
        labels: Sequence[str] | None = None,
    ) -> AsyncForkGroup:
        """The same as one group: a seed for each child by `seed_mode`, and one call that ends all of them.

        `crn`: the same for all; `vanilla`: one each; `deterministic`: the same in every group ever.
        """
        request = fork_request(n, seed_mode=seed_mode, base_seed=base_seed, determinism=determinism, labels=labels)
        link = await self._live()
        made = await self._fork(request)
        children: Any = tuple(self._child(made, index) for index in range(n))
        return AsyncForkGroup(made, children, link)

    async def suspend(self) -> SandboxState:
        """Hold it still, until `resume`; what it holds of memory is given back where the kernel can take it."""
        link = await self._live()
        return await link.asend(live_calls.suspend(self._plan.live_id()))

    async def resume(self) -> SandboxState:
        """Let it go on."""
        link = await self._live()
        return await link.asend(live_calls.resume(self._plan.live_id()))

    async def _fork(self, request: ForkSandbox) -> SandboxForked:
        link = await self._live()
        return await link.asend(live_calls.fork(self._plan.live_id(), request))

    def _child(self: Forking, made: SandboxForked, index: int) -> Forking:
        child = type(self)(self._plan.request.template, client=self._client, default_timeout=self._plan.default_timeout)
        child._plan.adopt(made.children[index])
        child._link = self._link
        return child


class AsyncForkGroup:
    """Forks of one sandbox at one instant. Leaving `async with` ends them all, in one call; the parent lives on."""

    def __init__(self, made: SandboxForked, children: tuple[AsyncSandbox, ...], link: Link) -> None:
        self.id = made.group
        self.children = children
        self.seeds = made.seeds
        self.skipped = made.skipped
        self.how = made.how
        self.time_ms = made.time_ms
        self._link = link

    def __len__(self) -> int:
        return len(self.children)

    def __iter__(self) -> Iterator[AsyncSandbox]:
        return iter(self.children)

    def __getitem__(self, index: int) -> AsyncSandbox:
        return self.children[index]

    async def exec_each(
        self, code: str | bytes | None = None, *, on_infra_error: OnInfraError = "raise", **given: Any
    ) -> list[Result | None]:
        """Run the same in each child, at once; results in their order. `given` as for `AsyncSandbox.exec`."""
        return await self.map(lambda _, child: child.exec(code, **given), on_infra_error=on_infra_error)

    async def map(
        self,
        work: Work[T],
        *,
        concurrency: int | None = None,
        on_infra_error: OnInfraError = "raise",
    ) -> list[T | None]:
        """Await `work(index, child)` for each; what it gave, in their order.

        A failure of ours (not of what ran) is raised, once all have ended; or is None with `on_infra_error="none"`.
        """
        import asyncio  # not for those who do not use it

        require(on_infra_error in ("raise", "none"), f"on_infra_error is raise or none, not {on_infra_error!r}")
        turns = asyncio.Semaphore(concurrency or THREADS)

        async def one(index: int) -> T | None:
            async with turns:
                try:
                    return await work(index, self.children[index])
                except Error:
                    if on_infra_error == "none":
                        return None
                    raise

        found = await asyncio.gather(*(one(index) for index in range(len(self))), return_exceptions=True)
        return [_given(item) for item in found]

    async def close(self) -> None:
        """End every child. Idempotent."""
        for child in self.children:
            child._plan.let_go()
        if self._link.closed:
            return
        try:
            await self._link.asend(job_calls.delete_sandboxes(Selector(group=self.id)))
        except (NotFound, SandboxGone, NodeUnavailable):
            pass  # they are gone, or their node is and took them along

    async def __aenter__(self) -> AsyncForkGroup:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncForkGroup {self.id} of {len(self)}>"


def _given(found: T | BaseException) -> T:
    if isinstance(found, BaseException):
        raise found
    return found
