"""hotbed node."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hotbed.cli.commands import node
from hotbed.cli.main import make_parser
from hotbed.errors import Error, NodeUnavailable
from hotbed.sdk.connect import connect


@pytest.mark.slow
def test_node_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    """On the socket that it was given."""
    path = str(tmp_path / "n.sock")
    reader, writer = os.pipe()
    argv = [sys.executable, "-m", "hotbed.cli.main", "node", "--socket", path, "--backend", "fake"]
    serving = subprocess.Popen(
        [*argv, "--ready-fd", str(writer)], pass_fds=[writer], stderr=subprocess.DEVNULL, cwd=tmp_path
    )
    os.close(writer)
    with os.fdopen(reader) as ready:
        assert json.loads(ready.readline())["ready"] is True

    with connect(unix_socket=path) as client:
        assert client.health().status == "ok"
    serving.send_signal(signal.SIGTERM)

    assert serving.wait(10) == 0
    assert not os.path.exists(path)


@pytest.mark.parametrize(
    ("argv", "message"),
    [(["--backend", "fake", "--port", "70000"], "port"), (["--settings", "/nope"], "settings")],
)
def test_bad_setting_is_told_to_whoever_waits(argv: list[str], message: str) -> None:
    """On the pipe as an error body, and as an error here."""
    reader, writer = os.pipe()
    args = make_parser().parse_args(["node", *argv, "--ready-fd", str(writer)])

    with pytest.raises(Error, match=message):
        node.run(args)
    os.close(writer)
    with os.fdopen(reader) as ready:
        assert json.loads(ready.readline())["ready"] is False


def test_installation_without_the_node_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK alone is a complete installation, of the SDK."""
    monkeypatch.setitem(sys.modules, "hotbed.server.serving", None)

    with pytest.raises(NodeUnavailable, match=r"hotbed\[node\]"):
        node.run(make_parser().parse_args(["node"]))
