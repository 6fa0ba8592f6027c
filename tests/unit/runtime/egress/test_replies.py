"""HTTP that is recorded, between a program and a server of this process."""

from __future__ import annotations

import asyncio

from hotbed.runtime.egress.recordings import Recording
from tests.support.wards import ask, knock, local, ward


def test_a_sealed_recording_refuses_by_name_what_it_lacks() -> None:
    """Nobody is dialled."""

    async def act() -> tuple[bytes, dict[str, object]]:
        found = ward(local(80), a_org="127.0.0.1")
        found.recording, found.sealed = Recording(lambda *_: None), True
        sock = knock(found)
        said = await ask(sock, b"GET http://a.org/x HTTP/1.1\r\nHost: a.org\r\n\r\n")
        sock.close()
        tally = found.tally.take()
        await found.close()
        return said, tally

    said, tally = asyncio.run(act())

    assert said.startswith(b"HTTP/1.1 403") and b"not in the recording: GET http://a.org:80/x" in said
    assert (tally["denied"], tally["allowed"]) == (1, 0)
