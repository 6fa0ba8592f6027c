"""Fenced blocks of a completion, by CommonMark's rules as far as models follow them.

A line of three or more backticks or tildes opens a block; a line of at least as many of the same, and nothing else,
may close it. Which one does is decided by the content: the first that leaves source which parses, because docstrings
and Markdown in strings hold fences of their own. The search is bounded: few closers per opener, and a budget of bytes
given to the parser for the whole text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

CLOSERS_LIMIT = 24
OPENERS_LIMIT = 400
MARKS_LIMIT = 5000
LOOSE_LIMIT = 2000  # lines of a block that has no proper end

_OPEN = re.compile(r"(?P<lead>[ \t>]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?)(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)\Z")
_OPEN_AFTER_TEXT = re.compile(
    r"(?P<lead>[^`\n]*)(?P<fence>`{3,})(?P<info>[ \t]*(?:python3?|py)[ \t]*)\Z", re.IGNORECASE
)
_BARE = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*\Z")
LINE_LIMIT = 400  # a longer line is no fence


@dataclass(frozen=True, slots=True)
class Block:
    """The lines `first` to `last` (excluded) of one fenced block. `code` lacks the fence's own indentation."""

    tag: str
    code: str
    first: int
    last: int
    closed: bool
    parses: bool


def blocks_of(lines: list[str], parses: Callable[[str], bool]) -> Iterator[Block]:
    """Every fenced block that is not empty, in order."""
    likely = (index for index, line in enumerate(lines) if ("```" in line or "~~~" in line) and len(line) < LINE_LIMIT)
    marks = [index for index in islice(likely, MARKS_LIMIT) if _opening(lines[index])]
    at = 0
    for _ in range(OPENERS_LIMIT):
        position = bisect_right(marks, at - 1)
        opener = next((i for i in marks[position : position + CLOSERS_LIMIT] if _opening(lines[i])), None)
        if opener is None:
            return
        block, at = _block(lines, marks, opener, parses)
        if block is not None:
            yield block


def _opening(text: str) -> re.Match[str] | None:
    return _OPEN.match(text) or _OPEN_AFTER_TEXT.match(text)


def _block(lines: list[str], marks: list[int], opener: int, parses: Callable[[str], bool]) -> tuple[Block | None, int]:
    """The block that a line opens, and the line to go on from."""
    match = _opening(lines[opener])
    assert match is not None
    fence = match["fence"]
    closers = [i for i in marks[bisect_right(marks, opener) :][:CLOSERS_LIMIT] if _closes(lines[i], fence)]
    chosen, code, good = len(lines), "", False
    for closer in closers:
        code = _inside(lines[opener + 1 : closer], match)
        if parses(code):
            chosen, good = closer, True
            break
    else:
        chosen = closers[0] if closers else len(lines)
        code = _inside(lines[opener + 1 : chosen], match)
        good = bool(not closers and parses(code))
        if not good:
            chosen, code, good = _loosely(lines, marks, opener, chosen, parses) or (chosen, code, good)
    if not code.strip():
        return None, chosen + 1 if closers else opener + 1
    words = match["info"].split()
    tag = words[0].lower().strip("{}.").partition(":")[0] if words else ""
    return Block(tag, code, opener + 1, chosen, bool(closers), good), chosen + 1


def _loosely(
    lines: list[str], marks: list[int], opener: int, end: int, parses: Callable[[str], bool]
) -> tuple[int, str, bool] | None:
    """The end of a block whose fence does not stand alone: text follows it, or it follows the last line of the code."""
    match = _opening(lines[opener])
    assert match is not None
    fence = match["fence"]
    for closer in marks[bisect_right(marks, opener) :][:CLOSERS_LIMIT]:
        if closer < end and lines[closer].strip().startswith(fence):
            code = _inside(lines[opener + 1 : closer], match)
            if code.strip() and parses(code):
                return closer, code, True
    for last in range(opener + 1, min(end, opener + LOOSE_LIMIT)):
        text = lines[last].rstrip()
        if text.endswith(fence) and text.strip(fence[0] + " \t>"):
            code = _inside([*lines[opener + 1 : last], text[: -len(fence)]], match)
            if parses(code):
                return last + 1, code, True
    return None


def _closes(text: str, fence: str) -> bool:
    match = _BARE.match(text)
    return match is not None and match[1][0] == fence[0] and len(match[1]) >= len(fence)


def _inside(lines: list[str], opening: re.Match[str]) -> str:
    """The content, without as much indentation as the fence itself has."""
    indent = len(opening["lead"]) if not opening["lead"].strip(" \t-*+>.)0123456789") else 0
    return "\n".join(_unindent(line, indent) for line in lines) + "\n" if lines else ""


def _unindent(text: str, indent: int) -> str:
    kept = 0
    while kept < indent and kept < len(text) and text[kept] in " \t>":
        kept += 1
    return text[kept:]
