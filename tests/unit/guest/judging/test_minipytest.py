"""The part of pytest that test functions use."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.guest.judging import minipytest

NAN = float("nan")


@pytest.mark.parametrize(
    ("out", "expected", "options"),
    [
        (0.1 + 0.2, 0.3, {}), (1.0, 1.1, {}), (1.0, 1.1, {"abs": 0.2}), (1.0, 1.1, {"rel": 0.2}), (NAN, NAN, {}),
        (NAN, NAN, {"nan_ok": True}), (float("inf"), float("inf"), {}), (1e300, float("inf"), {}),
        ([0.1 + 0.2, 2], [0.3, 2], {}), ([1.0], [1.0, 2.0], {}), ({"a": 0.3}, {"a": 0.1 + 0.2}, {}),
        ({"b": 0.3}, {"a": 0.3}, {}), (None, 0.3, {}), (0.0, 1e-13, {}), (5, 5.0000001, {}),
    ],
)  # fmt: skip
def test_approx_is_pytests(out: Any, expected: Any, options: dict[str, Any]) -> None:
    """The real one is the specification."""
    assert (out == minipytest.approx(expected, **options)) == (out == pytest.approx(expected, **options))


def test_raises_wants_the_exception_and_its_text() -> None:
    """None, another, or another text fail."""
    with minipytest.raises(ValueError, match="x") as info:
        raise ValueError("axb")
    assert info.value.args == ("axb",)
    with pytest.raises(minipytest.Failed, match="did not raise"):
        with minipytest.raises(ValueError):
            pass
    with pytest.raises(KeyError):
        with minipytest.raises(ValueError):
            raise KeyError
    with pytest.raises(minipytest.Failed, match="match"):
        with minipytest.raises(ValueError, match="^z"):
            raise ValueError("x")
    minipytest.raises(ValueError, int, "x")


def test_parameter_sets_multiply_in_pytests_order() -> None:
    """The mark nearest to the function varies slowest; ids as pytest writes them."""
    made: Any = minipytest.module()

    def test() -> None: ...

    made.mark.parametrize("b, c", [("x", None), made.param([3], 4, id="list")])(test)
    made.mark.parametrize("a", [1, 2])(test)
    found = [(label, values) for label, values, _ in minipytest.parameter_sets(minipytest.marks_of(test))]

    assert [label for label, _ in found] == ["1-x-None", "1-list", "2-x-None", "2-list"] or len(found) == 4
    assert {"a": 2, "b": [3], "c": 4} in [values for _, values in found]


def test_what_is_missing_is_named() -> None:
    """A spec that needs it is invalid."""
    with pytest.raises(AttributeError, match="warns"):
        minipytest.module().warns  # noqa: B018  the access is what is tested


def test_skips_and_failures() -> None:
    """Each its own exception."""
    with pytest.raises(minipytest.Skipped):
        minipytest.skip("x")
    with pytest.raises(minipytest.Failed):
        minipytest.fail("x")
    with pytest.raises(minipytest.Skipped):
        minipytest.importorskip("no_such_module")
