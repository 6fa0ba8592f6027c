"""Answers kept by their requests."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.runtime.egress.recordings import Recording, Reply, Turns, key_of, unpack

REPLY = Reply(status=200, headers=((b"content-type", b"text/plain"),), body=b"line\nand more\x00")


def test_an_answer_is_kept_whole() -> None:
    """Bytes and all."""
    assert unpack(REPLY.pack()) == REPLY


def test_a_request_is_known_by_what_chooses_its_answer() -> None:
    """And by nothing that differs between two of the same."""
    key = key_of(b"GET", "http://a.org:80/", [(b"Accept", b"x"), (b"user-agent", b"one")], b"")

    assert key == key_of(b"GET", "http://a.org:80/", [(b"user-agent", b"two"), (b"accept", b"x")], b"")
    assert len({key, key_of(b"POST", "http://a.org:80/", [(b"accept", b"x")], b""), key_of(b"GET", "x", [], b"y")}) == 3


def test_the_same_request_again_is_another() -> None:
    """Its answer may have changed."""
    turns = Turns()

    assert [turns.next("a"), turns.next("b"), turns.next("a")] == ["a-1", "b-1", "a-2"]


def test_of_those_who_ask_at_once_one_fetches() -> None:
    """The others hear the same, and so does who asks later."""

    async def act() -> tuple[int, int, list[str]]:
        kept: list[str] = []
        recording = Recording(lambda key, _: kept.append(key))
        fetched = 0

        async def fetch() -> Reply:
            nonlocal fetched
            fetched += 1
            await asyncio.sleep(0.01)
            return REPLY

        heard = await asyncio.gather(*(recording.reply("a-1", fetch) for _ in range(5)))
        heard.append(await recording.reply("a-1", None))
        return fetched, sum(reply == REPLY for reply in heard), kept

    assert asyncio.run(act()) == (1, 6, ["a-1"])


def test_who_waits_for_one_that_failed_asks_itself() -> None:
    """A failure is no answer, and is not kept."""

    async def act() -> Reply | None:
        recording = Recording(lambda *_: None)

        async def fail() -> Reply:
            await asyncio.sleep(0.01)
            raise ConnectionResetError

        async def fetch() -> Reply:
            return REPLY

        failing = asyncio.ensure_future(recording.reply("a-1", fail))
        await asyncio.sleep(0)
        found = await recording.reply("a-1", fetch)
        with pytest.raises(ConnectionResetError):
            await failing
        return found

    assert asyncio.run(act()) == REPLY


def test_a_sealed_one_has_what_it_has() -> None:
    """And nothing else."""

    async def act() -> tuple[Reply | None, Reply | None]:
        recording = Recording(lambda *_: None)
        recording.add("a-1", REPLY)
        return await recording.reply("a-1", None), await recording.reply("a-2", None)

    assert asyncio.run(act()) == (REPLY, None)
