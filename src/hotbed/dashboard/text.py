"""Text that strangers chose, made fit to be looked at: bounded, and with nothing in it that the reader cannot see.

The templates escape everything. What is left to do is length, and characters that would show something else than what
is there: control characters (a terminal's escapes among them) and those that turn the direction of the text.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD = 48 << 10
TAIL = 16 << 10
SHORT = 80

_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
_SHOWN: dict[int, str] = {
    **{code: f"‹{code:02X}›" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A)},
    **{code: f"‹U+{code:04X}›" for code in _TURNING},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """The beginning and the end of something long. `cut` bytes between them are left out."""

    head: str
    tail: str
    cut: int
    size: int


def excerpt(data: bytes, *, head: int = HEAD, tail: int = TAIL) -> Excerpt:
    """What is shown of some bytes."""
    if len(data) <= head + tail:
        return Excerpt(head=visible(_text(data)), tail="", cut=0, size=len(data))
    return Excerpt(
        head=visible(_text(data[:head])),
        tail=visible(_text(data[-tail:])),
        cut=len(data) - head - tail,
        size=len(data),
    )


def visible(text: object) -> str:
    """Text with everything in it to be seen. Carriage returns before a line's end are not worth seeing."""
    return str(text).replace("\r\n", "\n").translate(_SHOWN)


def short(text: object, length: int = SHORT) -> str:
    """The beginning of a name, on one line."""
    found = visible(text).replace("\n", "\N{SYMBOL FOR NEWLINE}")
    return found if len(found) <= length else found[: length - 1] + "…"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
