"""What was appended is read back whole, and nothing is deleted before it is committed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotbed.node.ledger.spool import Spool, records, segments


def read_all(directory: Path) -> list[bytes]:
    return [record for path in segments(directory) for record in records(path)]


def test_records_come_back_in_order_across_segments(tmp_path: Path) -> None:
    """A start after a kill sees what was appended before it."""
    spool = Spool(tmp_path, segment_bytes=64)
    sent = [b"record %d" % number * 3 for number in range(20)]
    for record in sent:
        spool.append(record)

    assert read_all(tmp_path) == sent
    assert len(segments(tmp_path)) > 1
    spool.close()


def test_a_torn_tail_hides_nothing_before_it(tmp_path: Path) -> None:
    """A process killed in the middle of a write leaves half a record."""
    spool = Spool(tmp_path)
    spool.append(b"whole")
    spool.append(b"torn" * 100)
    spool.close()
    (path,) = segments(tmp_path)
    os.truncate(path, path.stat().st_size - 7)

    assert list(records(path)) == [b"whole"]


def test_a_flipped_bit_ends_the_reading(tmp_path: Path) -> None:
    """A record that is not what was written is not taken for one."""
    spool = Spool(tmp_path)
    spool.append(b"first")
    spool.append(b"second")
    spool.close()
    (path,) = segments(tmp_path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)

    assert list(records(path)) == [b"first"]


def test_a_segment_goes_when_it_is_closed_and_committed(tmp_path: Path) -> None:
    """The spool is a waiting room, not an archive."""
    spool = Spool(tmp_path, segment_bytes=1)
    first, second = spool.append(b"a"), spool.append(b"b")
    spool.committed(first, 1)

    assert read_all(tmp_path) == [b"b"]

    spool.committed(second, 1)
    spool.close()
    assert segments(tmp_path) == []


def test_what_is_not_committed_outlives_close(tmp_path: Path) -> None:
    """Closing is not committing."""
    spool = Spool(tmp_path)
    spool.append(b"kept")
    spool.close()

    assert read_all(tmp_path) == [b"kept"]


def test_a_refused_write_leaves_no_half_record(tmp_path: Path) -> None:
    """After a full disk has room again, later records must be readable."""
    spool = Spool(tmp_path)
    spool.append(b"before")
    real = spool._fd
    spool._fd = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OSError):
        spool.append(b"refused")
    os.close(spool._fd)
    spool._fd = real
    spool.append(b"after")
    spool.close()

    assert read_all(tmp_path) == [b"before", b"after"]
