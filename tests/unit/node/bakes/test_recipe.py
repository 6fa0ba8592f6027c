"""A recipe is all that goes into a template, and is refused before anything is done."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.node.bakes.recipe import Recipe, recipe_of
from hotbed.runtime.base import Limits
from hotbed.wire.templates import CreateTemplate, Ready


def made(*, stranger: bool = False, **request: Any) -> Recipe:
    """The recipe of a request."""
    return recipe_of(CreateTemplate(name="x", **request), Limits(), stranger=stranger)


def test_a_recipe_comes_back_from_json() -> None:
    """A node that was killed takes it up again."""
    ready = Ready(cmd="a", http="http://localhost:1/", ports=(1, 2), env={"B": "2"})
    recipe = made(image="debian:12", setup=("a", "b"), ready=ready, env={"A": "1"}, preload=("json",), stranger=True)

    assert Recipe.from_plain(json.loads(json.dumps(recipe.to_plain()))) == recipe
    assert recipe.variables() == {"A": "1", "B": "2"} and recipe.image == "docker://debian:12"


def test_a_layers_recipe_covers_commands_and_variables() -> None:
    """And its digest everything."""
    recipes = [made(setup=("a",)), made(setup=("b",)), made(setup=("a",), env={"A": "1"})]

    assert len({recipe.setup_recipe(1) for recipe in recipes}) == 3
    assert len({recipe.digest() for recipe in recipes}) == 3


@pytest.mark.parametrize(
    "request_",
    [
        {"image": "???"},
        {"ready": Ready(http="http://localhost/")},
    ],
)
def test_what_cannot_be_had_is_refused(request_: dict[str, Any]) -> None:
    """By what is missing."""
    with pytest.raises(InvalidRequest):
        made(**request_)


def test_what_setup_may_reach_is_part_of_the_recipe() -> None:
    """Other packages may come of it."""
    recipes = [made(setup=("a",)), made(setup=("a",), egress={"mode": "open"})]

    assert len({recipe.setup_recipe(1) for recipe in recipes}) == 2
    assert Recipe.from_plain(json.loads(json.dumps(recipes[1].to_plain()))) == recipes[1]


def test_a_stranger_may_not_name_files_of_this_machine() -> None:
    """This machine's user may."""
    for image in ("rootfs:/etc", "oci:/srv/x", "docker-archive:/x.tar"):
        assert made(image=image).image == image
        with pytest.raises(InvalidRequest, match="server's machine"):
            made(image=image, stranger=True)
