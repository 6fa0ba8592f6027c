"""What kind of tests a source holds."""

from __future__ import annotations

import pytest

from hotbed.grading.styles import detect


@pytest.mark.parametrize(
    ("tests", "style"),
    [
        ("assert solve([3,1,2]) == [1,2,3]\n", "script"),
        ("METADATA = {}\n\ndef check(candidate):\n    assert candidate(1)\n", "check"),
        ("def check(candidate):\n    assert candidate(1)\ncheck(solve)\n", "script"),
        ("import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n", "unittest"),
        (
            "from unittest import TestCase\nclass T(TestCase): pass\nif __name__ == '__main__':\n    unittest.main()",
            "unittest",
        ),
        ("def test_a():\n    assert solve(1)\n", "pytest"),
        ("import pytest\n@pytest.mark.parametrize('a', [1])\ndef test_a(a): pass", "pytest"),
        ("class TestA:\n    def test_a(self): pass\n", "pytest"),
        ("def test_a():\n    assert solve(1)\ntest_a()\n", "script"),
        ("for x in range(3):\n    assert solve(x)\n", "script"),
    ],
)
def test_by_structure(tests: str, style: str) -> None:
    """No word in a comment or string decides."""
    assert detect(tests + "# pytest unittest check(candidate)\n") == style
