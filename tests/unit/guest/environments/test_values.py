"""A value comes out of a lane as it went in, or is refused; what an untrusted end writes is never more than data."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.guest import frames
from hotbed.guest.environments import lane, values

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["$", "a", "b"]) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=8,
)


def through_a_lane(value: Any) -> Any:
    """Pack, cut into packets, put together again."""
    inbox, header = lane.Inbox(), None
    for packet in lane.packets(values.pack({"id": 1, "value": value})):
        assert header is None
        header = inbox.take(bytes(packet))
    assert header is not None
    assert header["id"] == 1
    return header["value"]


@given(plain)
def test_json_and_bytes_cross_unchanged(value: Any) -> None:
    """Whatever the keys are, "$" among them."""
    assert through_a_lane(value) == value


@pytest.mark.parametrize("dtype", ["b1", "i1", "u1", "i2", "i4", "i8", "u8", "f2", "f4", "f8", "c16", ">f4"])
def test_numpy_arrays_cross_by_value(dtype: str) -> None:
    """Shape, type and byte order included; the receiver may write to its copy."""
    array = np.arange(6).reshape(2, 3).astype(dtype)

    received = through_a_lane([array])[0]

    assert received.dtype == array.dtype
    assert (received == array).all()
    assert received.flags.writeable


@pytest.mark.parametrize("array", [np.zeros((0, 3)), np.array(2.5, "f4"), np.arange(24.0).reshape(2, 3, 4)[:, ::2]])
def test_odd_shapes_cross_too(array: np.ndarray[Any, Any]) -> None:
    """Empty, without dimensions, not contiguous."""
    received = through_a_lane(array)

    assert received.shape == array.shape
    assert received.tolist() == array.tolist()


def test_numpy_scalars_become_numbers() -> None:
    """An action out of `env.action_space.sample()` must need no conversion."""
    assert through_a_lane([np.int64(3), np.float32(0.5), np.bool_(True)]) == [3, 0.5, True]


def test_without_numpy_an_array_arrives_as_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's image need not have numpy for its client to use it."""
    array = np.arange(6, dtype="f4").reshape(2, 3)
    frame = values.pack({"value": array, "one": np.zeros(()), "none": np.zeros((2, 0))})
    monkeypatch.setitem(sys.modules, "numpy", None)

    header = lane.Inbox().take(frame)

    assert header == {"value": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], "one": 0.0, "none": [[], []]}


@pytest.mark.parametrize("value", [{1, 2}, object(), np.array([object()]), np.zeros(1, "i4,f8"), np.array(["a"])])
def test_what_is_no_data_is_refused_by_name(value: object) -> None:
    """Nothing is pickled, ever."""
    with pytest.raises(TypeError, match="neither JSON nor|no plain numbers"):
        values.pack({"value": value})


def test_a_value_that_contains_itself_is_refused() -> None:
    """Not a crash of the interpreter."""
    value: list[Any] = []
    value.append(value)

    with pytest.raises(ValueError, match="contains itself"):
        values.pack({"value": value})


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["x", "é", b"\0"])
def test_sixty_four_mebibytes_pass_and_one_more_kibibyte_over_the_envelope_does_not(unit: Any) -> None:
    """The limit is on the value, whatever JSON would have made of its characters."""
    size = values.VALUE_LIMIT // len(unit.encode() if isinstance(unit, str) else unit)
    assert through_a_lane(unit * size) == unit * size

    with pytest.raises(ValueError, match="over the limit"):
        values.pack({"value": unit * (size + (128 << 10))})


@pytest.mark.parametrize(
    "tag",
    [
        ["bytes", 0, 99],
        ["bytes", -1, 1],
        ["bytes", 0],
        ["bytes", True, 1],
        ["bytes", 0.0, 1],
        ["pickle", 0, 1],
        ["array", "O", [1], 0, 8],
        ["array", "<f8", [1, -1], 0, 8],
        ["array", "<f8", [1 << 62, 4], 0, 8],
        ["array", "<f8", "11", 0, 8],
        ["array", ["<f8"], [1], 0, 8],
        ["text", 0, 8],
        ["dict", 3],
        [],
        7,
        {"a": 1},
    ],
)
def test_a_tag_that_makes_no_sense_is_a_frame_error(tag: Any) -> None:
    """A worker writes its frames itself."""
    with pytest.raises(frames.FrameError):
        values.restore({"value": {"$": tag}, "spilled": True}, b"\xff" * 8)


def test_a_tag_in_a_frame_without_spilled_values_is_the_users_own_data() -> None:
    """Plain JSON is never interpreted."""
    assert through_a_lane({"$": ["bytes", 0, 0]}) == {"$": ["bytes", 0, 0]}
