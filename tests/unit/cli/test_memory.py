"""How much memory is in use."""

from __future__ import annotations

from hotbed.cli.memory import MemoryWatch, used_mib


def test_peak_is_seen() -> None:
    """Memory that was taken and given back."""
    assert used_mib() > 0
    with MemoryWatch() as watch:
        held = bytearray(64 << 20)
        held[::4096] = b"x" * len(held[::4096])
        while watch.peak_mib < 32:
            pass
        del held

    assert watch.peak_mib >= 32
