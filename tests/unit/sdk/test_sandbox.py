"""A kept sandbox, blocking face."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from hotbed.errors import BadPath, FileMissing, InvalidRequest, InvalidSeed, NotFound, SandboxGone
from hotbed.sdk.client import Client
from hotbed.sdk.sandbox import Sandbox


@pytest.fixture
def sandbox(client: Client) -> Iterator[Sandbox]:
    """One that lives."""
    with Sandbox("python", client=client) as made:
        yield made


def test_sandbox_keeps_its_files_between_execs(sandbox: Sandbox) -> None:
    """An episode has steps."""
    sandbox.upload_bytes("/work/task.py", "print(6 * 7)")
    result = sandbox.exec(command="cd /work && python3 task.py > out && cat out", timeout_seconds=20)

    assert result.stdout == "42\n"
    assert sandbox.download("/work/out") == b"42\n"


def test_code_may_be_given_by_position(sandbox: Sandbox) -> None:
    """As the published SDK allows."""
    assert sandbox.exec("print(1)").stdout == "1\n"


def test_output_is_heard_as_it_comes(sandbox: Sandbox) -> None:
    """From an exec too."""
    heard: list[bytes] = []

    sandbox.exec(command="echo a", on_output=lambda _, data: heard.append(data))

    assert b"".join(heard) == b"a\n"


def test_any_bytes_of_any_size_go_in_and_out(sandbox: Sandbox, tmp_path: Path) -> None:
    """From memory, from an open file, from a path."""
    data = os.urandom(3_000_000)
    (tmp_path / "local").write_bytes(data)

    sandbox.upload_bytes("/work/a", data)
    sandbox.upload("/work/new/b", BytesIO(data), mode=0o755)
    sandbox.upload("/work/c", tmp_path / "local")
    sandbox.download_to("/work/new/b", tmp_path / "back")
    sink = BytesIO()
    sandbox.download_to("/work/c", sink)

    assert sandbox.download("/work/a") == data == sink.getvalue() == (tmp_path / "back").read_bytes()
    assert sandbox.stat("/work/new/b").mode & 0o777 == 0o755


def test_trees_go_in_and_out(sandbox: Sandbox, tmp_path: Path) -> None:
    """With what is below them."""
    (tmp_path / "src/deep").mkdir(parents=True)
    (tmp_path / "src/deep/f").write_text("x")

    sandbox.upload_dir(tmp_path / "src", "/work/tree")
    skipped = sandbox.download_dir("/work/tree", tmp_path / "back")

    assert skipped == ()
    assert (tmp_path / "back/deep/f").read_text() == "x"


def test_files_can_be_looked_at(sandbox: Sandbox) -> None:
    """Without an exec."""
    sandbox.mkdir("/work/d")
    sandbox.upload_bytes("/work/d/f", b"abc")

    assert [(entry.name, entry.size) for entry in sandbox.list_dir("/work/d")] == [("f", 3)]
    sandbox.remove("/work/d")
    with pytest.raises(FileMissing):
        sandbox.stat("/work/d/f")


def test_missing_file_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    """And no local file appears."""
    with pytest.raises(FileMissing, match="nope"):
        sandbox.download_to("/work/nope", tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


def test_reset_gives_a_pristine_fork(sandbox: Sandbox) -> None:
    """With another id."""
    before = sandbox.id
    sandbox.upload_bytes("/work/f", b"x")
    sandbox.reset()

    assert sandbox.id != before
    with pytest.raises(FileMissing):
        sandbox.download("/work/f")


def test_leaving_ends_it_also_on_an_error(client: Client) -> None:
    """Nothing is left on the node."""
    with pytest.raises(KeyError), Sandbox("python", client=client):
        raise KeyError

    assert client.sandboxes() == ()


def test_close_is_idempotent_and_final(client: Client) -> None:
    """A closed sandbox is not forked again by accident."""
    sandbox = Sandbox("python", client=client)
    sandbox.start()
    sandbox.close()
    sandbox.close()

    assert sandbox.session_id is None
    with pytest.raises(SandboxGone, match="closed"):
        sandbox.exec("1")


def test_first_use_forks_it(client: Client) -> None:
    """Without `with` as well."""
    sandbox = Sandbox("python", client=client)
    assert sandbox.session_id is None

    sandbox.exec("1")

    assert [row.id for row in client.sandboxes()] == [sandbox.id]
    sandbox.close()


def test_sandbox_can_be_taken_over(client: Client, sandbox: Sandbox) -> None:
    """After a crash of whoever made it."""
    sandbox.upload_bytes("/work/f", b"x")

    other = Sandbox.attach(client, sandbox.id)

    assert (other.template, other.id, other.download("/work/f")) == ("python", sandbox.id, b"x")
    assert other.seed == sandbox.seed


def test_unknown_sandbox_cannot_be_taken_over(client: Client) -> None:
    """It may be gone, or never have been."""
    with pytest.raises((NotFound, SandboxGone)):
        Sandbox.attach(client, "sb_nope")


def test_sandbox_that_was_killed_is_gone(client: Client, sandbox: Sandbox) -> None:
    """And closing it is no error."""
    Sandbox.attach(client, sandbox.id).close()

    with pytest.raises(SandboxGone):
        sandbox.exec("1")
    sandbox.close()


def test_sandboxes_end_with_their_client(client: Client, node_socket: str) -> None:
    """Also those that nobody closed."""
    from hotbed.sdk.connect import connect

    with connect(unix_socket=node_socket) as brief:
        made = Sandbox("python", client=brief)
        made.start()
    made.close()

    while client.sandboxes():
        pass


def test_forked_child_does_not_end_it(sandbox: Sandbox) -> None:
    """A child that leaves the same `with`."""
    child = os.fork()
    if child == 0:
        try:
            sandbox.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)

    assert sandbox.exec("print(1)").ok


def test_mistakes_are_named_before_any_io() -> None:
    """No client, no node, no fork."""
    with pytest.raises(InvalidSeed):
        Sandbox("python", seed="c0ffee")
    with pytest.raises(InvalidRequest, match="ttl_s"):
        Sandbox("python", ttl_seconds=-1)
    sandbox = Sandbox("python")
    with pytest.raises(InvalidRequest, match="nothing to run"):
        sandbox.exec()
    with pytest.raises(BadPath):
        sandbox.upload_bytes("relative", b"")


def test_sandbox_shows_itself(client: Client, sandbox: Sandbox) -> None:
    """What a notebook prints."""
    assert repr(sandbox) == f"Sandbox('python', id={sandbox.id!r})"
    assert repr(Sandbox("python", client=client)) == "Sandbox('python', id=None)"
    assert sandbox.isolation == "fake"
    assert sandbox.fork_time_ms >= 0
    assert sandbox.warm_hit in (True, False)


def test_client_that_is_none_is_named() -> None:
    """When the sandbox is made, not when it is first used."""
    with pytest.raises(InvalidRequest, match="client is a str"):
        Sandbox("python", client="http://localhost:1")  # type: ignore[arg-type]  # the mistake
