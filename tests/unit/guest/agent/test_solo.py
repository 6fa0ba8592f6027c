"""What a fork does that is a program and nothing else, in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import hotbed.guest
from hotbed.guest.environments import lane, values

#: As a template would have it: everything imported, then the descriptors where a fork finds them.
SOLO = """
import os, resource, socket, sys
sys.path.insert(0, sys.argv[1])
from guest.agent import solo; from guest.environments import env_server
from guest.agent.stdio import Stdio
channel, out, err = map(int, sys.argv[2:5])
os.dup2(channel, 3); os.dup2(os.open("/dev/null", os.O_RDONLY), 4); os.dup2(out, 5); os.dup2(err, 6)
config = {"events": ["memory"], "limits": {"disk_mib": 3}, "cwd": sys.argv[5],
          "solo": {"program": "env_server", "config": {"path": sys.argv[6]}}}
solo.run(socket.socket(fileno=3), config, Stdio())
"""
ENV = """
import os, resource
from hotbed.env import serve
def step(action):
    print("printed", flush=True)
    if action == "raise": raise SystemExit(5)
    if action == "exit": os._exit(5)
    if action == "group": return os.getpgrp() == os.getsid(0) == os.getpid(), 0.0, False, {}
    return [sorted(map(int, os.listdir("/proc/self/fd")))[:4], os.getcwd(),
            resource.getrlimit(resource.RLIMIT_FSIZE)[0] >> 20, oct(os.umask(0o22))], 0.0, False, {}
serve(lambda seed: seed, step)
"""


def play(tmp_path: Path, *actions: str) -> tuple[list[object], int, str]:
    """The answers, the exit code, what was printed."""
    (tmp_path / "env.py").write_text(ENV)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    out, err = (os.memfd_create(name) for name in ("out", "err"))
    guest = str(Path(hotbed.guest.__file__).parent.parent)
    numbers = [str(theirs.fileno()), str(out), str(err)]
    command = [sys.executable, "-I", "-S", "-c", SOLO, guest, *numbers, str(tmp_path), str(tmp_path / "env.py")]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno(), out, err])
    theirs.close()
    ours.settimeout(20)
    answers: list[object] = [lane.Inbox().take(ours.recv(lane.PACKET))]
    for number, action in enumerate(actions, start=1):
        ours.send(values.pack({"op": "step", "id": number, "action": action}))
        packet = ours.recv(lane.PACKET)
        answers.append(lane.Inbox().take(packet) if packet else None)
    ours.close()
    code = process.wait(20)
    printed = os.pread(out, 1000, 0).decode()
    os.close(out)
    os.close(err)
    return answers, code, printed


def test_it_serves_its_channel_with_its_prints_its_limit_and_nothing_else_open(tmp_path: Path) -> None:
    """And ends with the channel."""
    [ready, answer], code, printed = play(tmp_path, "look")

    assert isinstance(ready, dict) and ready["op"] == "ready"
    assert isinstance(answer, dict) and answer["step"][0] == [[0, 1, 2, 3], str(tmp_path), 3, "0o22"]
    assert (code, printed) == (0, "printed\n")


def test_no_signal_to_its_process_group_reaches_anybody_else(tmp_path: Path) -> None:
    """A group may span pid namespaces, and the template's holds all of its sandboxes."""
    answers, _, _ = play(tmp_path, "group")

    assert isinstance(answers[1], dict) and answers[1]["step"][0] is True


def test_an_end_of_its_own_is_its_exit_code(tmp_path: Path) -> None:
    """An exception in a step is an answer; os._exit is none."""
    answers, code, _ = play(tmp_path, "raise", "exit")

    assert isinstance(answers[1], dict) and answers[1]["status"] == "error"
    assert (answers[2], code) == (None, 5)
