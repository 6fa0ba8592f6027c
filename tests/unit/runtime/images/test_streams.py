"""Bytes are hashed on their way, bounded, and never believed."""

from __future__ import annotations

import gzip
import importlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotbed.runtime.images.streams import BadBlob, Forward, Slice, TooMuch, decompressed
from tests.support.images import digest

TEXT = b"0123456789" * 50_000


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    """A file with something before and after what matters."""
    (tmp_path / "file").write_bytes(b"before" + TEXT + b"after")
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    yield fd
    os.close(fd)


def read_all(data: bytes, tmp_path: Path) -> bytes:
    """What a compressed stream yields."""
    (tmp_path / "blob").write_bytes(data)
    fd = os.open(tmp_path / "blob", os.O_RDONLY)
    try:
        return Forward(decompressed(Slice(fd, 0, len(data)), data[:4]), 1 << 30).read(1 << 20)
    finally:
        os.close(fd)


def test_a_slice_is_read_and_hashed_alone(file: int) -> None:
    """What lies around it is not its content."""
    part = Slice(file, 6, len(TEXT))
    part.drain()

    assert part.digest() == digest(TEXT) and part.read() == b""


def test_a_file_that_ends_early_is_told(file: int) -> None:
    """The rest has been lost somewhere."""
    with pytest.raises(BadBlob, match="early"):
        Slice(file, 6, len(TEXT) + 100).drain()


def test_compressions_are_told_by_their_first_bytes(tmp_path: Path) -> None:
    """An image's media types are often wrong."""
    zstd = importlib.import_module("zstandard").compress(TEXT)

    assert read_all(gzip.compress(TEXT), tmp_path) == read_all(zstd, tmp_path) == read_all(TEXT, tmp_path) == TEXT


def test_gzip_in_several_pieces_is_one_stream(tmp_path: Path) -> None:
    """As parallel compressors write it."""
    assert read_all(gzip.compress(b"one") + gzip.compress(b"two"), tmp_path) == b"onetwo"


@pytest.mark.parametrize("data", [gzip.compress(TEXT)[:-20], b"\x1f\x8b" + b"x" * 50, b"\x28\xb5\x2f\xfd" + b"x" * 50])
def test_broken_compression_is_a_bad_blob(tmp_path: Path, data: bytes) -> None:
    """Whatever the library raises."""
    with pytest.raises(BadBlob):
        read_all(data, tmp_path)


def test_a_bomb_is_stopped(tmp_path: Path) -> None:
    """A few kilobytes may unpack to gigabytes."""
    data = gzip.compress(bytes(50 << 20))
    (tmp_path / "blob").write_bytes(data)
    fd = os.open(tmp_path / "blob", os.O_RDONLY)

    with pytest.raises(TooMuch):
        Forward(decompressed(Slice(fd, 0, len(data)), data[:4]), 1 << 20).drain()
    os.close(fd)


def test_a_stream_goes_forward_only(file: int) -> None:
    """And its digest covers what was passed over."""
    stream = Forward(Slice(file, 6, len(TEXT)), 1 << 30)

    assert stream.seek(1000) == 1000 == stream.tell()
    assert stream.read(4) == b"0123"
    with pytest.raises(BadBlob):
        stream.seek(0)
    stream.drain()
    assert stream.digest() == digest(TEXT)
