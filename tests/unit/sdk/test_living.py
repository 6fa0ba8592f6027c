"""The parts of a sandbox are no sandboxes; the whole is."""

from __future__ import annotations

import pytest

from hotbed import AsyncSandbox, Sandbox
from hotbed.sdk.living import AsyncLivingSandbox, LivingSandbox


@pytest.mark.parametrize(("whole", "base"), [(Sandbox, LivingSandbox), (AsyncSandbox, AsyncLivingSandbox)])
def test_a_part_alone_cannot_be_made(whole: type, base: type) -> None:
    """It has no node to ask."""
    parts = [part for part in whole.__mro__ if issubclass(part, base) and part is not whole]
    assert len(parts) == 4
    for part in parts:
        with pytest.raises(TypeError, match="abstract"):
            part("python")  # type: ignore[call-arg]  # `object` takes none
    assert isinstance(whole("python"), base)
