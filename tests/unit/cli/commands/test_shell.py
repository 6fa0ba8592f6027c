"""A shell without a terminal; tests/e2e has one with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from hotbed.cli.main import USAGE
from hotbed.sdk.connect import connect
from hotbed.sdk.sandbox import Sandbox
from tests.unit.cli.conftest import Hotbed


@pytest.fixture
def type_in() -> Iterator[Callable[[bytes], None]]:
    """Makes some bytes standard input."""
    before = os.dup(0)

    def put(data: bytes) -> None:
        reader, writer = os.pipe()
        os.write(writer, data)
        os.close(writer)
        os.dup2(reader, 0)
        os.close(reader)

    yield put
    os.dup2(before, 0)
    os.close(before)


@pytest.fixture(autouse=True)
def plain_stdin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Standard input as descriptor 0, which pytest hides."""
    with open(0, closefd=False) as stdin, open(1, "w", closefd=False) as out, open(2, "w", closefd=False) as err:
        for name, stream in (("stdin", stdin), ("stdout", out), ("stderr", err)):
            monkeypatch.setattr(f"sys.{name}", stream)
        yield
        monkeypatch.undo()


def test_what_is_piped_in_is_its_input(hotbed: Hotbed, type_in: Callable[[bytes], None]) -> None:
    """And its exit code is ours."""
    type_in(b"echo from inside; exit 5\n")
    said = hotbed("shell", "python", "--", "sh")

    assert (said.code, said.out) == (5, "from inside\n")


def test_a_shell_that_is_piped_to_prompts_nobody(hotbed: Hotbed, type_in: Callable[[bytes], None]) -> None:
    """What it says is what the script says."""
    type_in(b"echo from inside\nexit 5\n")
    said = hotbed("shell", "python")

    assert (said.code, said.out, said.err) == (5, "from inside\n", "")


def test_a_sandbox_that_lives_is_used_and_left(
    hotbed: Hotbed, node_socket: str, type_in: Callable[[bytes], None]
) -> None:
    """With what is in it."""
    type_in(b"")
    with connect(unix_socket=node_socket) as client, Sandbox("python", client=client) as sandbox:
        sandbox.upload_bytes("/work/f", b"kept\n")
        said = hotbed("shell", "--sandbox", sandbox.id, "--env", "A=1", "--", "sh", "-c", "cat f; echo $A")

        assert (said.code, said.out) == (0, "kept\n1\n")
        assert sandbox.exec(command="true").ok


@pytest.mark.parametrize("words", [["shell"], ["shell", "python", "--sandbox", "x"]])
def test_it_needs_one_thing_to_be_in(hotbed: Hotbed, words: list[str]) -> None:
    """A template or a sandbox."""
    assert hotbed(*words).code == USAGE
