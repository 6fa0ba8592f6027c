"""Files are written, opened and looked at by the agent, and nothing but files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hotbed.guest import filing
from hotbed.guest.request import Refused
from tests.unit.guest.agent_process import AgentProcess


def test_files_of_an_exec_are_written_first_and_exactly(agent: AgentProcess, tmp_path: Path) -> None:
    """Bytes and mode, with the folders above them, over what was there."""
    data = bytes(range(256)) * 100
    (tmp_path / "old").write_bytes(b"longer than the new one")
    files = [(f"{tmp_path}/a/b/c.bin", data, 0o600), (f"{tmp_path}/old", b"new", 0o755), ("rel", b"", 0o4711)]
    result = agent.run("command", "./old; cat a/b/c.bin | wc -c", files=files)

    assert result.stdout.split()[-1] == b"25600"
    assert (tmp_path / "a/b/c.bin").read_bytes() == data
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a/b/c.bin", "old", "rel")]
    assert modes == [0o600, 0o755, 0o4711]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/dev/full", "not_a_file"),
        ("/dev/null", "not_a_file"),
        ("{tmp}", "not_a_file"),
        ("{tmp}/file/below", "bad_path"),
        ("{tmp}/fifo", "not_a_file"),
        ("{tmp}/loop", "bad_path"),
        ("{tmp}/memory", "not_a_file"),
        ("/proc/self/mem", "not_a_file"),
        ("{tmp}/" + "x" * 300, "bad_path"),
    ],
)
def test_what_is_no_file_is_refused(agent: AgentProcess, tmp_path: Path, path: str, code: str) -> None:
    """Devices, FIFOs, folders, loops, and the agent's own memory by a link."""
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "memory").symlink_to("/proc/self/mem")
    agent.start_exec("command", "true", files=[(path.format(tmp=tmp_path), b"x", 0o644)])
    header, _, _ = agent.receive()

    assert (header["op"], header["code"]) == ("error", code)
    assert agent.ask("open", path=path.format(tmp=tmp_path), mode="r")["op"] == "error"
    assert agent.run("command", "true").status == "ok"


def test_a_full_disk_is_told(agent: AgentProcess) -> None:
    """/dev/full is no file, so a limit on file size stands in: EFBIG is the same path."""
    import resource

    resource.prlimit(agent.pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    agent.start_exec("command", "true", files=[("big", b"x" * 2000, 0o644)])
    header, _, _ = agent.receive()

    assert (header["op"], header["code"]) == ("error", "too_large")


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


def test_a_long_list_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of a million files must not hold up the agent."""
    monkeypatch.setattr(filing, "LIST_LIMIT", 3)
    for number in range(5):
        (tmp_path / str(number)).touch()
    listed = filing.entries_of(str(tmp_path))

    assert (len(listed["entries"]), listed["truncated"]) == (3, True)


def test_the_mode_of_a_missing_file_is_the_given_one(tmp_path: Path) -> None:
    """Whatever the umask."""
    fd = filing.open_regular(str(tmp_path / "x"), "w", 0o666, parents=False)

    assert stat.S_IMODE(os.fstat(fd).st_mode) == 0o666
    os.close(fd)
    with pytest.raises(Refused):
        filing.open_regular(str(tmp_path), "r", 0, parents=False)
