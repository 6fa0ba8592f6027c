"""JSON in and out."""

from __future__ import annotations

import pytest

from hotbed.errors import InvalidRequest, ProtocolError
from hotbed.sdk.bodies import json_body, read_json


def test_text_travels_as_utf8() -> None:
    """A third of the bytes of escapes."""
    assert json_body({"code": "é"}) == '{"code":"é"}'.encode()


def test_text_that_is_not_unicode_is_refused_before_it_travels() -> None:
    """A lone surrogate is what a wrong decoding leaves behind."""
    with pytest.raises(InvalidRequest, match="bytes instead"):
        json_body({"code": "\udc80"})


def test_answer_that_is_not_json_is_named() -> None:
    """With its beginning."""
    with pytest.raises(ProtocolError, match="<html>"):
        read_json(b"<html>")


def test_empty_answer_is_an_empty_object() -> None:
    """Some answers have nothing to say."""
    assert read_json(b"") == {}
