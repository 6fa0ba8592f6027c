"""Whether there is Landlock is a number."""

from __future__ import annotations

import pytest

from hotbed.guest import kernel
from hotbed.runtime.linux import landlock


def test_abi_of_this_kernel_is_no_error() -> None:
    """0 where there is none."""
    assert landlock.abi() >= 0


def test_refused_call_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old kernel, or a filter of a container."""

    def refuse(*_: object) -> int:
        raise OSError(38, "no such call")

    monkeypatch.setattr(kernel, "call", refuse)

    assert landlock.abi() == 0
