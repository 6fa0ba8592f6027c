"""unittest and pytest sources, run where no candidate byte runs."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.grading import CallLimits, UnitTestReward
from tests.support.judging import judge_one

LIMITS = CallLimits(cpu_s=2)
CODE = "class BadAge(ValueError): pass\ndef age(s):\n    if not s.isdigit(): raise BadAge(s)\n    return int(s)\n"
UNITTEST = """
import unittest
from solution import age, BadAge
class T(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.x = "41"
    def test_right(self): self.assertEqual(age(self.x), 41)
    def test_raises(self):
        with self.assertRaises(BadAge): age("x")
    def test_subs(self):
        for s in ("1", "2"):
            with self.subTest(s): self.assertEqual(age(s), int(s))
if __name__ == "__main__":
    unittest.main()
"""
PYTEST = """
import pytest
import solution
from solution import age
@pytest.fixture
def word(): yield "7"
@pytest.fixture(params=["1", "2"])
def digit(request): return request.param
def test_fixture(word): assert age(word) == 7
def test_params(digit): assert age(digit) == int(digit)
@pytest.mark.parametrize("s, n", [("3", 3), pytest.param("4", 4, id="four")])
def test_marks(s, n): assert age(s) == pytest.approx(n)
class TestMore:
    def setup_method(self): self.n = 5
    def test_raises(self):
        with pytest.raises(ValueError, match="x"): solution.age("x")
    def test_setup(self): assert age("5") == self.n
"""


def graded(tests: str, code: Any = CODE, **fields: Any) -> Any:
    return judge_one(UnitTestReward(tests=tests, limits=LIMITS, **fields), code)


def test_unittest_methods_are_checks() -> None:
    """Class fixtures, subtests, the candidate's own exception classes."""
    result = graded(UNITTEST)

    assert (result.reward, result.total, result.status) == (1.0, 3, "ok")
    assert {check.name for check in result.checks} == {"T.test_right", "T.test_raises", "T.test_subs"}


def test_pytest_functions_are_checks() -> None:
    """Fixtures, parameters, classes, raises, approx: in a judge that has no pytest."""
    result = graded(PYTEST)

    assert result.reward == 1.0
    assert [check.name for check in result.checks] == [
        "test_fixture", "test_params[1]", "test_params[2]", "test_marks[3-3]", "test_marks[four]",
        "TestMore::test_raises", "TestMore::test_setup",
    ]  # fmt: skip


@pytest.mark.parametrize("tests", [UNITTEST, PYTEST])
@pytest.mark.parametrize(
    "code",
    [
        "import unittest\ndef age(s): raise unittest.SkipTest('no')\nclass BadAge(Exception): pass",
        "class BadAge(ValueError): pass\ndef age(s): return None",
        "def age(s): return 1",
        "import os\nclass BadAge(ValueError): pass\ndef age(s): os._exit(0)",
        "import sys; sys.exit(0)",
    ],
)
def test_skips_exits_and_wrong_answers_pay_nothing(tests: str, code: str) -> None:
    """The number of official checks stays what it is."""
    result = graded(tests, code)

    assert result.reward == 0.0 and result.total in (3, 7)


@pytest.mark.parametrize(
    "tests",
    [
        "import unittest\nfrom solution import age\nclass T(unittest.TestCase):\n    @unittest.skip('x')\n"
        "    def test_a(self): pass\n    def test_b(self): self.assertEqual(age('1'), 1)\n",
        "import unittest\nfrom solution import age\nclass T(unittest.TestCase):\n    @unittest.expectedFailure\n"
        "    def test_a(self): self.assertEqual(age('1'), 2)\n    def test_b(self): self.assertEqual(age('1'), 1)\n",
        "import pytest\nfrom solution import age\n@pytest.mark.skip\ndef test_a(): pass\n"
        "def test_b(): assert age('1') == 1\n",
        "import pytest\nfrom solution import age\n@pytest.mark.xfail\ndef test_a(): assert 0\n"
        "def test_b(): assert age('1')\n",
        "import pytest\nfrom solution import age\ndef test_a(): pytest.skip()\ndef test_b(): assert age('1') == 1\n",
    ],
)
def test_a_skip_or_expected_failure_of_the_tests_is_not_passed(tests: str) -> None:
    """Positive evidence, or nothing."""
    assert graded(tests, partial=True).reward == 0.5


@pytest.mark.parametrize(
    "tests",
    [
        "import pytest\ndef test_a(): pytest.no_such_thing\npytest.nothing",
        "import pytest\ndef test_a(caplog): pass",
        "import unittest\nclass T(unittest.TestCase): pass",
        "import no_such_module\ndef test_a(): pass",
    ],
)
def test_what_this_judge_cannot_run_is_a_broken_spec(tests: str) -> None:
    """Better than a test that means something else here."""
    assert graded(tests, style="unittest" if "TestCase" in tests else "pytest").status == "spec_error"


def test_a_candidate_of_several_files_is_judged_by_its_module() -> None:
    """What it ships beside it never enters the tests' process."""
    files = {
        "solution.py": "import helper\nage = helper.age\nclass BadAge(ValueError): pass\n",
        "helper.py": "def age(s): return int(s)\n",
        "conftest.py": "raise SystemExit",
        "pytest.py": "raise SystemExit",
    }
    assert graded(UNITTEST, files).passed == 2


def test_tests_that_use_the_candidate_while_collected_say_so() -> None:
    """Then the candidate had a say in the number of checks."""
    tests = (
        "import pytest\nfrom solution import age\n"
        "@pytest.mark.parametrize('n', [age('1')])\ndef test_a(n): assert n == 1\n"
    )
    result = graded(tests)

    assert (result.reward, result.trust) == (1.0, "beside") and "collected" in result.trust_reason
