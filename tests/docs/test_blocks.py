"""The Python in README and docs runs as printed, top to bottom, one page at a time.

A block with `title="path"` is a file: it is written below the page's working directory. A failure names the page and
its own line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotbed import Client
from tests.docs.pages import PAGES, Block, blocks, name

RUNNABLE = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE, ids=name)
def test_page_runs_as_printed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a newcomer copies works."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}

    try:
        for block in blocks(page):
            if block.title:
                write(tmp_path / block.title, block.text)
            elif block.language == "python":
                run(block, namespace)
    finally:
        close_clients(namespace)


def write(path: Path, text: str) -> None:
    """Put a file where the page says it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run(block: Block, namespace: dict[str, Any]) -> None:
    """Run a block under the page's own name and line numbers."""
    padded = "\n" * (block.line - 1) + block.text
    exec(compile(padded, str(block.page), "exec"), namespace)


def close_clients(namespace: dict[str, Any]) -> None:
    """A page leaves its client to the end of the process, which is not near here."""
    for value in namespace.values():
        if isinstance(value, Client):
            value.close()
