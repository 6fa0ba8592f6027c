"""One line of text names an image, and says where it is looked for."""

from __future__ import annotations

import pytest

from hotbed.errors import InvalidRequest
from hotbed.runtime.images.sources import Source, parse


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("host", Source(kind="host")),
        ("template:mine", Source(kind="template", place="mine")),
        ("oci:/a/b", Source(kind="oci", place="/a/b")),
        ("oci:/a/b:v1.2", Source(kind="oci", place="/a/b", tag="v1.2")),
        ("docker-archive:/x.tar:a/b:c", Source(kind="docker-archive", place="/x.tar", tag="a/b:c")),
        ("deb:nodejs,g++", Source(kind="deb", place="nodejs,g++")),
        ("rootfs:/srv/root:odd", Source(kind="rootfs", place="/srv/root:odd")),
        ("docker://debian:12", Source(kind="registry", place="debian:12")),
        ("debian", Source(kind="registry", place="debian")),
        ("ghcr.io/a/b@sha256:" + "0" * 64, Source(kind="registry", place="ghcr.io/a/b@sha256:" + "0" * 64)),
        ("localhost:5000/x:y", Source(kind="registry", place="localhost:5000/x:y")),
    ],
)
def test_each_kind_of_source_is_told_by_its_text(text: str, source: Source) -> None:
    """And files of this machine are told from the rest."""
    assert parse(text) == source
    assert parse(str(source)) == source
    assert source.is_local == (source.kind in ("oci", "docker-archive", "rootfs", "deb"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "oci:rel",
        "rootfs:",
        "A B",
        "--flag",
        "x\0",
        "oci:/a:--b",
        "a" * 5000,
        "dir:/x",
        "deb:",
        "deb:a b",
        "deb:--x",
    ],
)
def test_what_names_no_source_is_refused(text: str) -> None:
    """An option of skopeo's most of all."""
    with pytest.raises(InvalidRequest):
        parse(text)
