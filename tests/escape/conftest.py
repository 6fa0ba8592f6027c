"""One backend for all attempts: each of them makes the sandboxes that it attacks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator

import pytest

from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.selfcheck import table
from hotbed.runtime.selfcheck.bench import Bench

Attempting = Callable[[str], None]

# What must not be seen inside; set before the backend is made, as a client's key would be.
os.environ["SELFCHECK_SECRET"] = "kept-by-the-node-and-nobody-else"


@pytest.fixture(scope="session")
def attempt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attempting]:
    """Run the attempt on a claim; it raises `Broken` if the claim does not hold."""
    directory = tmp_path_factory.mktemp("escape")
    directory.chmod(0o755)  # a template of root's has to reach it with an id of its own
    backend = ForkBackend(ForkSettings(spares=2, run_dir=str(directory)))
    loop = asyncio.new_event_loop()
    loop.run_until_complete(backend.start())
    bench = loop.run_until_complete(Bench.of(backend))
    yield lambda claim: loop.run_until_complete(table.find(claim).run(bench))
    loop.run_until_complete(backend.close())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
