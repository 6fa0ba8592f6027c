"""The optional part of a backend's contract is one that both backends keep."""

from __future__ import annotations

from hotbed.runtime.backends.fake_layers import FakeLayer, FakeLayers
from hotbed.runtime.layering import Layer, Layering
from hotbed.runtime.layers import LayerFiles, Layers


def test_both_backends_offer_the_same() -> None:
    """By name; mypy holds the rest."""
    for protocol, kinds in ((Layering, (FakeLayers, Layers)), (Layer, (FakeLayer, LayerFiles))):
        wanted = {name for name in vars(protocol) if not name.startswith("_")}
        assert all(wanted <= set(dir(kind)) for kind in kinds)
