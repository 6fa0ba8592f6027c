"""Built-in templates on a machine that lacks what they need."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import AtCapacity, BadImage, TemplateFailed
from hotbed.node.catalog import Catalog, Need
from hotbed.runtime.base import TemplateSpec

NEEDS = {
    "here": Need(program="sh", modules=("json",)),
    "packages": Need(modules=("no_such_module_here",), pip=("no-such",)),
    "programs": Need(program="no-such-program", debian=("no-such",)),
}


class Builder:
    """Makes what it is asked for, or fails."""

    def __init__(self, home: Path) -> None:
        self.home, self.asked = home, list[str]()
        self.fails = False

    def packages(self, name: str) -> Path:
        """A folder of the test's."""
        return self.home / name

    async def install(self, packages: tuple[str, ...], name: str) -> None:
        """A module in it."""
        self._ask(" ".join(packages))
        self.packages(name).mkdir()
        (self.packages(name) / "no_such_module_here.py").write_text("")

    async def build(self, source: str, on_progress: Any) -> Any:
        """A record."""
        self._ask(source)
        return type("Record", (), {"digest": "sha256:made"})

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.fails:
            raise BadImage("no mirror")


def run(tmp_path: Path, test: Any) -> None:
    """With a catalog."""

    async def scenario() -> None:
        builder = Builder(tmp_path)
        backend: Any = type("Backend", (), {"builder": builder})
        catalog = Catalog(backend, NEEDS)
        await test(catalog, builder)
        await catalog.close()

    before = list(sys.path)
    try:
        asyncio.run(scenario())
    finally:
        sys.path[:] = before


async def made(catalog: Catalog, name: str) -> TemplateSpec:
    """What is made, once it is."""
    with pytest.raises(AtCapacity, match="being made") as refused:
        catalog.complete(TemplateSpec(name=name))
    assert refused.value.retry_after_s
    await asyncio.gather(*catalog._tasks.values())
    return catalog.complete(TemplateSpec(name=name))


def test_what_this_machine_has_is_taken_as_it_is(tmp_path: Path) -> None:
    """And what is no built-in, whatever it needs."""

    async def test(catalog: Catalog, builder: Builder) -> None:
        for name in ("here", "mine"):
            assert catalog.complete(TemplateSpec(name=name)) == TemplateSpec(name=name)
        assert builder.asked == []

    run(tmp_path, test)


def test_packages_are_installed_once_and_found_then(tmp_path: Path) -> None:
    """Of two who ask meanwhile, both are told to ask again."""

    async def test(catalog: Catalog, builder: Builder) -> None:
        assert await made(catalog, "packages") == TemplateSpec(name="packages")
        assert catalog.complete(TemplateSpec(name="packages")) == TemplateSpec(name="packages")
        assert builder.asked == ["no-such"]

    run(tmp_path, test)


def test_a_program_comes_as_an_image(tmp_path: Path) -> None:
    """Of Debian packages."""

    async def test(catalog: Catalog, builder: Builder) -> None:
        assert (await made(catalog, "programs")).image == "sha256:made"
        assert builder.asked == ["deb:no-such"]

    run(tmp_path, test)


def test_what_cannot_be_made_says_why_and_is_tried_again_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by each request, nor never."""

    async def test(catalog: Catalog, builder: Builder) -> None:
        builder.fails = True
        with pytest.raises(TemplateFailed, match="no mirror") as refused:
            await made(catalog, "programs")
        assert "apt-get install no-such" in (refused.value.hint or "")
        with pytest.raises(TemplateFailed):
            catalog.complete(TemplateSpec(name="programs"))
        assert len(builder.asked) == 1
        builder.fails = False
        monkeypatch.setattr("hotbed.node.catalog._AGAIN_S", 0.0)
        assert (await made(catalog, "programs")).image == "sha256:made"

    run(tmp_path, test)
