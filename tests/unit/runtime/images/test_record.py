"""What is kept about an image can be kept as JSON, and nothing in it can become another path."""

from __future__ import annotations

import json

import pytest

from hotbed.errors import InvalidRequest
from hotbed.runtime.images.record import LAYERS_LIMIT, ImagePython, ImageRecord, hex_of

DIGEST = "sha256:" + "a" * 64


def test_a_record_comes_back_from_json() -> None:
    """All of it."""
    record = ImageRecord(
        digest=DIGEST,
        source="oci:/x",
        layers=(DIGEST,),
        env=(("A", "1"),),
        workdir="/app",
        skipped={"device nodes": 2},
        notes=("n",),
        python=ImagePython(executable="/usr/bin/python3", version="3.11.2"),
    )

    assert ImageRecord.from_plain(json.loads(json.dumps(record.to_plain()))) == record


@pytest.mark.parametrize("digest", ["", "sha256:", "sha256:../../etc", "sha512:" + "a" * 64, DIGEST + "/x", "A" * 64])
def test_only_a_digest_becomes_a_files_name(digest: str) -> None:
    """It comes from the image."""
    with pytest.raises(InvalidRequest):
        hex_of(digest)


def test_a_record_that_cannot_be_is_refused() -> None:
    """Before anything is made of it."""
    for bad in ({"workdir": "relative"}, {"layers": (DIGEST,) * (LAYERS_LIMIT + 1)}):
        with pytest.raises(InvalidRequest):
            ImageRecord(**{"digest": DIGEST, "source": "s", "layers": (), **bad})  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidRequest):
        ImagePython(executable="python3", version="3")
