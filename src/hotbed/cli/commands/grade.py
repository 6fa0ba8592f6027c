"""Grade a file of candidates by a spec."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from hotbed.cli.candidates import Candidate, as_line, read_candidates, read_spec, summary
from hotbed.cli.output import Output, Progress
from hotbed.errors import InvalidRequest
from hotbed.grading import GradeResult, Spec
from hotbed.wire.grading import BATCH_LIMIT


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed grade`."""
    parser = commands.add_parser(
        "grade",
        help="grade a file of candidates",
        description="Grade each line of a jsonl file: {\"code\" or \"completion\" or \"files\", and \"id\", \"group\", "
        "\"seed\" as you like}. One line with the verdict comes out for each, in the same order, then a summary on "
        "standard error, with pass@k where candidates share a group. Exit code 0: every candidate has a reward; "
        "1: at least one has none, because the spec is broken or we failed.",
    )  # fmt: skip
    parser.add_argument("--spec", required=True, metavar="FILE", help="the reward spec, JSON")
    parser.add_argument("--candidates", required=True, metavar="FILE", help="the candidates, one JSON object a line")
    parser.add_argument("--out", metavar="FILE", help="where the verdicts go (standard output)")
    parser.add_argument("--concurrency", type=int, metavar="N", help="how many candidates at once (the node decides)")
    parser.add_argument("--deadline", type=float, metavar="SECONDS", help="what has no verdict by then has no reward")
    parser.add_argument(
        "--determinism",
        metavar="LEVEL",
        help="what is pinned: none, rng or full (the clock too); rng with a seed",
    )
    parser.add_argument("--group-id", default="", metavar="ID", help="asked again with it, nothing is graded twice")
    return parser


def run(args: argparse.Namespace) -> int:
    """Grade them."""
    output = Output.of(args)
    spec = read_spec(args.spec)
    candidates = read_candidates(args.candidates, str(getattr(spec, "entry", "")))
    results = graded(args, spec, candidates)
    lines = [as_line(candidate, result) for candidate, result in zip(candidates, results, strict=True)]
    found = summary(candidates, results)
    write(args.out, lines, output)
    if output.json:
        output.data(found if args.out else {"summary": found, "results": lines})
    else:
        tell(output, found)
    return 1 if found["invalid"] else 0


def graded(args: argparse.Namespace, spec: Spec, candidates: list[Candidate]) -> list[GradeResult]:
    """Every candidate's result. A file longer than one request takes is sent in several."""
    from hotbed import connect, grade_batch

    if args.group_id and len(candidates) > BATCH_LIMIT:
        raise InvalidRequest(f"a group has at most {BATCH_LIMIT} candidates, not {len(candidates)}")
    results: list[GradeResult] = []
    with connect() as client, Progress("grading", len(candidates)) as progress:
        for start in range(0, len(candidates), BATCH_LIMIT):
            part = candidates[start : start + BATCH_LIMIT]
            results += grade_batch(
                [candidate.code for candidate in part],
                spec,
                seeds=[candidate.seed for candidate in part],
                determinism=args.determinism,
                concurrency=args.concurrency,
                deadline_s=args.deadline,
                group_id=args.group_id,
                on_infra_error="none",
                progress=lambda done, total: progress.advance(),
                client=client,
            )
    return results


def write(path: str | None, lines: list[dict[str, Any]], output: Output) -> None:
    """The verdicts, one a line; with `--json` they are part of the one JSON value instead."""
    texts = [json.dumps(line, ensure_ascii=False) for line in lines]
    if path is not None:
        try:
            Path(path).write_text("".join(text + "\n" for text in texts), encoding="utf-8", errors="backslashreplace")
        except OSError as reason:
            raise InvalidRequest(f"{path} cannot be written: {reason.strerror}") from None
    elif not output.json:
        for text in texts:
            output.line(text.encode("utf-8", "backslashreplace").decode())


def tell(output: Output, found: dict[str, Any]) -> None:
    """The summary, for the person at the keyboard."""
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(found["statuses"].items()))
    mean = found["mean_reward"]
    output.talk(f"{found['candidates']} candidates: {statuses}")
    output.talk("no candidate has a reward" if mean is None else f"mean reward {mean:.4g}")
    if found["pass_at"]:
        output.talk(", ".join(f"pass@{k} {value:.4g}" for k, value in found["pass_at"].items()))
    if found["beside"]:
        output.talk(f"{found['beside']} verdicts are not sealed; `trust_reason` of each says why")
    if found["suspected_tamper"]:
        output.talk(f"{found['suspected_tamper']} candidates wrote into the channel of their answers")
