"""The node's questions about files are answered one by one, and the agent outlives all of them."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from hotbed.guest.agent import file_ops
from hotbed.guest.agent.box import Box
from hotbed.guest.frames import Connection
from tests.unit.guest.agent_process import AgentProcess


def test_open_gives_a_descriptor_of_a_regular_file(agent: AgentProcess, tmp_path: Path) -> None:
    """For reading and writing of any size, without the agent in between."""
    agent.send("open", path=f"{tmp_path}/new/file", mode="w", perm=0o640, parents=True)
    header, _, fds = agent.receive()
    os.write(fds[0], b"content")
    os.close(fds[0])
    agent.send("open", path=f"{tmp_path}/new/file", mode="a")
    _, _, fds = agent.receive()
    os.write(fds[0], b" and more")
    os.close(fds[0])
    agent.send("open", path=f"{tmp_path}/new/file", mode="r")
    opened, _, fds = agent.receive()

    assert (header["op"], opened["size"], opened["perm"]) == ("opened", 16, 0o640)
    assert os.read(fds[0], 100) == b"content and more"
    os.close(fds[0])


def test_open_refuses_what_is_not_there_and_unknown_modes(agent: AgentProcess, tmp_path: Path) -> None:
    """With the code that says which."""
    assert agent.ask("open", path=f"{tmp_path}/none", mode="r")["code"] == "not_found"
    assert agent.ask("open", path=f"{tmp_path}/a/b", mode="w")["code"] == "not_found"
    assert agent.ask("open", path="a\0b", mode="r")["code"] == "bad_path"
    assert agent.ask("open", path=f"{tmp_path}/none", mode="r+")["code"] == "bad_request"
    assert agent.ask("open")["code"] == "bad_request"


def test_stat_list_mkdir_and_remove(agent: AgentProcess, tmp_path: Path) -> None:
    """Plain data about plain files."""
    assert agent.ask("mkdir", path=f"{tmp_path}/a/b")["op"] == "done"
    (tmp_path / "a" / "file").write_bytes(b"12345")
    (tmp_path / "a" / "link").symlink_to("nowhere")
    listed = agent.ask("list", path=f"{tmp_path}/a")
    about = agent.ask("stat", path=f"{tmp_path}/a/file")

    assert [(e["name"], e["type"]) for e in listed["entries"]] == [("b", "dir"), ("file", "file"), ("link", "link")]
    assert (about["type"], about["size"], listed["truncated"]) == ("file", 5, False)
    assert agent.ask("stat", path=f"{tmp_path}/a/link")["type"] == "link"
    assert agent.ask("stat", path=f"{tmp_path}/a/none")["code"] == "not_found"
    assert agent.ask("remove", path=f"{tmp_path}/a/link")["op"] == "done"
    assert agent.ask("remove", path=f"{tmp_path}/a/link")["code"] == "not_found"
    assert agent.ask("remove", path=f"{tmp_path}/a")["op"] == "done"
    assert not (tmp_path / "a").exists()


def test_an_outcome_or_its_failure_is_answered() -> None:
    """A helper's word is one or the other."""
    ours, theirs = socket.socketpair()
    box, reader = Box(theirs, 0, {}), Connection(ours)
    answer = file_ops.answering(box, {"op": "unpack", "id": "x"}, "unpacked")
    answer({"files": 3})
    answer({"code": "no_space", "message": "full"})

    assert reader.receive()[0] == {"op": "unpacked", "id": "x", "files": 3}
    assert reader.receive()[0] == {"op": "error", "id": "x", "code": "no_space", "message": "full"}
    reader.close()
    theirs.close()
