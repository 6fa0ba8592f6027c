"""Numpy arrays by value."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from hotbed.guest.judging import plain, plain_arrays


@pytest.mark.parametrize("dtype", ["?", "i1", "<i4", ">i4", "u8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0)])
def test_an_array_crosses(dtype: str, shape: tuple[int, ...]) -> None:
    """Numbers of every kind and shape, also where there is no numpy to read them."""
    array = numpy.arange(6, dtype="f8").astype(dtype)[: int(numpy.prod(shape))].reshape(shape)
    found = plain.decode(plain.encode(array))

    assert found.dtype == array.dtype and numpy.array_equal(found, array)


def test_without_numpy_it_is_nested_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge need not have numpy."""
    text = plain.encode([numpy.array([[1, 2], [3, 4]]), numpy.array([1.5]), numpy.array(2j)])
    monkeypatch.setattr(plain_arrays, "_numpy", lambda: None)

    assert plain.decode(text) == [[[1, 2], [3, 4]], [1.5], 2j]


def test_scalars_are_plain_numbers() -> None:
    """`numpy.int64(3)` is what sum() of an array gives, and means 3."""
    found = plain.decode(plain.encode([numpy.int64(3), numpy.float32(0.5), numpy.bool_(True)]))

    assert [(type(value), value) for value in found] == [(int, 3), (float, 0.5), (bool, True)]


@pytest.mark.parametrize("parts", [["<f8", [1], "AA=="], ["<f8", [-1], ""], ["<f8", "x", ""], ["<O8", [1], ""]])
def test_shape_and_bytes_must_agree(parts: list[Any]) -> None:
    """Nothing is built from a description that lies."""
    with pytest.raises(ValueError):
        plain_arrays.unpack(parts)
