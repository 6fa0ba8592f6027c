"""JSON by the short way is JSON: the same texts, the same values, the same refusals."""

from __future__ import annotations

import json
import json.encoder

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.guest import jsontext

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
REFUSED = [b"", b" ", b"{", b"{}{}", b"1 2", b'"', b"\xff", b"\xef\xbb\xbf{}", b"nul", b"[1,]", b"'a'", b'"\n"']


@given(values)
def test_a_value_is_written_as_ever_and_read_again(value: object) -> None:
    """Whoever reads a frame reads plain JSON."""
    text = jsontext.dumps(value)

    assert text.decode() == json.dumps(value, separators=(",", ":"))
    assert jsontext.loads(text) == value


@pytest.mark.parametrize(
    "text", [b" {} ", b'\n{"a": [1, 2.5, null]}\t', b'"\\ud800"', '"\ud800"'.encode("utf-8", "surrogatepass")]
)
def test_what_json_allows_is_read(text: bytes) -> None:
    """Blanks around a value, and lone surrogates: a traceback may hold what a file name held."""
    assert jsontext.loads(text) == json.loads(text.decode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_json_text_is_refused(text: bytes) -> None:
    """By the one exception that callers know."""
    with pytest.raises(ValueError):
        jsontext.loads(text)


def test_depth_without_end_is_refused() -> None:
    """A guest may send anything."""
    with pytest.raises(RecursionError):
        jsontext.loads(b"[" * 200_000)


def test_what_json_does_not_know_is_refused() -> None:
    """As `json.dumps` does."""
    with pytest.raises(TypeError):
        jsontext.dumps({"a": object()})


def test_an_interpreter_without_the_c_encoder_writes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images bring interpreters of their own."""
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    pieces = jsontext.encoder(repr)

    assert "".join(pieces({"a": [1, {2}]}, 0)) == '{"a":[1,"{2}"]}'
