"""What is said in a few bytes is told from JSON by its first one."""

from __future__ import annotations

from hotbed.guest.template import control


def test_no_json_text_begins_like_them() -> None:
    """A reader looks at one byte."""
    assert control.KILL.pack(0, 7)[0] == control.EXIT.pack(0, 7, 0, 0, 0)[0] == 0


def test_they_hold_whatever_the_kernel_says() -> None:
    """Any wait status, and sizes and times that a 32-bit number would not hold."""
    told = (0, 2**63, 0x7F0B, 2**40, 2**50)

    assert control.EXIT.unpack(control.EXIT.pack(*told)) == told
