"""Code out of a completion, by structure only.

The rules, each from a wrong extraction that somebody reported: line ends are normalised; what comes before the last
`</think>` is not the answer, and a `<think>` that never ends leaves none; fences as in `fences`; tagged blocks before
untagged ones, and among these the last that defines the entry point, else the last that defines anything; without a
fence, the longest run of lines that parses and defines something. Nothing is ever executed, no word in the text changes
the choice (a comment that says `pytest` or `[DONE]` is a comment), and the span says what was taken.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from bisect import bisect_left
from dataclasses import dataclass, replace

from hotbed.grading.fences import Block, blocks_of

_TAGS = {
    "python": ("python", "py", "python3", "py3", "python2", "ipython", "ipython3", "cpython", "sage"),
    "c++": ("c++", "cpp", "cc", "cxx"),
    "javascript": ("javascript", "js", "node"),
    "typescript": ("typescript", "ts"),
    "bash": ("bash", "sh", "shell", "zsh"),
    "rust": ("rust", "rs"),
    "c#": ("c#", "csharp", "cs"),
    "go": ("go", "golang"),
}
_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_LITERAL = re.compile(r"""(?:(?<=[^\w])|^)[rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""")
_LITERAL_WINDOW = 2000
STARTS_LIMIT = 20
ENDS_LIMIT = 60
_TAGS_TRIED = 2000
_START = re.compile(r"(def|class|import|from|async|@|if|for|[A-Za-z_]\w*\s*[:=])")
_NO_ANSWER = "no final answer: the reasoning never ends"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What was found. `span` is (start, end) in the completion; `reason` says why there is no code, or a doubt about
    it."""

    code: str | None
    span: tuple[int, int] | None = None
    reason: str = ""
    language: str = "python"


def extract_code(completion: str, entry: str | None = None) -> str | None:
    """The Python code in a completion, or None. `entry` is the function or class that it must define, if known."""
    return extract(completion, entry=entry).code


def extract(completion: str, *, entry: str | None = None, language: str = "python") -> Extraction:
    """The code in a completion, with its place and a reason."""
    text, removed = _normalised(completion)
    start = _answer_start(text)
    if start is None:
        return Extraction(code=None, reason=_NO_ANSWER, language=language)
    parser = _Parser(len(text), language)
    lines = text[start:].split("\n")
    found = blocks_of(lines, parser.parses)
    blocks = [_undiffed(block, parser) for each in found for block in _unwrapped(each, parser)]
    chosen = _choose(blocks, parser, entry, language) or _bare(lines, blocks, parser, language)
    if chosen is None:
        return Extraction(code=None, reason="no code in the answer", language=language)
    reason = "" if chosen.parses else "the code does not parse"
    first = start + sum(map(len, lines[: chosen.first])) + chosen.first
    last = first + sum(map(len, lines[chosen.first : chosen.last])) + max(0, chosen.last - chosen.first - 1)
    span = (_original(first, removed), _original(last, removed))
    return Extraction(code=chosen.code, span=span, reason=reason, language=language)


def _normalised(text: str) -> tuple[str, list[int]]:
    """The text with \\n line ends, and where, in it, a character is missing."""
    if "\r" not in text:
        return text, []
    removed = [match.start() - index for index, match in enumerate(re.finditer("\r\n", text))]
    return text.replace("\r\n", "\n").replace("\r", "\n"), removed


def _original(offset: int, removed: list[int]) -> int:
    return offset + bisect_left(removed, offset)


def _answer_start(text: str) -> int | None:
    """Where the answer begins, after the reasoning; None where the reasoning never ends."""
    tags = [match for match in _last_tags(text) if not _in_literal(text, match)]
    if not tags:
        return 0
    last = tags[-1]
    return last.end() if last[1] else None


def _last_tags(text: str) -> list[re.Match[str]]:
    if "think" not in text and "THINK" not in text.upper():
        return []
    return list(_THINK.finditer(text))[-_TAGS_TRIED:]


def _in_literal(text: str, tag: re.Match[str]) -> bool:
    """Whether a tag stands in a string literal of its line."""
    start = max(text.rfind("\n", 0, tag.start()) + 1, tag.start() - _LITERAL_WINDOW)
    end = text.find("\n", tag.end(), tag.end() + _LITERAL_WINDOW)
    line = text[start : end if end >= 0 else tag.end() + _LITERAL_WINDOW]
    place = tag.start() - start
    if "'" not in line[:place] and '"' not in line[:place]:
        return False
    return any(match.start() < place < match.end() for match in _LITERAL.finditer(line))


class _Parser:
    """Parses within a budget, so that hostile text costs what honest text costs."""

    def __init__(self, size: int, language: str) -> None:
        self._budget = 6 * size + 100_000
        self._python = language == "python"
        self._last: tuple[str, ast.Module | None] = ("", None)

    def parses(self, code: str) -> bool:
        """Whether it is source of the language, as far as we can tell: for others than Python, anything is."""
        return not self._python or self.tree(code) is not None

    def tree(self, code: str) -> ast.Module | None:
        """The syntax tree, or None."""
        if self._last[0] is code:
            return self._last[1]
        self._budget -= len(code) + 50
        if self._budget < 0:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in somebody's code is no warning of ours
            try:
                tree = ast.parse(code)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                tree = None
        self._last = (code, tree)
        return tree

    def spent(self) -> bool:
        """Whether nothing more will be parsed."""
        return self._budget <= 0

    def names(self, code: str) -> set[str]:
        """What it defines at its top level."""
        tree = self.tree(code)
        found: set[str] = set()
        for node in tree.body if tree else []:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.Assign):
                found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        return found


