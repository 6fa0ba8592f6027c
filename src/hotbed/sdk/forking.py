"""Live operations on a sandbox, and what they make: snapshots of its files, and groups of forks.

A fork has its parent's files as they were at one instant, in a sandbox of its own; processes, sockets and whatever else
is no file stay behind, and `skipped` names them. Children do not end with their parent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from hotbed.errors import Error, NodeUnavailable, NotFound, SandboxGone
from hotbed.sdk import job_calls, live_calls, snapshot_calls
from hotbed.sdk.client import AnyClient
from hotbed.sdk.living import LivingSandbox
from hotbed.sdk.programs import Determinism, EgressPolicy, Seed
from hotbed.sdk.results import Result
from hotbed.sdk.transport import Link
from hotbed.wire.checks import require, seed_text
from hotbed.wire.live import ForkSandbox, SandboxForked, SandboxState, SeedMode
from hotbed.wire.sandboxes import Selector
from hotbed.wire.snapshots import SnapshotRow

if TYPE_CHECKING:
    from hotbed.sdk.sandbox import Sandbox

T = TypeVar("T")
Work = Callable[[int, "Sandbox"], T]
Forking = TypeVar("Forking", bound="ForkingSandbox")
OnInfraError = Literal["raise", "none"]

THREADS = 24


class SandboxSnapshot:
    """A sandbox's files at one moment. Kept on the node until it is freed, or its lease ends."""

    def __init__(self, row: SnapshotRow, link: Link) -> None:
        self.id = row.id
        self.template = row.template
        self.size = row.size
        self.skipped = row.skipped
        self.take_time_ms = row.take_time_ms
        self._link = link

    def free(self) -> None:
        """Let go of it; sandboxes that were started with it keep what they have. Idempotent."""
        if not self._link.closed:
            self._link.send(snapshot_calls.free(self.id))

    def __enter__(self) -> SandboxSnapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def __repr__(self) -> str:
        return f"<SandboxSnapshot {self.id} of {self.template!r}, {self.size / 2**20:.1f} MiB>"


class ForkingSandbox(LivingSandbox):
    """What a sandbox can do while it lives, besides running things."""

    @classmethod
    def from_snapshot(
        cls: type[Forking],
        snapshot: SandboxSnapshot | str,
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

    def snapshot(self, *, end: bool = False) -> SandboxSnapshot:
        """Keep its files as they are now; it is held still while they are copied, and goes on.

        With `end` it ends instead, and nothing has to be copied: its own file system becomes the snapshot.
        """
        link = self._live()
        row = link.send(live_calls.snapshot(self._plan.live_id(), end=end))
        if end:
            self._plan.let_go()
        return SandboxSnapshot(row, link)

    def fork(self: Forking, n: int = 1, *, labels: Sequence[str] | None = None) -> tuple[Forking, ...]:
        """`n` sandboxes with its files as they are at one instant: all of them, or none."""
        made = self._fork(fork_request(n, labels=labels))
        return tuple(self._child(made, index) for index in range(n))

    def fork_group(
        self: Forking,
        n: int,
        *,
        seed_mode: SeedMode = "crn",
        base_seed: Seed | None = None,
        determinism: Determinism | None = None,
        labels: Sequence[str] | None = None,
    ) -> ForkGroup:
        """The same as one group: a seed for each child by `seed_mode`, and one call that ends all of them.

        `crn`: the same for all; `vanilla`: one each; `deterministic`: the same in every group ever.
        """
        request = fork_request(n, seed_mode=seed_mode, base_seed=base_seed, determinism=determinism, labels=labels)
        link = self._live()
        made = self._fork(request)
        children: Any = tuple(self._child(made, index) for index in range(n))
        return ForkGroup(made, children, link)

    def suspend(self) -> SandboxState:
        """Hold it still, until `resume`; what it holds of memory is given back where the kernel can take it."""
        return self._live().send(live_calls.suspend(self._plan.live_id()))

    def resume(self) -> SandboxState:
        """Let it go on."""
        return self._live().send(live_calls.resume(self._plan.live_id()))

    def _fork(self, request: ForkSandbox) -> SandboxForked:
        link = self._live()
        return link.send(live_calls.fork(self._plan.live_id(), request))

    def _child(self: Forking, made: SandboxForked, index: int) -> Forking:
        child = type(self)(self._plan.request.template, client=self._client, default_timeout=self._plan.default_timeout)
        child._plan.adopt(made.children[index])
        child._link = self._link
        return child


class ForkGroup:
    """Forks of one sandbox at one instant. Leaving `with` ends them all, in one call; the parent lives on."""

    def __init__(self, made: SandboxForked, children: tuple[Sandbox, ...], link: Link) -> None:
        self.id = made.group
        self.children = children
        self.seeds = made.seeds
        self.skipped = made.skipped
        self.how = made.how
        self.time_ms = made.time_ms
        self._link = link

    def __len__(self) -> int:
        return len(self.children)

    def __iter__(self) -> Iterator[Sandbox]:
        return iter(self.children)

    def __getitem__(self, index: int) -> Sandbox:
        return self.children[index]

    def exec_each(
        self, code: str | bytes | None = None, *, on_infra_error: OnInfraError = "raise", **given: Any
    ) -> list[Result | None]:
        """Run the same in each child, at once; results in their order. `given` as for `Sandbox.exec`."""
        return self.map(lambda _, child: child.exec(code, **given), on_infra_error=on_infra_error)

    def map(
        self,
        work: Work[T],
        *,
        concurrency: int | None = None,
        on_infra_error: OnInfraError = "raise",
    ) -> list[T | None]:
        """Call `work(index, child)` for each, in threads; what it gave, in their order.

        A failure of ours (not of what ran) is raised, once all have ended; or is None with `on_infra_error="none"`.
        """
        require(on_infra_error in ("raise", "none"), f"on_infra_error is raise or none, not {on_infra_error!r}")

        def one(index: int) -> T | None:
            try:
                return work(index, self.children[index])
            except Error:
                if on_infra_error == "none":
                    return None
                raise

        with ThreadPoolExecutor(concurrency or min(len(self), THREADS), thread_name_prefix="hotbed-group") as threads:
            return list(threads.map(one, range(len(self))))

    def close(self) -> None:
        """End every child. Idempotent."""
        for child in self.children:
            child._plan.let_go()
        if self._link.closed:
            return
        try:
            self._link.send(job_calls.delete_sandboxes(Selector(group=self.id)))
        except (NotFound, SandboxGone, NodeUnavailable):
            pass  # they are gone, or their node is and took them along

    def __enter__(self) -> ForkGroup:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ForkGroup {self.id} of {len(self)}>"


def fork_request(
    n: int, *, base_seed: Seed | None = None, labels: Sequence[str] | None = None, **given: Any
) -> ForkSandbox:
    """The wire form of a fork."""
    return ForkSandbox(
        count=n,
        labels=tuple(labels) if labels is not None else None,
        base_seed=None if base_seed is None else seed_text(base_seed),
        **given,
    )


def template_of(snapshot: object, template: str | None) -> str:
    """Of which template a sandbox with a snapshot is. Raises `InvalidRequest`."""
    found = template or getattr(snapshot, "template", None)
    require(isinstance(found, str), "name the template of a snapshot that is given by its id")
    return str(found)
