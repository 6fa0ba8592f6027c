"""A warm_cmd as the two command lines that it stands for."""

from __future__ import annotations

import pytest

from hotbed.errors import InvalidRequest
from hotbed.runtime.standing import Interpreter


@pytest.mark.parametrize(
    ("warm_cmd", "wait", "file"),
    [("ruby -", "ruby -", "ruby"), ("  node --no-warnings - ", "node --no-warnings -", "node --no-warnings"),
     ("mine", "mine", ""), ("mine --", "mine --", "")],
)  # fmt: skip
def test_a_dash_at_the_end_is_where_the_program_is(warm_cmd: str, wait: str, file: str) -> None:
    """A file can stand there too; without it there is only stdin."""
    assert Interpreter.of(warm_cmd) == Interpreter(wait=wait, file=file)


def test_none_is_none_and_a_script_is_refused() -> None:
    """What is more than a line belongs into a file of the image."""
    assert Interpreter.of("  ") is None
    with pytest.raises(InvalidRequest, match="one line"):
        Interpreter.of("a -\nb")
