"""What exists is documented: every public name, command and error code."""

from __future__ import annotations

import re

import hotbed
from hotbed.errors import Error
from tests.docs.pages import ROOT

REFERENCE = ROOT / "docs" / "reference"


def test_python_reference_has_every_public_name() -> None:
    """A name that is exported is a promise, and a promise is written down."""
    page = (REFERENCE / "python.md").read_text()

    assert [name for name in hotbed.__all__ if not re.search(rf"`{name}\b", page)] == []


def test_command_reference_has_every_command() -> None:
    """One file per command, one heading per command."""
    page = (REFERENCE / "cli.md").read_text()
    commands = (ROOT / "src" / "hotbed" / "cli" / "commands").glob("[!_]*.py")

    assert [file.stem for file in commands if f"## hotbed {file.stem}" not in page] == []


def test_error_reference_has_every_code() -> None:
    """With its status, since clients in other languages see nothing else."""
    page = (REFERENCE / "errors.md").read_text()

    missing = [row for row in map(error_row, errors(Error)) if row not in page]

    assert missing == []


def test_error_tree_has_every_class() -> None:
    """The drawing at the top of errors.py is the tree."""
    source = (ROOT / "src" / "hotbed" / "errors.py").read_text()
    drawn = re.findall(r"^ +[│├└─ ]*(\w+) +(\w+) +(\d{3})\b", source, re.M)

    assert sorted(drawn) == sorted((e.__name__, e.code, str(e.status)) for e in errors(Error))


def errors(top: type[Error]) -> list[type[Error]]:
    """A class and all below it."""
    return [top, *(error for child in top.__subclasses__() for error in errors(child))]


def error_row(error: type[Error]) -> str:
    """How the reference begins the row of an error."""
    return f"| `{error.code}` | `{error.__name__}` | {error.status} | {'yes' if error.retryable else 'no'} |"
