"""Lists that come a page at a time, newest first: their options, and a page of one on the screen."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from hotbed.cli.output import Output


def add_options(parser: argparse.ArgumentParser, *, limit: int, filters: Iterable[str] = ()) -> None:
    """How many, from where, and which: a filter is named as its field, without `_id`."""
    parser.add_argument("--limit", type=_count, default=limit, metavar="N", help=f"how many lines (default: {limit})")
    parser.add_argument("--before", type=int, metavar="SEQ", help="only lines before this one: the next page")
    for name in filters:
        option = f"--{name.removesuffix('_id')}"
        parser.add_argument(option, dest=name, metavar="TEXT", help=f"only where {name} is this")


def _count(text: str) -> int:
    """A number of lines."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text!r}")
    return int(text)


def asked(args: argparse.Namespace, filters: Iterable[str] = ()) -> dict[str, Any]:
    """What was given of them."""
    where = {name: value for name in filters if (value := getattr(args, name)) is not None}
    return {"limit": args.limit, "before": args.before, **where}


def show(output: Output, page: Any, head: Sequence[str], rows: Iterable[Any], cells: Callable[[Any], Any]) -> int:
    """The page as a table, or as JSON; an exit status."""
    if output.json:
        output.data(asdict(page))
        return 0
    output.table(head, [cells(row) for row in rows])
    if page.next is not None:
        output.talk(f"more with --before {page.next}")
    return 0
