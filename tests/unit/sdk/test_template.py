"""Templates as their users meet them, against a real node."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hotbed.errors import BakeFailed, DeadlineExceeded, InvalidRequest, UnknownTemplate
from hotbed.sdk.client import Client
from hotbed.sdk.connect import aconnect
from hotbed.sdk.rollouts import rollout_once
from hotbed.sdk.template import Template
from hotbed.wire.templates import Ready, TemplateRow


def test_a_template_is_baked_used_and_deleted(client: Client) -> None:
    """Its phases are told on the way."""
    phases: list[str] = []
    ready = Ready(cmd="true", env={"B": "2"})
    template = Template.bake(
        client, name="made", env={"A": "1"}, ready=ready, on_progress=lambda r: phases.append(r.phase)
    )

    assert template.row.phase == "Live" == phases[-1] and template.status().name == "made"
    assert rollout_once("made", command="echo $A$B", client=client).stdout == "12\n"
    assert "made" in repr(template)
    template.delete()
    with pytest.raises(UnknownTemplate):
        client.template("made")


def test_a_bake_that_fails_raises_with_the_reason(client: Client) -> None:
    """And can be asked about afterwards."""
    with pytest.raises(BakeFailed, match="exit 3: why"):
        Template.bake(client, name="bad", ready=Ready(cmd="echo why; exit 3"))

    assert client.template("bad").phase == "Failed"
    client.delete_template("bad")


def test_waiting_has_an_end_and_the_bake_goes_on(client: Client) -> None:
    """Until it is given up."""
    with pytest.raises(DeadlineExceeded, match="goes on"):
        Template.bake(client, name="slow", ready=Ready(cmd="sleep 60"), timeout_s=0.01)

    client.delete_template("slow")


def test_a_string_is_no_list_of_commands(client: Client) -> None:
    """It is one of letters."""
    with pytest.raises(InvalidRequest, match="setup is one string"):
        Template.bake(client, name="x", setup="make")


def test_images_are_what_templates_are_made_from(client: Client) -> None:
    """The catalog first."""
    assert {"python", "bash"} <= {image.id for image in client.images()}


def test_the_asynchronous_bake_is_the_same(client: Client) -> None:
    """On an event loop."""

    async def scenario() -> None:
        async with await aconnect(client.url) as other:
            template = await Template.abake(other, name="amade", ready=Ready(cmd="true"))
            assert template.row.phase == "Live" and (await other.template("amade")).phase == "Live"
            assert {image.id for image in await other.images()} >= {"python"}
            await other.delete_template("amade")

    asyncio.run(scenario())


def test_what_is_final_is_told_from_what_is_not(client: Client) -> None:
    """By the row alone."""
    row = TemplateRow(id="x", name="x", image="host")
    seen: list[TemplateRow] = []

    assert not Template(client.link, row).is_final(seen.append, 1e12)
    assert Template(client.link, replace(row, phase="Live")).is_final(seen.append, 0.0)
    assert len(seen) == 2


def test_sandboxes_can_be_expected(client: Client) -> None:
    """Before a step, and no more after it."""
    assert client.expect("python", 3).name == "python"
    assert client.release("python").name == "python"

    async def scenario() -> None:
        async with await aconnect(client.url) as other:
            assert (await other.expect("python", 3)).name == "python"
            assert (await other.release("python")).name == "python"

    asyncio.run(scenario())
