"""Text of packed data."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.guest.judging import plain_text


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=20))
def test_it_writes_what_json_writes(value: Any) -> None:
    """The C encoder that is built once is the one `json.dumps` uses."""
    assert plain_text.dumps(value) == json.dumps(value, separators=(",", ":")).encode()
    assert plain_text.parse(plain_text.dumps(value)) == value


@pytest.mark.parametrize("text", [b"", b" 1", b"1,", b"[1]]", b"\xff"])
def test_anything_but_one_value_is_refused(text: bytes) -> None:
    """No blanks around it, nothing after it."""
    with pytest.raises(plain_text.BadData):
        plain_text.parse(text)
