"""Running test functions without pytest."""

from __future__ import annotations

import types

import pytest

from hotbed.guest.judging import judge_functions, minipytest
from hotbed.guest.judging.judge_checks import SpecError


def outcomes(source: str) -> dict[str, str]:
    module = types.ModuleType("tests")
    module.__dict__["pytest"] = minipytest.module()
    exec(source, module.__dict__)
    return {name: run()[0] for name, run in judge_functions.collect(module, "")}


def test_fixtures_are_made_once_a_test_and_undone_in_reverse() -> None:
    """Requesting each other, with yield, automatic ones first."""
    source = """
log = []
@pytest.fixture
def a():
    log.append("a"); yield 1; log.append("-a")
@pytest.fixture
def b(a):
    log.append("b"); yield a + 1; log.append("-b")
@pytest.fixture(autouse=True)
def always(): log.append("always")
def test_it(b, a): assert (a, b) == (1, 2)
def test_log(): assert log == ["always", "a", "b", "-b", "-a", "always"], log
def test_path(tmp_path): (tmp_path / "x").write_text("y")
"""
    assert outcomes(source) == {"test_it": "passed", "test_log": "passed", "test_path": "passed"}


def test_marks_and_classes() -> None:
    """A fresh instance for each test; skipif by its condition."""
    source = """
class TestC:
    n = 0
    def test_a(self): self.n += 1; assert self.n == 1
    def test_b(self): assert self.n == 0
    @pytest.mark.skipif(False, reason="")
    def test_c(self): pass
    @pytest.mark.skipif(True, reason="")
    def test_d(self): pass
"""
    found = outcomes(source)

    assert [found[f"TestC::test_{x}"] for x in "abcd"] == ["passed", "passed", "passed", "skipped"]


@pytest.mark.parametrize("name", ["caplog", "mocker"])
def test_an_unknown_fixture_is_a_broken_spec(name: str) -> None:
    """Named, before anything runs."""
    with pytest.raises(SpecError, match=name):
        outcomes(f"def test_a({name}): pass")


def test_what_surrounds_a_test_is_done() -> None:
    """For functions and for methods; classes in classes are collected."""
    source = """
log = []
def setup_function(function): log.append(function.__name__)
def teardown_function(): log.append("-")
@pytest.fixture
def named(): log.append("named")
@pytest.mark.usefixtures("named")
def test_one(): assert log == ["test_one", "named"], log
class TestOuter:
    def teardown_method(self): log.append("--")
    def test_two(self): assert log[-1] == "-", log
    class TestInner:
        def test_three(self): assert log[-1] == "--", log
"""
    names = ("test_one", "TestOuter::test_two", "TestOuter::TestInner::test_three")
    assert outcomes(source) == dict.fromkeys(names, "passed")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def setup_module(): pass\ndef test_a(): pass", "setup_module"),
        ("@pytest.mark.usefixtures('nothing')\ndef test_a(): pass", "nothing"),
        ("@pytest.mark.parametrize('a', [1], indirect=True)\ndef test_a(a): pass", "indirect"),
    ],
)
def test_what_is_not_done_makes_the_spec_invalid(source: str, said: str) -> None:
    """A test that means something else here would judge something else."""
    with pytest.raises(SpecError, match=said):
        outcomes(source)
