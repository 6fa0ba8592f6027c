"""A node that is killed while it bakes, at each step: the next one ends the bake, and nothing is left over."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hotbed.wire.templates import PHASES
from tests.e2e.node_process import NodeProcess, node_process
from tests.e2e.registry import Served
from tests.support.images import BUSYBOX, Layout, busybox, entry, layer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BUSYBOX is None, reason="needs a static busybox")]

DEADLINE_S = 50.0
STEPS = ("unpacking", "looking for Python", "setup", "keeping", "ready")


def settings(tmp_path: Path) -> dict[str, Any]:
    """A real node with a home of its own."""
    return {
        "backend": "fork",
        "home": str(tmp_path / "home"),
        "runtime_dir": str(tmp_path / "run"),
        "spares": 0,
        "warm": [],
    }


def asked(node: NodeProcess, image: str) -> None:
    """Begin a bake whose steps take long enough to be seen."""
    slow = "sleep 0.4; echo done >>/work/steps; head -c 40000000 /dev/zero >/work/large"
    ready = {"cmd": "sleep 0.4", "timeout_s": 30}
    status, row = node.call("POST", "/v1/templates", {"name": "x", "image": image, "setup": [slow], "ready": ready})
    assert status == 201, row


def seen(node: NodeProcess, step: str) -> str:
    """Wait until the bake is at a step; the phase that this is of."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        _, row = node.call("GET", "/v1/templates/x")
        if row["progress"].get("step") == step:
            return str(row["phase"])
        assert row["phase"] not in ("Live", "Failed"), f"{step} was not seen: {row}"
        time.sleep(0.005)
    raise AssertionError(f"no {step} in time")


def ended(node: NodeProcess) -> Any:
    """The template's row when its bake is over."""
    deadline = time.monotonic() + DEADLINE_S
    while (row := node.call("GET", "/v1/templates/x")[1])["phase"] not in ("Live", "Failed"):
        assert time.monotonic() < deadline, row
        time.sleep(0.02)
    return row


@pytest.mark.timeout(180)
def test_a_bake_outlives_its_node_killed_at_each_step(tmp_path: Path) -> None:
    """Again and again; phases do not go back, and setup has run once in what comes of it."""
    many = layer(*(entry(f"n{number}", b"x" * 100) for number in range(3000)))
    Layout(tmp_path / "l").add([busybox(), many])
    phases = ["Pending"]
    for step in STEPS:
        with node_process(tmp_path, **settings(tmp_path)) as node:
            if step == STEPS[0]:
                asked(node, f"oci:{tmp_path}/l")
            phases.append(seen(node, step))
            node.stop(signal.SIGKILL)
    assert [PHASES.index(phase) for phase in phases] == sorted(map(PHASES.index, phases))
    with node_process(tmp_path, **settings(tmp_path)) as node:
        row = ended(node)
        assert row["phase"] == "Live" and row["build_fails"] == 0, row
        command = {"template": "x", "command": "cat /work/steps; ls -d /n1"}
        status, answer = node.call("POST", "/v1/rollouts", command)
        assert (status, answer["stdout"]) == (200, "done\n/n1\n"), json.dumps(answer)
    assert os.listdir(tmp_path / "home/images/partial") == []


@pytest.mark.skipif(shutil.which("skopeo") is None, reason="needs skopeo")
def test_a_fetch_ends_with_its_node_and_is_taken_up_by_the_next(tmp_path: Path, registry: Served) -> None:
    """What fetches is a program of somebody else's, which would go on by itself."""
    registry.gate.clear()
    with node_process(tmp_path, **settings(tmp_path)) as node:
        asked(node, registry.reference)
        assert registry.waiting.wait(DEADLINE_S) and seen(node, "fetching") == "Converting"
        assert is_fetched(registry.reference)
        node.stop(signal.SIGKILL)
    deadline = time.monotonic() + DEADLINE_S
    while is_fetched(registry.reference):
        assert time.monotonic() < deadline, "it goes on"
        time.sleep(0.05)
    registry.gate.set()

    with node_process(tmp_path, **settings(tmp_path)) as node:
        assert ended(node)["phase"] == "Live"
    assert os.listdir(tmp_path / "home/images/downloads") == []


def is_fetched(reference: str) -> bool:
    """Whether any process fetches that image."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"docker://{reference}".encode() in path.read_bytes():
                return True
        except OSError:
            continue  # it ended while we looked
    return False


@pytest.mark.skipif(os.geteuid() != 0, reason="as an ordinary user it mounts in namespaces of its own")
def test_what_a_killed_bake_had_mounted_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """mmdebstrap mounts proc and sys where it works, and nobody who is killed takes anything down."""
    tool, place = tmp_path / "mmdebstrap", tmp_path / "mounted"
    place.mkdir()
    tool.write_text(f"#!/bin/sh\nmount -t tmpfs held {place} && touch {tmp_path}/marker && sleep 1000\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with node_process(tmp_path, **settings(tmp_path)) as node:
        node.call("POST", "/v1/templates", {"name": "x", "image": "deb:hello"})
        deadline = time.monotonic() + DEADLINE_S
        while not (tmp_path / "marker").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        node.stop(signal.SIGKILL)

    left = place.is_mount()
    if left:
        subprocess.run(["umount", "-l", str(place)], check=True)
    assert (tmp_path / "marker").exists() and not left
