"""Whether this kernel has Landlock, and which version of it."""

from __future__ import annotations

from hotbed.guest import kernel

_NR_CREATE_RULESET = 444
_VERSION = 1  # LANDLOCK_CREATE_RULESET_VERSION


def abi() -> int:
    """The ABI version; 0 where there is none (landlock(7))."""
    try:
        return kernel.call(_NR_CREATE_RULESET, 0, 0, _VERSION)
    except OSError:
        return 0
