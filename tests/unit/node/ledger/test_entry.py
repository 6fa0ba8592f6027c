"""An entry is a value, and the spool's codec gives an equal one back."""

from __future__ import annotations

import msgspec

from hotbed.node.ledger.entry import Entry
from tests.unit.node.ledger.entries import entry


def test_an_entry_survives_the_spool() -> None:
    """Bytes, nested details and missing values included: what a kill left behind is read by the next start."""
    whole = entry(1, stdout=b"\xff\0", reward=None, exit_code=-1, details={"checks": [["a", "passed", ""]]})

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(whole), type=Entry) == whole