def _unwrapped(block: Block, parser: _Parser) -> list[Block]:
    """The blocks within a block of Markdown, where some model has put its whole answer into one."""
    if block.tag not in ("markdown", "md"):
        return [block]
    inner = list(blocks_of(block.code.split("\n"), parser.parses))
    return [replace(each, first=each.first + block.first, last=each.last + block.first) for each in inner] or [block]


def _undiffed(block: Block, parser: _Parser) -> Block:
    """A block in diff notation as what it would leave."""
    if block.tag not in ("diff", "patch"):
        return block
    kept = [line for line in block.code.split("\n") if not line.startswith(("-", "@@", "+++", "diff ", "index ", "\\"))]
    code = "\n".join(line[1:] if line.startswith(("+", " ")) else line for line in kept)
    good = parser.parses(code)
    return Block("python" if good else block.tag, code, block.first, block.last, block.closed, good)


def _choose(blocks: list[Block], parser: _Parser, entry: str | None, language: str) -> Block | None:
    tags = _TAGS.get(language, (language,))
    tagged = [block for block in blocks if block.tag in tags]
    untagged = [block for block in blocks if block.tag in ("", "code", "text", "plaintext", "txt")]
    good = [block for block in tagged if block.parses]
    if entry:
        wanted = entry.split(".")[0]
        for group in (good, [block for block in untagged if block.parses]):
            defining = [block for block in group if wanted in parser.names(block.code)]
            if defining:
                return defining[-1]
    if good or tagged:
        return (good or tagged)[-1]
    good = [block for block in untagged if block.parses]
    defining = [block for block in good if parser.names(block.code)]
    best = defining or good or untagged
    return best[-1] if best else None


def _bare(lines: list[str], blocks: list[Block], parser: _Parser, language: str) -> Block | None:
    """Code without a fence of its own: the longest run of lines that parses and defines something."""
    if blocks or language != "python":
        return None
    best: Block | None = None
    index = 0
    for _ in range(STARTS_LIMIT):
        while index < len(lines) and (not _START.match(lines[index]) or _is_fence(lines[index])):
            index += 1
        if index == len(lines) or parser.spent():
            break
        found, index = _longest(lines, index, parser)
        if found is not None and (best is None or len(found.code) > len(best.code)):
            best = found
    return best


def _is_fence(line: str) -> bool:
    return line.lstrip()[:3] in ("```", "~~~")


def _longest(lines: list[str], first: int, parser: _Parser) -> tuple[Block | None, int]:
    """The longest run from a line on, cut back where a new statement begins; and the line to go on from."""
    last = next((i for i in range(first, len(lines)) if _is_fence(lines[i])), len(lines))
    ends = [last] + [i for i in range(last - 1, first, -1) if lines[i][:1] not in ("", " ", "\t")][:ENDS_LIMIT]
    for end in ends:
        if parser.spent():
            break
        code = textwrap.dedent("\n".join(lines[first:end])).rstrip() + "\n"
        tree = parser.tree(code)
        if tree and any(isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) for n in tree.body):
            return Block("", code, first, end, True, True), end
    return None, first + 1
