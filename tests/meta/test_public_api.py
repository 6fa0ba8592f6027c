"""The public surface is a list, and the list is the truth."""

from __future__ import annotations

import inspect
import re
from types import ModuleType

import pytest

import hotbed

#: What the file itself imports to do its work.
MACHINERY = {"Any", "TYPE_CHECKING", "annotations", "import_module"}
PAIRS = [name for name in hotbed.__all__ if f"Async{name}" in hotbed.__all__]


def test_public_names_are_sorted() -> None:
    """A sorted list has one place for each new name."""
    assert list(hotbed.__all__) == sorted(hotbed.__all__)


def test_public_names_equal_the_namespace() -> None:
    """Nothing is public by accident, and nothing listed is missing."""
    namespace = {name for name in dir(hotbed) if not name.startswith("_")}
    reachable = {name for name in namespace if not isinstance(getattr(hotbed, name), ModuleType)}

    assert reachable - MACHINERY == set(hotbed.__all__) - {"__version__"}


def test_public_names_resolve_and_say_what_they_are() -> None:
    """Each public class and function has a docstring."""
    things = {name: getattr(hotbed, name) for name in hotbed.__all__}

    silent = [name for name, thing in things.items() if callable(thing) and not inspect.getdoc(thing)]

    assert silent == []


@pytest.mark.parametrize("name", PAIRS)
def test_sync_and_async_faces_are_identical(name: str) -> None:
    """A method that one face has and the other lacks, or takes otherwise, is a bug in one of them."""
    sync, asynchronous = surface(getattr(hotbed, name)), surface(getattr(hotbed, f"Async{name}"))

    assert sync == asynchronous


def surface(face: type) -> dict[str, str]:
    """Public methods and their signatures, with the names of the asynchronous face made plain."""
    members = inspect.getmembers(face, callable)
    return {name: plain(str(inspect.signature(member))) for name, member in members if not name.startswith("_")}


def plain(signature: str) -> str:
    """A signature without the words that must differ between the faces."""
    return re.sub(r"\bAsync(?=[A-Z])", "", signature)
