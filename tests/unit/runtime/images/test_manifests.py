"""What an image consists of, from each place that it can be in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotbed.errors import InvalidRequest
from hotbed.runtime.images import manifests
from hotbed.runtime.images.manifests import BadImage
from hotbed.runtime.images.sources import parse
from hotbed.runtime.images.streams import BadBlob
from tests.support.images import Layout, digest, docker_archive, entry, layer

ONE, TWO = layer(entry("one", b"1")), layer(entry("two", b"2"))


def test_a_layouts_image_has_its_layers_in_order(tmp_path: Path) -> None:
    """And of its config what a sandbox can honour; the rest is said."""
    wanted = Layout(tmp_path / "l").add(
        [ONE, TWO], Env=["A=1", "B=x=y", "bad"], WorkingDir="/app", User="web", Cmd=["x"]
    )

    found = manifests.read(parse(f"oci:{tmp_path}/l"))

    assert found.digest == wanted and [b.diff_id for b in found.layers] == [digest(ONE), digest(TWO)]
    assert found.env == (("A", "1"), ("B", "x=y")) and found.workdir == "/app"
    assert any("USER web" in note for note in found.notes) and any("CMD" in note for note in found.notes)


def test_this_machines_image_is_picked_of_several(tmp_path: Path) -> None:
    """An index lists one for each architecture."""
    layout = Layout(tmp_path / "l")
    layout.add([ONE], architecture="s390x")
    wanted = layout.add([TWO], architecture=manifests.architecture())

    assert manifests.read(parse(f"oci:{tmp_path}/l:latest")).digest == wanted


def test_an_image_of_another_machine_is_refused(tmp_path: Path) -> None:
    """By name: it would not run."""
    Layout(tmp_path / "l").add([ONE], architecture="s390x")

    with pytest.raises(BadImage, match="s390x"):
        manifests.read(parse(f"oci:{tmp_path}/l"))


def test_an_index_in_an_index_is_followed(tmp_path: Path) -> None:
    """As registries nest them."""
    layout = Layout(tmp_path / "l")
    wanted = layout.add([ONE])
    index = json.loads((tmp_path / "l/index.json").read_text())
    outer = layout.blob(json.dumps(index).encode(), "application/vnd.oci.image.index.v1+json")
    (tmp_path / "l/index.json").write_text(json.dumps({"manifests": [outer]}))

    assert manifests.read(parse(f"oci:{tmp_path}/l")).digest == wanted


def test_one_of_several_tags_has_to_be_named(tmp_path: Path) -> None:
    """Nothing is guessed."""
    layout = Layout(tmp_path / "l")
    first, second = layout.add([ONE], "a"), layout.add([TWO], "b")

    assert [manifests.read(parse(f"oci:{tmp_path}/l:{tag}")).digest for tag in "ab"] == [first, second]
    with pytest.raises(BadImage, match="several"):
        manifests.read(parse(f"oci:{tmp_path}/l"))
    with pytest.raises(BadImage, match="no image"):
        manifests.read(parse(f"oci:{tmp_path}/l:c"))


def test_a_config_that_was_changed_is_told(tmp_path: Path) -> None:
    """Its digest is the image's name."""
    layout = Layout(tmp_path / "l")
    layout.path(layout.add([ONE])).write_bytes(b"{}")

    with pytest.raises(BadBlob):
        manifests.read(parse(f"oci:{tmp_path}/l"))


def test_a_digest_cannot_lead_to_another_file(tmp_path: Path) -> None:
    """It is whatever the index says."""
    layout = Layout(tmp_path / "l")
    layout.add([ONE])
    bad = {"manifests": [{"digest": "sha256:../../../../etc/passwd", "size": 1}]}
    (tmp_path / "l/index.json").write_text(json.dumps(bad))

    with pytest.raises(InvalidRequest):
        manifests.read(parse(f"oci:{tmp_path}/l"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"manifests": 3}', '{"manifests": [{}]}', "[" * 100_000])
def test_a_broken_index_is_a_bad_image(tmp_path: Path, text: str) -> None:
    """Whatever is wrong with it."""
    Layout(tmp_path / "l")
    (tmp_path / "l/index.json").write_text(text)

    with pytest.raises(BadImage):
        manifests.read(parse(f"oci:{tmp_path}/l"))


def test_layers_of_an_archive_are_read_where_they_are(tmp_path: Path) -> None:
    """Nothing of it is unpacked for that."""
    wanted = docker_archive(tmp_path / "a.tar", [ONE, TWO], Env=["A=1"])

    found = manifests.read(parse(f"docker-archive:{tmp_path}/a.tar"))

    assert found.digest == wanted
    data = (tmp_path / "a.tar").read_bytes()
    assert [data[b.offset : b.offset + b.length] for b in found.layers] == [ONE, TWO]


def test_an_archive_that_is_none_says_so(tmp_path: Path) -> None:
    """Also one that lists what it does not have, or whose config was changed."""
    (tmp_path / "a.tar").write_bytes(b"x" * 2000)
    manifest = json.dumps([{"Config": "c.json", "Layers": ["missing"]}]).encode()
    (tmp_path / "b.tar").write_bytes(layer(entry("manifest.json", manifest), entry("c.json", b"{}")))
    changed = json.dumps([{"Config": "0" * 64 + ".json", "Layers": []}]).encode()
    (tmp_path / "c.tar").write_bytes(layer(entry("manifest.json", changed), entry("0" * 64 + ".json", b"{}")))

    for name in "abc":
        with pytest.raises((BadImage, BadBlob)):
            manifests.read(parse(f"docker-archive:{tmp_path}/{name}.tar"))


def test_a_root_is_an_image_of_one_layer(tmp_path: Path) -> None:
    """A tar or a folder."""
    (tmp_path / "r.tar").write_bytes(ONE)

    assert [b.length for b in manifests.read(parse(f"rootfs:{tmp_path}/r.tar")).layers] == [len(ONE)]
    assert len(manifests.read(parse(f"rootfs:{tmp_path}")).layers) == 1


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("hello:one", "hello:one"),
        ("docker.io/library/hello:one", "hello:one"),
        ("hello:one", "docker.io/library/hello:one"),
        ("hello:latest", "hello"),
        ("me/hello:1", "docker.io/me/hello:1"),
        ("localhost:5000/a:b", "localhost:5000/a:b"),
    ],
)
def test_an_archives_image_is_named_as_people_do(written: str, asked: str) -> None:
    """`docker save` leaves out what skopeo writes."""
    manifests_json = [{"RepoTags": None}, {"RepoTags": [written], "Config": "c"}]

    assert manifests._chosen(manifests_json, asked, "a.tar")["Config"] == "c"
    with pytest.raises(BadImage, match="it has"):
        manifests._chosen(manifests_json, "other:one", "a.tar")
