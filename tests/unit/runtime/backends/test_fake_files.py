"""The fake's files behave as a sandbox's would, in our terms."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotbed.errors import BadPath, Error, FileDenied, FileMissing, InvalidRequest, NoSpace, NotAFile
from hotbed.runtime.backends.fake_files import describe, file_error, read_tar, write_tar


def test_a_tree_survives_the_way_through_a_tar(tmp_path: Path) -> None:
    """Out of one directory, into another."""
    (tmp_path / "a/deep").mkdir(parents=True)
    (tmp_path / "a/deep/file").write_bytes(b"\0data")
    archive = tmp_path / "a.tar"
    write_tar(str(tmp_path / "a"), os.open(archive, os.O_WRONLY | os.O_CREAT))
    members = read_tar(str(tmp_path / "b"), os.open(archive, os.O_RDONLY))

    assert members == 3
    assert (tmp_path / "b/deep/file").read_bytes() == b"\0data"


def test_what_is_no_tar_is_refused(tmp_path: Path) -> None:
    """By the error of a bad request."""
    (tmp_path / "x").write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(InvalidRequest, match="tar"):
        read_tar(str(tmp_path / "b"), os.open(tmp_path / "x", os.O_RDONLY))


def test_a_description_is_of_the_name_itself(tmp_path: Path) -> None:
    """A link is a link."""
    (tmp_path / "link").symlink_to("nowhere")

    assert describe(str(tmp_path / "link"))["type"] == "link"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError(), FileMissing),
        (IsADirectoryError(), NotAFile),
        (PermissionError(), FileDenied),
        (NotADirectoryError(), BadPath),
        (OSError(28, "full"), NoSpace),
    ],
)
def test_each_error_has_a_name_of_ours(error: OSError, kind: type[Error]) -> None:
    """As the real backend's have."""
    assert type(file_error(error, "/x")) is kind
