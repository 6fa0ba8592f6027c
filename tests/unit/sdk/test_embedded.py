"""A node started on demand."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hotbed.errors import InvalidRequest, NodeUnavailable
from hotbed.sdk import embedded
from hotbed.sdk.connect import connect
from hotbed.sdk.embedded import NodePlace, local_node, running_node, start_node
from hotbed.sdk.settings import Settings


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NodePlace]:
    """A runtime directory of its own, whose node is fake and gone at the end."""
    made = NodePlace(directory=str(tmp_path / "run"))
    monkeypatch.setenv("HOTBED_RUNTIME_DIR", made.directory)
    monkeypatch.setenv("HOTBED_BACKEND", "fake")
    monkeypatch.setenv("HOTBED_LINGER_S", "0.05")
    yield made
    wait_gone(made)


def wait_gone(place: NodePlace) -> None:
    """The node ends soon after its last client."""
    deadline = time.monotonic() + 10
    while os.path.exists(place.socket) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not os.path.exists(place.socket), Path(place.log).read_text()


@pytest.mark.slow
def test_node_starts_serves_and_ends_with_its_last_client(place: NodePlace) -> None:
    """Nothing of it is our child, so nothing waits for us to reap it."""
    ours = children()
    with connect() as client:
        assert client.health().status == "ok"
        assert os.stat(place.directory).st_mode & 0o777 == 0o700
        with connect() as other:
            assert other.health().node_id == client.health().node_id

    assert children() <= ours
    wait_gone(place)


def children() -> set[str]:
    """The pids of this process's children, reaped or not."""
    return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


@pytest.mark.slow
def test_racing_clients_start_one_node(place: NodePlace) -> None:
    """From threads here, as from processes."""
    together = threading.Barrier(8)

    def start() -> str:
        together.wait()
        with connect() as client:
            node_id = client.health().node_id
            together.wait()
            return node_id

    with ThreadPoolExecutor(8) as pool:
        ids = {future.result() for future in [pool.submit(start) for _ in range(8)]}

    assert len(ids) == 1


def test_a_node_that_was_started_by_hand_meanwhile_does_as_well(
    place: NodePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took the socket first, so ours was refused."""
    taken: list[socket.socket] = []

    def refused(place: NodePlace, *, boltz_slots: int = 0) -> None:
        taken.append(socket.socket(socket.AF_UNIX))
        taken[0].bind(place.socket)
        taken[0].listen()
        raise NodeUnavailable("process 7 already serves it")

    monkeypatch.setattr("hotbed.sdk.embedded.start_node", refused)

    assert local_node(Settings.from_environment()).unix_path == place.socket
    taken[0].close()
    os.unlink(place.socket)


@pytest.mark.slow
def test_killed_node_is_replaced_on_the_next_call(place: NodePlace) -> None:
    """What it held is gone; the client goes on."""
    with connect() as client:
        first = client.health().node_id
        pid = int(Path(place.directory, "node.pid").read_text())
        os.kill(pid, 9)
        while Path(f"/proc/{pid}").exists() and "zombie" not in Path(f"/proc/{pid}/status").read_text():
            time.sleep(0.005)
        second = client.health().node_id

        assert second != first
        client.link.hold()


@pytest.mark.slow
def test_killed_client_takes_its_node_along(place: NodePlace) -> None:
    """No handler runs; the kernel closes the connection."""
    code = "import hotbed, os; c = hotbed.connect(); print(c.health().status, flush=True); os.kill(os.getpid(), 9)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (-9, "ok\n")
    wait_gone(place)


@pytest.mark.slow
def test_node_that_cannot_start_says_why(place: NodePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its own words, with its log."""
    monkeypatch.setenv("HOTBED_BACKEND", "imaginary")

    with pytest.raises(InvalidRequest, match=r"imaginary.*node\.log"):
        connect()


@pytest.mark.slow
def test_node_that_dies_without_a_word_is_quoted_from_its_log(
    place: NodePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line of a traceback says most."""
    monkeypatch.setattr(embedded, "_BOOT", "raise SystemError('no luck')")
    place.prepare()

    with pytest.raises(NodeUnavailable, match="SystemError: no luck"):
        start_node(place)


def test_node_that_takes_too_long_is_given_up(place: NodePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not waited for."""
    monkeypatch.setattr(embedded, "_BOOT", "import time; time.sleep(0.5)")
    monkeypatch.setattr(embedded, "START_TIMEOUT_S", 0.05)
    place.prepare()

    with pytest.raises(NodeUnavailable, match="ready within"):
        start_node(place)


def test_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """Whoever owns the socket answers for the node."""
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path / "open")

    for name in ("open", "link"):
        with pytest.raises(NodeUnavailable, match="HOTBED_RUNTIME_DIR"):
            NodePlace(directory=str(tmp_path / name)).prepare()


def test_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file is in the way."""
    (tmp_path / "file").touch()

    with pytest.raises(NodeUnavailable, match="cannot be made"):
        NodePlace(directory=str(tmp_path / "file/run")).prepare()


def test_python_without_an_executable_cannot_start_one(place: NodePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Embedded interpreters exist."""
    monkeypatch.setattr(sys, "executable", "")

    with pytest.raises(NodeUnavailable, match="hotbed node"):
        local_node(Settings.from_environment())


def test_no_socket_is_no_node(tmp_path: Path) -> None:
    """Nor is a stale one."""
    assert running_node(Settings(runtime_dir=str(tmp_path))) is None
