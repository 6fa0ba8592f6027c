"""What RLPool refuses before it asks a node for anything, and what it asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import BadEnvDir, InvalidRequest, InvalidSeed, SandboxFailed
from hotbed.sdk import pool_calls
from hotbed.sdk.client import Client
from hotbed.sdk.rl_pool import RLPool, send_env_dir


@pytest.fixture
def env_dir(tmp_path: Path) -> Path:
    """An environment."""
    (tmp_path / "env.py").write_text("from hotbed.env import serve\nserve(id, id)")
    return tmp_path


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n": 0}, InvalidRequest),
        ({"mode": "warm"}, InvalidRequest),
        ({"slots": 2}, InvalidRequest),
        ({"seed": "short"}, InvalidSeed),
        ({"egress": ["pypi.org"]}, InvalidRequest),
        ({"step_timeout": 0}, InvalidRequest),
        ({"env_dir": "/nowhere"}, BadEnvDir),
    ],
)
def test_misuse_is_refused(client: Client, env_dir: Path, options: dict[str, Any], error: type[Exception]) -> None:
    """By the error that names it."""
    with pytest.raises(error):
        RLPool(**{"env_dir": env_dir, "client": client, **options})


def test_a_directory_is_sent_only_if_the_node_lacks_it(client: Client, env_dir: Path) -> None:
    """Content-addressed: the second pool sends nothing."""
    digest = send_env_dir(client.link, env_dir)

    assert client.link.send(pool_calls.get_env_dir(digest)).files == 1
    assert send_env_dir(client.link, str(env_dir)) == digest


def test_a_node_that_cannot_run_programs_says_so(client: Client, env_dir: Path) -> None:
    """The fake backend has no sandboxes to run an environment in."""
    with pytest.raises(SandboxFailed, match="fake backend"):
        RLPool(env_dir, n=2, client=client)
