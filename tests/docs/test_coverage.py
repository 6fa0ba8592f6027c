"""What exists is documented: every public name, command and error code."""

from __future__ import annotations

import argparse
import inspect
import re

import pytest

import hotbed
from hotbed.cli.main import make_parser
from hotbed.errors import Error
from tests.docs.pages import ROOT

REFERENCE = ROOT / "docs" / "reference"


def test_python_reference_has_every_public_name() -> None:
    """A name that is exported is a promise, and a promise is written down."""
    page = (REFERENCE / "python.md").read_text()

    assert [name for name in hotbed.__all__ if not re.search(rf"`{name}\b", page)] == []


@pytest.mark.parametrize("name", [name for name in hotbed.__all__ if inspect.isclass(getattr(hotbed, name))])
def test_python_reference_has_every_member(name: str) -> None:
    """A method nobody can read about is a method nobody calls."""
    page = (REFERENCE / "python.md").read_text()
    face = getattr(hotbed, name)
    members = [] if issubclass(face, Error) else [member for member in dir(face) if not member.startswith("_")]

    assert [member for member in members if not re.search(rf"`{member}\b", page)] == []


def test_command_reference_has_every_command_and_option() -> None:
    """One heading per command, and each of its options below it."""
    text = (REFERENCE / "cli.md").read_text()
    general, *sections = re.split(r"^## hotbed (?=\w+$)", text, flags=re.M)
    pages = {section.split("\n", 1)[0]: section + general for section in sections}

    missing = [(c, o) for c, options in commands().items() for o in options if o not in pages.get(c, "")]

    assert missing == []
    assert list(pages) == list(commands())


def commands() -> dict[str, list[str]]:
    """Every command of the parser, with its long options."""
    [choices] = [a.choices for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return {
        name: [
            option for action in parser._actions for option in action.option_strings if option not in ("-h", "--help")
        ]
        for name, parser in choices.items()
    }


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
    ours = [child for child in top.__subclasses__() if child.__module__ == top.__module__]  # a test may have made more
    return [top, *(error for child in ours for error in errors(child))]


def error_row(error: type[Error]) -> str:
    """How the reference begins the row of an error."""
    return f"| `{error.code}` | `{error.__name__}` | {error.status} | {'yes' if error.retryable else 'no'} |"
