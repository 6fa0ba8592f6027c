"""Run one thing in a fresh sandbox and pass on its output and exit code."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from hotbed.cli.output import Output
from hotbed.errors import InvalidRequest

TIMED_OUT, KILLED = 124, 137  # what `timeout` and a shell say
SIGNALED = 128
SEED_CHARACTERS = 64
_DIGITS = 80  # of a number, at least one more than the largest seed has; Python reads 4300 at most
USAGE = """hotbed run TEMPLATE [option ...] -- CMD [ARG ...]
       hotbed run TEMPLATE --code FILE [option ...] [-- ARG ...]"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """`hotbed run TEMPLATE -- CMD` and `hotbed run TEMPLATE --code FILE`."""
    parser = commands.add_parser(
        "run",
        help="run one thing in a fresh sandbox",
        usage=USAGE,
        description="Fork a template, run a command or a Python file in it, discard it.",
        epilog="The exit code is the program's: 128+N after signal N, 124 after a timeout, 137 when it was killed for "
        "using more memory, processes, disk or output than it may. 2, 3 and 4 may also be ours: --json tells.",
    )
    parser.add_argument("template", metavar="TEMPLATE", help="what to fork: python, python-numpy, or one of yours")
    parser.add_argument(
        "--code", metavar="FILE", help="run this Python file in the warm interpreter; - is standard input"
    )
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="kill it after this long (60)")
    parser.add_argument("--seed", help="64 hex characters, or a number, that pins its randomness")
    parser.add_argument(
        "--determinism", metavar="LEVEL", help="what is pinned: none, rng or full (the clock too); rng with a seed"
    )
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="set a variable; repeatable")
    parser.add_argument("--cwd", metavar="DIR", help="start it here (/work)")
    parser.add_argument("--stdin", action="store_true", help="give it our standard input")
    parser.add_argument(
        "--egress", metavar="POLICY", help='what it may reach: open, a preset, or JSON such as {"allow": ["pypi.org"]}'
    )
    return parser


def policy(text: str | None) -> Any:
    """A policy as it was typed."""
    if text is None or not text.lstrip().startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidRequest(f"--egress is no JSON: {error}") from None


def given_seed(text: str | None) -> str | int | None:
    """A seed as a word: a number where it is none of 64 characters."""
    if text is None or not (text.isascii() and text.isdecimal()) or len(text) == SEED_CHARACTERS:
        return text
    return int(text) if len(text) < _DIGITS else text


def run(args: argparse.Namespace) -> int:
    """Run it."""
    from hotbed import connect, rollout_once

    output = Output.of(args)
    given = program(args)
    with connect() as client:
        result = rollout_once(
            args.template,
            **given,
            env=variables(args.env),
            cwd=args.cwd,
            timeout_seconds=args.timeout,
            seed=given_seed(args.seed),
            determinism=args.determinism,
            egress=policy(args.egress),
            on_output=None if output.json else output.raw,
            client=client,
        )
    if output.json:
        output.data(as_data(result))
    elif result.status not in ("ok", "exit", "signal"):
        output.talk(f"killed: {result.status}")
    return exit_code(result.status, result.exit_code, result.signal)


def program(args: argparse.Namespace) -> dict[str, Any]:
    """What to run, as `rollout_once` takes it."""
    if args.code is None:
        if not args.argv:
            raise InvalidRequest("nothing to run", hint=f"hotbed run {args.template} -- CMD, or --code FILE")
        given: dict[str, Any] = {"commands": [args.argv]}
    elif args.code == "-":
        if args.stdin:
            raise InvalidRequest("--code - and --stdin both want standard input", hint="put the code into a file")
        given = {"code": sys.stdin.buffer.read(), "args": args.argv}
    else:
        given = {"code": read_code(args.code), "args": args.argv}
    if args.stdin:
        given["stdin"] = sys.stdin.buffer.read()
    return given


def read_code(path: str) -> bytes:
    """The bytes of a local file."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as reason:
        raise InvalidRequest(f"{path} cannot be read: {reason.strerror}") from None


def variables(words: Sequence[str], *, option: str = "--env") -> dict[str, str]:
    """NAME=VALUE words as a mapping."""
    for word in words:
        if "=" not in word:
            raise InvalidRequest(f"{option} {word!r} has no value", hint="give NAME=VALUE")
    return dict(word.split("=", 1) for word in words)


def as_data(result: Any) -> dict[str, Any]:
    """A result for `--json`."""
    names = [name for name in result.__dataclass_fields__ if name not in ("order", "stdout_b64", "stderr_b64")]
    return {name: getattr(result, name) for name in names}


def exit_code(status: str, code: int, signal: int | None) -> int:
    """What a shell would say of it."""
    if status == "timeout":
        return TIMED_OUT
    if status == "signal" and signal is not None:
        return SIGNALED + signal
    return code if status in ("ok", "exit") else KILLED
