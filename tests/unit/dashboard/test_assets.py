"""The files that pages load."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files

import pytest

from hotbed.dashboard import assets
from hotbed.errors import NotFound

STATIC = files("hotbed.dashboard").joinpath("static")


def test_a_file_is_named_by_its_content_and_kept_for_ever() -> None:
    """A new version is another name."""
    digest = hashlib.sha256(STATIC.joinpath("hotbed.css").read_bytes()).hexdigest()
    response = assets.response("hotbed.css")

    assert assets.url("hotbed.css") == f"/static/hotbed.css?v={digest[:12]}"
    assert response.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in response.headers["cache-control"]


@pytest.mark.parametrize(
    "name", ["", "../app.py", "hotbed.css/../../app.py", "vendor", "vendor/uPlot.LICENSE", "/etc/passwd"]
)
def test_nothing_else_is_served(name: str) -> None:
    """The list is what there is."""
    with pytest.raises(NotFound):
        assets.response(name)


def test_what_others_wrote_is_as_they_published_it() -> None:
    """Digest and licence of each, beside it."""
    vendor = STATIC.joinpath("vendor")
    table = dict(re.findall(r"^\| (\S+) \|.*\| ([0-9a-f]{64}) \|$", vendor.joinpath("README.md").read_text(), re.M))
    found = {
        name.removeprefix("vendor/"): hashlib.sha256(assets.content(name)).hexdigest()
        for name in assets.NAMES
        if name.startswith("vendor/")
    }

    assert table == found
    assert {name.partition(".")[0] for name in found} == {
        item.name.partition(".")[0] for item in vendor.iterdir() if item.name.endswith(".LICENSE")
    }


def test_nothing_comes_from_elsewhere() -> None:
    """Pages work on a machine without the internet."""
    for name in ("hotbed.css", "hotbed.js"):
        assert b"//" not in assets.content(name).replace(b"// ", b"")
