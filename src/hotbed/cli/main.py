"""The `hotbed` command.

Exit codes, the same for every command: 0 yes or done, 1 the answer is no, 2 it was asked wrongly, 3 the node (there is
none, it failed, it is full, or the sandbox has ended), 4 this host cannot isolate, 130 interrupted. `hotbed run` gives
the exit code of what it ran.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from hotbed import __version__
from hotbed.cli.commands import (
    audit,
    backup,
    bake,
    demo,
    doctor,
    egress,
    env,
    fork,
    grade,
    keys,
    node,
    ps,
    replay,
    rm,
    rollouts,
    run,
    secrets,
    serve,
    shell,
    show,
    snapshot,
    spec,
    suspend,
    templates,
    usage,
)
from hotbed.cli.output import Output
from hotbed.errors import Error, IsolationUnavailable, SandboxGone

OK, NO, USAGE, NODE, ISOLATION, INTERRUPTED = 0, 1, 2, 3, 4, 130

COMMANDS = (
    *(run, shell, grade, bake, templates, spec),
    *(ps, rm, fork, snapshot, suspend),
    *(rollouts, egress, show, replay, env, doctor, demo, node, serve, keys, secrets, usage, audit, backup),
)
EPILOG = """exit codes:
  0 done, 1 the answer is no, 2 asked wrongly, 3 node trouble, 4 this host cannot isolate, 130 interrupted;
  `hotbed run` and `hotbed shell` pass on the exit code of what they ran"""


def make_parser() -> argparse.ArgumentParser:
    """Every command's arguments."""
    parser = argparse.ArgumentParser(
        prog="hotbed",
        description="Warm, forkable, seeded sandboxes for RL rollouts, on the machine you already have.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"hotbed {__version__}")
    commands = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    for command in COMMANDS:
        made = command.add_parser(commands)
        made.add_argument("--json", action="store_true", help="print data as JSON on standard output")
        made.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = make_parser()
    # argparse cannot take options between a word and a list of words, so what follows -- is cut off first.
    cut = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:cut])
    args.argv = words[cut + 1 :]
    if args.argv and args.verb not in ("run", "shell"):
        parser.error(f"{args.verb} takes nothing after --")
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except Error as error:
        return report(error, Output.of(args))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def report(error: Error, output: Output) -> int:
    """Say what went wrong and give the exit code for it."""
    if output.json:
        output.data(error.to_wire())
    output.talk(f"error: {error.message or error.code}")
    if error.hint:
        output.talk(f"hint: {error.hint}")
    if isinstance(error, IsolationUnavailable):
        return ISOLATION
    # A sandbox may have ended while it was used, and one that never was cannot be told from one that ended long ago.
    wrong = error.status < 500 and not error.retryable and not isinstance(error, SandboxGone)
    return USAGE if wrong else NODE


if __name__ == "__main__":
    sys.exit(main())
