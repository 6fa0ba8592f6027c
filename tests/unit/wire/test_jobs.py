"""What is asked of a job is checked on both ends."""

from __future__ import annotations

import pytest

from hotbed.errors import InvalidRequest
from hotbed.wire.jobs import SignalJob


@pytest.mark.parametrize("number", [0, -1, 65])
def test_a_signal_is_one_of_the_kernels(number: int) -> None:
    """Anything else would be an error of ours later."""
    with pytest.raises(InvalidRequest, match="signal"):
        SignalJob(signal=number)
