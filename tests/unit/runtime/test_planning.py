"""A spec becomes what two processes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.errors import NotFound, TemplateFailed
from hotbed.runtime import planning
from hotbed.runtime.base import TemplateSpec
from hotbed.runtime.images.record import ImageRecord
from hotbed.runtime.images.store import Store
from hotbed.runtime.imageview import ImageView

DIGEST = "sha256:" + "1" * 64


def stored(home: Path) -> Store:
    """A store with one image of one layer."""
    store = Store(home)
    store.prepare()
    store.commit(store.begin(None), DIGEST, {"size": 0, "entries": 0, "skipped": {}})
    store.put(ImageRecord(digest=DIGEST, source="s", layers=(DIGEST,)))
    return store


def test_the_host_needs_nothing_of_the_store(tmp_path: Path) -> None:
    """It is there."""
    spec = TemplateSpec(name="x", env=(("PYTHONX", "1"), ("Y", "2")))
    view, hold = planning.view_of(spec, Store(tmp_path))

    plan, config = planning.plan_of(spec, view, root="/r", networks=3)

    hold.close()
    assert plan["root"] == "/r" and plan["ids"]["uid"] != 0 and plan["env"]["Y"] == "2"
    assert config["environ"] == {"PYTHONX": "1"} and config["networks"] == 3 and "/dev" in config["attached"]


def test_an_image_is_held_while_its_template_is(tmp_path: Path) -> None:
    """Its layers are mounted there."""
    store = stored(tmp_path)
    spec = TemplateSpec(name="x", image=DIGEST)
    view, hold = planning.view_of(spec, store)

    plan, config = planning.plan_of(spec, view, root="/r", networks=3)

    assert isinstance(view, ImageView) and plan["layers"] == [str(store.layer(DIGEST))]
    assert config["lowers"] == ["/.hotbed/l/0"]
    assert not store.remove_layer(DIGEST)
    hold.close()


def test_an_image_that_went_is_said_to_have(tmp_path: Path) -> None:
    """With what to do about it."""
    with pytest.raises(NotFound, match="bake"):
        planning.view_of(TemplateSpec(name="x", image=DIGEST), stored(tmp_path / "a").__class__(tmp_path / "b"))


def test_a_view_that_cannot_be_had_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the image could never be removed again."""

    def describe(*_: object, **__: object) -> None:
        raise TemplateFailed("no such module")

    store = stored(tmp_path)
    monkeypatch.setattr("hotbed.runtime.imageview.describe", describe)
    with pytest.raises(TemplateFailed):
        planning.view_of(TemplateSpec(name="x", image=DIGEST), store)

    assert store.remove_layer(DIGEST)
