"""The fake backend's layers. What it must do as any other is in tests/conformance."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hotbed.errors import SandboxGone
from hotbed.runtime.backends.fake_layers import FakeLayer


def test_a_freed_layer_is_gone(tmp_path: Path) -> None:
    """Freeing it twice is no error; standing on it is."""
    (tmp_path / "layer").mkdir()
    (tmp_path / "layer/f").write_text("abc")
    layer = FakeLayer(str(tmp_path / "layer"), ())
    assert (layer.size, layer.is_alive()) == (3, True)
    layer.put(str(tmp_path / "box"))

    layer.close()
    layer.close()

    assert (tmp_path / "box/f").read_text() == "abc"
    with pytest.raises(SandboxGone):
        layer.put(str(tmp_path / "other"))
    asyncio.run(asyncio.sleep(0))
