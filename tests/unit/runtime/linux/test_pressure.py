"""Memory pressure, as the kernel tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.runtime.linux.pressure import memory_is_short


@pytest.mark.parametrize(("avg10", "short"), [("0.00", False), ("9.99", False), ("42.10", True)])
def test_much_time_lost_is_short(tmp_path: Path, avg10: str, short: bool) -> None:
    """By the line of those who waited at all."""
    file = tmp_path / "memory"
    file.write_text(
        f"some avg10={avg10} avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"
    )

    assert memory_is_short(file) is short


def test_no_account_is_no_shortage(tmp_path: Path) -> None:
    """Older kernels keep none."""
    assert memory_is_short(tmp_path / "none") is False
