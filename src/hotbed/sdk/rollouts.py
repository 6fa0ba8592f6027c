"""One-shot runs: fork, run once, discard."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from hotbed.sdk import calls
from hotbed.sdk.client import AnyClient
from hotbed.sdk.connect import alink_of, link_of
from hotbed.sdk.output_lines import OnOutput
from hotbed.sdk.programs import Determinism, EgressPolicy, Files, Level, Seed, Text, rollout_request
from hotbed.sdk.results import Result


def rollout_once(
    template: str,
    *,
    code: Text | None = None,
    command: Text | None = None,
    commands: Sequence[Sequence[str]] | None = None,
    args: Sequence[str] = (),
    files: Files | None = None,
    stdin: Text | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout_seconds: float = 60.0,
    seed: Seed | None = None,
    determinism: Determinism | None = None,
    clock: Mapping[str, int] | None = None,
    limits: Mapping[str, float] | None = None,
    min_isolation: Level | None = None,
    egress: EgressPolicy | None = None,
    group_id: str = "",
    output_bytes: int | None = None,
    keep_going: bool = False,
    on_output: OnOutput | None = None,
    client: AnyClient | None = None,
) -> Result:
    """Run one thing in a sandbox of its own, forked for it and discarded after.

    Give exactly one of `code` (the template's warm interpreter), `command` (`sh -c`) and `commands` (argument lists, in
    order, stopping at the first failure unless `keep_going`). `files` are written first, exactly as given; `args` are
    the code's `sys.argv[1:]`. The run and all it started are killed after `timeout_seconds`. `seed` is 64 hex
    characters, an int or 32 bytes; the one used is on the result. `clock` is for determinism `full`: `epoch_ns`, where
    it begins, and `step_ns`, what each reading adds. `on_output(stream, data)` is called with each piece of output
    as it comes; stream is 1 or 2. `egress` is what it may reach on the network: nothing, unless its template
    or this says otherwise. Rollouts of one `group_id` are siblings in the ledger, are replayed together by
    `client.replay_group`, and share what is recorded of the network. A program that fails is a `Result`; an exception
    means that we failed.
    """
    request = rollout_request(
        template,
        code=code,
        command=command,
        commands=commands,
        args=args,
        files=files,
        stdin=stdin,
        env=env,
        cwd=cwd,
        timeout_seconds=timeout_seconds,
        seed=seed,
        determinism=determinism,
        clock=clock,
        limits=limits,
        min_isolation=min_isolation,
        egress=egress,
        group_id=group_id,
        output_bytes=output_bytes,
        keep_going=keep_going,
        stream=on_output is not None,
    )
    return link_of(client).send(calls.rollout(request, on_output))


async def arollout_once(
    template: str,
    *,
    code: Text | None = None,
    command: Text | None = None,
    commands: Sequence[Sequence[str]] | None = None,
    args: Sequence[str] = (),
    files: Files | None = None,
    stdin: Text | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout_seconds: float = 60.0,
    seed: Seed | None = None,
    determinism: Determinism | None = None,
    clock: Mapping[str, int] | None = None,
    limits: Mapping[str, float] | None = None,
    min_isolation: Level | None = None,
    egress: EgressPolicy | None = None,
    group_id: str = "",
    output_bytes: int | None = None,
    keep_going: bool = False,
    on_output: OnOutput | None = None,
    client: AnyClient | None = None,
) -> Result:
    """`rollout_once` for asyncio. Cancelling it kills the run."""
    request = rollout_request(
        template,
        code=code,
        command=command,
        commands=commands,
        args=args,
        files=files,
        stdin=stdin,
        env=env,
        cwd=cwd,
        timeout_seconds=timeout_seconds,
        seed=seed,
        determinism=determinism,
        clock=clock,
        limits=limits,
        min_isolation=min_isolation,
        egress=egress,
        group_id=group_id,
        output_bytes=output_bytes,
        keep_going=keep_going,
        stream=on_output is not None,
    )
    link = await alink_of(client)
    return await link.asend(calls.rollout(request, on_output))
