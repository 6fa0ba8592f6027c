"""Strangers' text, made fit to be looked at."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from hotbed.dashboard.text import HEAD, TAIL, excerpt, short, visible


def test_what_fits_is_shown_whole() -> None:
    """Also what is not UTF-8."""
    assert excerpt(b"a\nb").head == "a\nb"
    assert excerpt(b"\xff\xfe").head == "��"
    assert excerpt(b"").size == 0


def test_what_is_long_is_shown_by_its_ends() -> None:
    """The first error and the last word; nobody scrolls through 16 MiB."""
    found = excerpt(b"begin" + b"x" * (16 << 20) + b"end")

    assert (found.head[:5], found.tail[-3:]) == ("begin", "end")
    assert (len(found.head), len(found.tail)) == (HEAD, TAIL)
    assert found.cut + HEAD + TAIL == found.size == (16 << 20) + 8


def test_terminal_escapes_and_turned_text_are_to_be_seen() -> None:
    """`gpj.exe` with a right-to-left mark before it reads `exe.jpg`."""
    assert visible("\x1b[31mred\x00\u202egpj.exe\x85") == "‹1B›[31mred‹00›‹U+202E›gpj.exe‹85›"
    assert visible("a\tb\r\nc\rd") == "a\tb\nc‹0D›d"


@given(st.text())
def test_nothing_invisible_is_left(text: str) -> None:
    """Of the characters that control a terminal or the direction of text."""
    left = [char for char in visible(text) if unicodedata.category(char) == "Cc" and char not in "\t\n"]

    assert left == []
    assert not any(char in "\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069" for char in visible(text))


def test_a_name_is_one_short_line() -> None:
    """A label of a megabyte must not be a page of a megabyte."""
    assert short("x" * 1_000_000) == "x" * 79 + "…"
    assert short("a\nb") == "a␤b"
    assert short("abc", 2) == "a…"
