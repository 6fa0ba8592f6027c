"""Many sandboxes of one template at once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from hotbed import Sandbox, connect

#: More than a sandbox may have processes, and more than a third of the files that it may have open.
MANY = 360


@pytest.mark.slow
def test_limits_hold_each_sandbox_and_not_all_of_them_together() -> None:
    """Processes and open files of the others are not a sandbox's own."""
    with connect() as client, ThreadPoolExecutor(16) as pool:
        sandboxes = [Sandbox("python", client=client) for _ in range(MANY)]
        list(pool.map(Sandbox.start, sandboxes))
        results = list(pool.map(lambda sandbox: sandbox.exec("print(1)"), sandboxes))

    assert Counter(result.status for result in results) == {"ok": MANY}
