"""A node that is killed while it bakes, at each step: the next one ends the bake, and nothing is left over."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.node_process import NodeProcess, node_process
from tests.support.images import BUSYBOX, Layout, busybox, entry, layer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BUSYBOX is None, reason="needs a static busybox")]

DEADLINE_S = 50.0
STEPS = ("unpacking", "looking for Python", "setup", "ready")


def settings(tmp_path: Path) -> dict[str, Any]:
    """A real node with a home of its own."""
    return {
        "backend": "fork",
        "home": str(tmp_path / "home"),
        "runtime_dir": str(tmp_path / "run"),
        "spares": 0,
        "warm": [],
    }


def asked(node: NodeProcess, tmp_path: Path) -> None:
    """Begin a bake whose steps take long enough to be seen."""
    slow = "sleep 0.4; echo done >>/work/steps"
    ready = {"cmd": "sleep 0.4", "timeout_s": 30}
    body = {"name": "x", "image": f"oci:{tmp_path}/l", "setup": [slow], "ready": ready}
    status, row = node.call("POST", "/v1/templates", body)
    assert status == 201, row


def seen(node: NodeProcess, step: str) -> None:
    """Wait until the bake is at a step."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        _, row = node.call("GET", "/v1/templates/x")
        if row["progress"].get("step") == step:
            return
        assert row["phase"] not in ("Live", "Failed"), f"{step} was not seen: {row}"
        time.sleep(0.005)
    raise AssertionError(f"no {step} in time")


@pytest.mark.parametrize("step", STEPS)
def test_a_bake_outlives_its_node(tmp_path: Path, step: str) -> None:
    """Whatever it was at; phases do not go back, and setup has run once in what comes of it."""
    many = layer(*(entry(f"n{number}", b"x" * 100) for number in range(3000)))
    Layout(tmp_path / "l").add([busybox(), many])
    with node_process(tmp_path, **settings(tmp_path)) as node:
        asked(node, tmp_path)
        seen(node, step)
        node.stop(signal.SIGKILL)
    with node_process(tmp_path, **settings(tmp_path)) as node:
        deadline = time.monotonic() + DEADLINE_S
        while (row := node.call("GET", "/v1/templates/x")[1])["phase"] not in ("Live", "Failed"):
            assert time.monotonic() < deadline, row
            time.sleep(0.02)
        assert row["phase"] == "Live", row
        command = {"template": "x", "command": "cat /work/steps; ls -d /n1"}
        status, answer = node.call("POST", "/v1/rollouts", command)
        assert (status, answer["stdout"]) == (200, "done\n/n1\n"), json.dumps(answer)
    assert os.listdir(tmp_path / "home/images/partial") == []
