"""Loading a candidate's source."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

from hotbed.guest.judging import loading


@pytest.fixture(autouse=True)
def kept_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "solution", raising=False)
    monkeypatch.chdir(tmp_path)


def test_prelude_names_are_there_and_the_source_can_be_read() -> None:
    """LeetCode's code takes `List` for granted."""
    program = loading.Program(code="def f(x: List[int]):\n    return 1\n", prelude="from typing import *")
    module = program.load()

    assert module.f([]) == 1 and "return 1" in inspect.getsource(module.f)


def test_further_files_can_be_imported() -> None:
    """A candidate may be several modules."""
    program = loading.Program(code="import helper\nx = helper.y\n", files=(("helper.py", "y = 3\n"),))

    assert program.load().x == 3


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x"])
def test_files_stay_below_the_working_directory(path: str) -> None:
    """Whatever the candidate calls them."""
    with pytest.raises(ValueError):
        loading.write_files(((path, ""),))


def test_a_dotted_name_goes_through_a_new_instance() -> None:
    """`Solution.longest` is a method of a fresh Solution."""
    module = loading.Program(
        code="class S:\n    n = 0\n    def m(self):\n        self.n += 1\n        return self.n\n"
    ).load()

    assert loading.resolve(module, "S.m")() == 1 and loading.resolve(module, "S.m")() == 1
    with pytest.raises(NameError, match="'f'"):
        loading.resolve(module, "f")


def test_a_program_is_read_from_its_frame() -> None:
    """Sizes in the header, bytes in the body."""
    header = {"code": 2, "prelude": 1, "files": [["a", 1]], "module": "m", "names": ["f"], "cpu_s": 1.0}
    program = loading.Program.parse(header, b"ccpf")

    assert (program.code, program.prelude, program.files) == ("cc", "p", (("a", "f"),))
