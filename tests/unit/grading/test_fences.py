"""Fenced blocks."""

from __future__ import annotations

import pytest

from hotbed.grading.fences import blocks_of


def found(text: str) -> list[tuple[str, str, bool]]:
    return [
        (block.tag, block.code, block.closed) for block in blocks_of(text.split("\n"), lambda code: "(" not in code)
    ]


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("```py\nx\n```", [("py", "x\n", True)]),
        ("````py\nx\n```\n````", [("py", "x\n```\n", True)]),
        ("~~~\n```\nx\n~~~", [("", "```\nx\n", True)]),
        ("```py\nx", [("py", "x\n", False)]),
        ("```\n```", []),
        ("```py title='a'\n\tx\n```  ", [("py", "\tx\n", True)]),
        ("  ```\n    x\n y\n  ```", [("", "  x\ny\n", True)]),
        ("1. ```js\n   x\n   ```", [("js", "x\n", True)]),
        ("```{.python}\nx\n```", [("python", "x\n", True)]),
        ("```a`b\nx\n```\ny\n```", [("", "y\n", True)]),
        ("```py\n(\n```\n)\n```", [("py", "(\n", True)]),
    ],
)
def test_commonmark_as_models_write_it(text: str, blocks: list[tuple[str, str, bool]]) -> None:
    """Length, kind and indentation of fences count."""
    assert found(text)[: len(blocks)] == blocks


def test_the_closer_is_the_first_that_leaves_what_parses() -> None:
    """Fences inside a docstring are content."""
    text = '```py\n"""\n```\n"""\n```\nend\n```x\ny\n```'
    blocks = list(blocks_of(text.split("\n"), lambda code: code.count('"""') % 2 == 0))

    assert blocks[0].code == '"""\n```\n"""\n' and blocks[1].code == "y\n"
