"""Files are written, opened and looked at by the agent, and nothing but files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hotbed.guest.agent import archive, filing
from hotbed.guest.agent.request import Refused
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


def test_folders_are_made_to_any_depth(tmp_path: Path) -> None:
    """A path may be 4095 bytes of them, which is more than Python likes to recurse."""
    path = str(tmp_path) + "/a" * 1900

    filing.write_file(path + "/b", b"deep", 0o644)
    filing.make_folder(path + "/c/../d")

    assert Path(path + "/b").read_bytes() == b"deep"
    assert os.path.isdir(path + "/d")
    with pytest.raises(Refused) as caught:
        filing.make_folder(path + "/b/c")
    assert caught.value.code in ("bad_path", "not_a_file")
    archive.remove(str(tmp_path / "a"), -1)
