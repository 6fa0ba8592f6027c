"""What a template of an image is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hotbed.runtime import imageview
from hotbed.runtime.base import TemplateSpec
from hotbed.runtime.images.record import DEFAULT_PATH, ImagePython, ImageRecord

DIGEST = "sha256:" + "1" * 64
RECORD = ImageRecord(digest=DIGEST, source="s", layers=(DIGEST, DIGEST), env=(("A", "image"), ("B", "image")))
WITH_PYTHON = replace(RECORD, python=ImagePython(executable="/usr/bin/python3", version="3.12"), workdir="/app")
SPEC = TemplateSpec(name="x", image=DIGEST, env=(("B", "own"),), preload=("json",))


def view(record: ImageRecord) -> imageview.ImageView:
    """Its view, with one tree mounted."""
    return imageview.describe(record, [Path("/l/low"), Path("/l/high")], [("/tmp", "/env")])


def test_sandboxes_get_the_images_variables_then_the_templates() -> None:
    """And a path and a home where the image says nothing."""
    env = view(RECORD).env(dict(SPEC.env))

    assert (env["A"], env["B"], env["PATH"], env["HOME"]) == ("image", "own", DEFAULT_PATH, "/root")


def test_an_images_python_is_the_template() -> None:
    """With its own preloads, in the image's tree."""
    plan, config = imageview.as_plan(view(WITH_PYTHON), {}), imageview.as_config(view(WITH_PYTHON), SPEC)

    assert plan["executable"] == "/usr/bin/python3" and plan["inside"] and plan["trees"] == []
    assert config["python"] is True and "preload" not in config and config["cwd"] == "/app"


def test_without_one_this_hosts_serves_and_shows_nothing() -> None:
    """It preloads what its agent needs, for its files are not to be seen from a sandbox."""
    plan, config = imageview.as_plan(view(RECORD), {}), imageview.as_config(view(RECORD), SPEC)

    assert plan["trees"] and not plan["inside"]
    assert config["python"] is False and "tarfile" in config["preload"] and config["programs"] == []
    assert config["attached"] == ["/env", "/dev"] and config["cwd"] == "/work"


def test_the_highest_layer_comes_first() -> None:
    """As an overlay reads them."""
    assert imageview.as_plan(view(RECORD), {})["layers"] == ["/l/low", "/l/high"]
    assert imageview.as_config(view(RECORD), SPEC)["lowers"] == ["/.hotbed/l/1", "/.hotbed/l/0"]
