"""A sandbox's files: what the agent hands out is checked before anyone reads it."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from hotbed.errors import InvalidRequest, ProtocolError
from hotbed.runtime.sandboxes import ForkBox
from tests.unit.runtime.test_sandboxes import Agent, boxed


def answered(method: str, *arguments: Any, answer: dict[str, Any], fds: tuple[int, ...] = ()) -> Any:
    """What a method makes of an agent's answer, or what it raises."""
    found: list[Any] = []

    async def test(box: ForkBox, agent: Agent) -> None:
        asked = asyncio.gather(getattr(box, method)(*arguments), return_exceptions=True)
        await agent.answer(answer, fds=fds)
        found.extend(await asked)

    boxed(test)
    return found[0]


def test_regular_file_comes_with_its_size() -> None:
    """The size is what the kernel says, not the agent."""
    memory = os.memfd_create("file")
    os.write(memory, b"12345")

    fd, size = answered("open", "/work/x", "r", answer={"op": "opened", "size": 1 << 50}, fds=(memory,))

    assert size == 5
    os.close(fd)
    os.close(memory)


@pytest.mark.parametrize("method", ["open", "pack"])
def test_descriptor_of_another_kind_is_refused(method: str) -> None:
    """A pipe would block whoever reads a file; a file would never end as a stream does."""
    kinds = {"open": os.pipe()[0], "pack": os.memfd_create("file")}
    arguments = ("/work/x", "r") if method == "open" else ("/work/x",)

    error = answered(method, *arguments, answer={"op": "opened"}, fds=(kinds[method],))

    assert isinstance(error, ProtocolError)


def test_answer_without_its_descriptor_is_refused() -> None:
    """Or with two."""
    assert isinstance(answered("open", "/work/x", "r", answer={"op": "opened"}), ProtocolError)


def test_facts_about_a_file_come_without_the_protocols_words() -> None:
    """What the agent says of it."""
    assert answered("files", "stat", "/work", answer={"op": "done", "size": 1}) == {"size": 1}


def test_number_of_members_is_a_number() -> None:
    """Whatever was said."""
    source = os.open("/dev/null", os.O_RDONLY)

    assert answered("unpack", "/work", source, answer={"op": "unpacked", "files": "many"}) == 0


def test_path_that_cannot_name_a_file_is_refused_before_the_agent_is_asked() -> None:
    """And the source is closed all the same."""

    async def test(box: ForkBox, agent: Agent) -> None:
        source = os.open("/dev/null", os.O_RDONLY)
        with pytest.raises(InvalidRequest):
            await box.unpack("work", source)
        with pytest.raises(OSError):
            os.fstat(source)

    boxed(test)
