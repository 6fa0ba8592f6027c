"""A line of the ledger says what was asked and what came of it, and comes back as it went."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hotbed.node import records
from hotbed.node.ledger.store import Store
from hotbed.wire.execs import ExecResponse, RolloutRequest

REQUEST = RolloutRequest(template="python", code="print(1)", stdin_b64=b"\xff", labels={"group_id": "g"})
ANSWER = ExecResponse(
    id="rollout_1", status="exit", ok=False, exit_code=3, stdout="", stdout_b64=b"\xfe", stderr="e", seed="ab" * 32
)


def test_an_answer_comes_back_as_a_replay_compares_it(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 included."""
    store = Store(tmp_path / "l.db")
    store.add([records.of_rollout(REQUEST, ANSWER, at=0.5)])
    row = store.get("rollout_1")
    again = records.answer_of(row, store)

    assert (again.stdout_bytes, again.stderr_bytes, again.exit_code) == (b"\xfe", b"e", 3)
    assert msgspec.json.decode(store.blob(row["request_hash"]), type=RolloutRequest) == REQUEST
    assert records.row_of(row).at == "1970-01-01T00:00:00.500Z"
    assert records.row_of(row).group_id == "g"
    assert records.detail_of(row, store).stdout_b64 == b"\xfe"
    store.close()
