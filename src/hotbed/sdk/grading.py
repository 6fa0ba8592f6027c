"""From candidates to rewards: one request per group, whatever its size.

Three outcomes are kept apart (`GradeResult.status`): a score, the candidate's failure (0.0 with a reason), and invalid
(`reward` is None: the spec is broken, or we failed). Invalid ones are raised unless asked otherwise, since a reward of
0 for our own failure would teach the policy something that is not so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from hotbed.errors import GradingFailed, InvalidRequest, InvalidSeed, InvalidSpec
from hotbed.grading.seeds import SeedMode, group_seeds, seed_from_key
from hotbed.grading.verdicts import GradeResult
from hotbed.grading.wire_form import Spec, to_wire
from hotbed.sdk import calls
from hotbed.sdk.client import AnyClient
from hotbed.sdk.connect import alink_of, link_of
from hotbed.sdk.grade_lines import OnProgress
from hotbed.sdk.programs import Determinism, Level, Seed
from hotbed.wire.checks import seed_text
from hotbed.wire.grading import GradeRequest

Candidate = str | Mapping[str, str]
OnInfraError = Literal["raise", "none", "skip"]


def grade(
    code: Candidate,
    spec: Spec,
    *,
    seed: Seed | None = None,
    determinism: Determinism | None = None,
    deadline_s: float | None = None,
    min_isolation: Level | None = None,
    on_infra_error: Literal["raise", "none"] = "raise",
    client: AnyClient | None = None,
) -> GradeResult:
    """Grade one candidate: code, or files by name. Raises `GradingFailed` or `InvalidSpec` when there is no verdict."""
    request = grade_request([code], spec, seeds=[seed], determinism=determinism, deadline_s=deadline_s,
                            min_isolation=min_isolation)  # fmt: skip
    results = link_of(client).send(calls.grade(request))
    return settled(results, _valid(on_infra_error, ("raise", "none")))[0]


async def agrade(
    code: Candidate,
    spec: Spec,
    *,
    seed: Seed | None = None,
    determinism: Determinism | None = None,
    deadline_s: float | None = None,
    min_isolation: Level | None = None,
    on_infra_error: Literal["raise", "none"] = "raise",
    client: AnyClient | None = None,
) -> GradeResult:
    """`grade` for asyncio."""
    request = grade_request([code], spec, seeds=[seed], determinism=determinism, deadline_s=deadline_s,
                            min_isolation=min_isolation)  # fmt: skip
    link = await alink_of(client)
    return settled(await link.asend(calls.grade(request)), _valid(on_infra_error, ("raise", "none")))[0]


def grade_batch(
    codes: Sequence[Candidate],
    spec: Spec,
    *,
    seed: Seed | None = None,
    seeds: Sequence[Seed | None] | None = None,
    seed_mode: SeedMode | None = None,
    base_seed: Seed | None = None,
    determinism: Determinism | None = None,
    concurrency: int | None = None,
    deadline_s: float | None = None,
    group_id: str = "",
    label: str | None = None,
    min_isolation: Level | None = None,
    on_infra_error: OnInfraError = "raise",
    progress: OnProgress | None = None,
    client: AnyClient | None = None,
) -> list[GradeResult]:
    """Grade a group of candidates for one spec; results in the candidates' order.

    Each candidate has a fresh sandbox; the judge draws the same random inputs for all. The candidates' own randomness
    is pinned by one `seed` for all, one by one by `seeds`, or by `seed_mode` (`crn`, `vanilla`, `deterministic`) from
    `base_seed`. What has no verdict after `deadline_s` seconds is invalid. With a `group_id`, asking again gives the
    same results and grades nothing twice. `on_infra_error`: "raise" for an invalid result, "none" to keep it (reward
    None), "skip" to leave it out of the list. `progress(done, total)` is called after each verdict.
    """
    mode = _valid(on_infra_error, ("raise", "none", "skip"))
    given = _seeds(codes, _for_all(seed, len(codes), seeds, seed_mode), seed_mode, base_seed, group_id)
    request = grade_request(codes, spec, seeds=given, determinism=determinism, concurrency=concurrency,
                            deadline_s=deadline_s, group_id=group_id, label=label,
                            min_isolation=min_isolation)  # fmt: skip
    return settled(link_of(client).send(calls.grade(request, progress)), mode)


async def agrade_batch(
    codes: Sequence[Candidate],
    spec: Spec,
    *,
    seed: Seed | None = None,
    seeds: Sequence[Seed | None] | None = None,
    seed_mode: SeedMode | None = None,
    base_seed: Seed | None = None,
    determinism: Determinism | None = None,
    concurrency: int | None = None,
    deadline_s: float | None = None,
    group_id: str = "",
    label: str | None = None,
    min_isolation: Level | None = None,
    on_infra_error: OnInfraError = "raise",
    progress: OnProgress | None = None,
    client: AnyClient | None = None,
) -> list[GradeResult]:
    """`grade_batch` for asyncio."""
    mode = _valid(on_infra_error, ("raise", "none", "skip"))
    given = _seeds(codes, _for_all(seed, len(codes), seeds, seed_mode), seed_mode, base_seed, group_id)
    request = grade_request(codes, spec, seeds=given, determinism=determinism, concurrency=concurrency,
                            deadline_s=deadline_s, group_id=group_id, label=label,
                            min_isolation=min_isolation)  # fmt: skip
    link = await alink_of(client)
    return settled(await link.asend(calls.grade(request, progress)), mode)


def grade_request(
    codes: Sequence[Candidate],
    spec: Spec,
    *,
    seeds: Sequence[Seed | None] | None,
    determinism: Determinism | None = None,
    concurrency: int | None = None,
    deadline_s: float | None = None,
    group_id: str = "",
    label: str | None = None,
    min_isolation: Level | None = None,
) -> GradeRequest:
    """The wire form. Text that is no Unicode cannot be a program: what cannot be sent of it is replaced, and fails."""
    if isinstance(codes, (str, Mapping)):
        raise InvalidRequest("codes is one candidate, not a list of them", hint="use grade, or wrap it in a list")
    texts = tuple(_sendable(code, index) for index, code in enumerate(codes))
    given = () if seeds is None else _one_each(seeds, len(texts))
    return GradeRequest(
        spec=to_wire(spec),
        codes=texts,
        seeds=given if any(seed is not None for seed in given) else (),
        determinism=determinism,
        concurrency=concurrency,
        deadline_s=deadline_s,
        group_id=group_id,
        label=label,
        min_isolation=min_isolation,
    )


def _one_each(seeds: Sequence[Seed | None], count: int) -> tuple[str | None, ...]:
    if isinstance(seeds, (str, bytes)) or not isinstance(seeds, Iterable):
        raise InvalidSeed("seeds is not a list of seeds", hint="one for each candidate; seed= is one for all")
    given = tuple(None if seed is None else seed_text(seed) for seed in seeds)
    if len(given) != count:
        raise InvalidRequest(f"{len(given)} seeds for {count} candidates", hint="give one per candidate, or none")
    return given


def settled(results: list[GradeResult], on_infra_error: OnInfraError) -> list[GradeResult]:
    """Results as the caller wants the invalid ones treated."""
    invalid = [(index, result) for index, result in enumerate(results) if result.reward is None]
    if not invalid or on_infra_error == "none":
        return results
    if on_infra_error == "skip":
        return [result for result in results if result.reward is not None]
    index, first = invalid[0]
    if first.status == "spec_error":
        raise InvalidSpec(first.reason, hint="the spec is at fault, not the candidates")
    raise GradingFailed(
        f"{len(invalid)} of {len(results)} candidates have no verdict; candidate {index}: {first.reason}",
        hint='ask again, or pass on_infra_error="none" to get the others (reward None marks these)',
    )


def _seeds(
    codes: Sequence[Candidate],
    seeds: Sequence[Seed | None] | None,
    mode: SeedMode | None,
    base: Seed | None,
    group_id: str,
) -> Sequence[Seed | None] | None:
    """A group that is asked for again must be the same request, so its seeds come from its name."""
    if seeds is not None and mode is not None:
        raise InvalidRequest("seeds and seed_mode were both given")
    if mode is None and base is not None:
        raise InvalidRequest("base_seed needs a seed_mode", hint="crn, vanilla or deterministic")
    if mode is None:
        return seeds
    if base is None and group_id and mode == "crn":
        base = seed_from_key(group_id, salt="group")
    return group_seeds(len(codes), mode, base)


def _for_all(
    seed: Seed | None, count: int, seeds: Sequence[Seed | None] | None, mode: SeedMode | None
) -> Sequence[Seed | None] | None:
    if seed is None:
        return seeds
    if seeds is not None or mode is not None:
        raise InvalidRequest("seed was given besides seeds or seed_mode", hint="seed is one for all candidates")
    return [seed] * count


def _sendable(code: Candidate, index: int) -> str | dict[str, str]:
    if isinstance(code, str):
        return _clean(code)
    if isinstance(code, Mapping) and all(isinstance(k, str) and isinstance(v, str) for k, v in code.items()):
        return {_clean(name): _clean(text) for name, text in code.items()}
    raise InvalidRequest(
        f"candidate {index} is {type(code).__name__}, not code or files by name",
        hint="extract_code gives None when there is no code: grade an empty string then",
    )


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _valid(mode: OnInfraError, known: tuple[str, ...]) -> OnInfraError:
    if mode not in known:
        raise InvalidRequest(f"on_infra_error is {' or '.join(known)}, not {mode!r}")
    return mode
