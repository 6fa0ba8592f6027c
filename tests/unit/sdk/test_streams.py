"""Local files on either end."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from hotbed.errors import InvalidRequest
from hotbed.sdk.streams import PIECE, exactly, opened_source, opened_target


def test_path_is_sent_with_its_length(tmp_path: Path) -> None:
    """So that the node can refuse it at once."""
    (tmp_path / "f").write_bytes(b"x" * (PIECE + 1))

    with opened_source(tmp_path / "f") as (pieces, length):
        assert (b"".join(pieces), length) == (b"x" * (PIECE + 1), PIECE + 1)


def test_open_file_is_sent_from_where_it_stands() -> None:
    """Of unknown length: it may be a pipe."""
    file = io.BytesIO(b"abc")
    file.read(1)

    with opened_source(file) as (pieces, length):
        assert (b"".join(pieces), length) == (b"bc", None)


def test_file_opened_as_text_is_refused() -> None:
    """Its bytes are not what it gives."""
    with opened_source(io.StringIO("abc")) as (pieces, _), pytest.raises(InvalidRequest, match="rb"):  # type: ignore[arg-type]  # the mistake
        next(pieces)


def test_file_that_shrinks_is_an_error_and_not_a_hang() -> None:
    """The node waits for the length it was told."""
    with pytest.raises(InvalidRequest, match="shrank"):
        list(exactly(io.BytesIO(b"ab"), 3, "f"))


def test_file_that_grows_is_cut_at_its_first_length() -> None:
    """A log that is written meanwhile."""
    assert b"".join(exactly(io.BytesIO(b"abcdef"), 3, "f")) == b"abc"


def test_download_appears_when_it_is_whole(tmp_path: Path) -> None:
    """Nobody sees half of it."""
    with opened_target(tmp_path / "f") as sink:
        sink.write(b"abc")

        assert not (tmp_path / "f").exists()
    assert (tmp_path / "f").read_bytes() == b"abc"


def test_download_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """And keeps what was there."""
    (tmp_path / "f").write_bytes(b"old")

    with pytest.raises(ValueError), opened_target(str(tmp_path / "f")) as sink:
        sink.write(b"new")
        raise ValueError

    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_bytes() == b"old"


def test_open_file_is_written_as_it_is() -> None:
    """The caller's file is the caller's."""
    file = io.BytesIO()
    with opened_target(file) as sink:
        assert sink is file
