"""HTTP that is recorded: a request is read whole, known by its hash, and answered from the recording if that has it."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

import h11

from hotbed.egress.decisions import NOT_RECORDED, Target, Verdict, Way
from hotbed.runtime.egress import sockets
from hotbed.runtime.egress.flow import Flow
from hotbed.runtime.egress.recordings import BODY_LIMIT, Reply, key_of
from hotbed.runtime.egress.targets import Refused

if TYPE_CHECKING:
    from hotbed.runtime.egress.web import Web

_PATIENCE_S = 120.0
_CHUNK = 1 << 18
_HOP = (b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"trailer", b"upgrade")
_BODILESS = (204, 304)
_TEXT = 200


async def answer(web: Web, flow: Flow, request: h11.Request, target: Target, way: Way, path: bytes) -> bool:
    """Answer an allowed request; whether another may follow. Raises `Refused` for what a sealed recording lacks."""
    recording = web.ward.recording
    assert recording is not None
    body = await _whole(web)
    named = Target(port=target.port, name=way.name or target.name, address=target.address)
    url = f"{'https' if web.sni else 'http'}://{named.shown}:{named.port}{path.decode('latin-1')}"
    key = web.ward.turns.next(key_of(request.method, url, request.headers, body))
    fetch = partial(_fetch, web, flow, request, body, target, way, path)
    reply = await recording.reply(key, None if web.ward.sealed else fetch)
    if reply is None:
        raise flow.refuse(named, Verdict(allowed=False, reason=f"{NOT_RECORDED}: {flow.method} {url[:_TEXT]}"))
    if not flow.is_told():
        flow.allow(named, None, Verdict(allowed=True, reason="from the recording"))
    await _give(web, flow, request, reply)
    return True


async def _whole(web: Web) -> bytes:
    await web.ask_for_body()
    data = bytearray()
    async for event in web.body():
        if isinstance(event, h11.Data):
            data += event.data
        if len(data) > BODY_LIMIT:
            raise Refused(f"more than {BODY_LIMIT >> 20} MiB cannot be recorded")
    return bytes(data)


async def _fetch(
    web: Web, flow: Flow, request: h11.Request, body: bytes, target: Target, way: Way, path: bytes
) -> Reply:
    """The answer from outside, whole, and free of what was added to its request."""
    whole = web.with_added(request, target)
    kept = [(name, value) for name, value in whole.headers if name not in (*_HOP, b"accept-encoding", b"expect", b"te")]
    framed = [*kept, (b"connection", b"close"), *([(b"content-length", b"%d" % len(body))] if body else [])]
    async with web.outside(flow, target, way) as outer:
        theirs = h11.Connection(h11.CLIENT)
        said = theirs.send(h11.Request(method=request.method, target=path, headers=framed)) or b""
        said += (theirs.send(h11.Data(data=body)) or b"") + (theirs.send(h11.EndOfMessage()) or b"")
        flow.count_up(len(said))
        await sockets.send(outer, said, _PATIENCE_S)
        reply = await _heard(theirs, outer)
    headers = tuple((name, web.mask.whole(value)) for name, value in reply.headers)
    return Reply(status=reply.status, headers=headers, body=web.mask.whole(reply.body))


async def _heard(theirs: h11.Connection, outer: object) -> Reply:
    from hotbed.runtime.egress.web import next_event

    status, data = 0, bytearray()
    headers: tuple[tuple[bytes, bytes], ...] = ()
    while True:
        event = await next_event(theirs, outer, _PATIENCE_S)  # type: ignore[arg-type]  # a socket
        if isinstance(event, h11.Response):
            status = event.status_code
            headers = tuple((name, value) for name, value in event.headers if name not in _HOP)
        elif isinstance(event, h11.Data):
            data += event.data
            if len(data) > BODY_LIMIT:
                raise Refused(f"more than {BODY_LIMIT >> 20} MiB cannot be recorded")
        elif isinstance(event, h11.EndOfMessage):
            return Reply(status=status, headers=headers, body=bytes(data))
        elif not isinstance(event, h11.InformationalResponse):
            raise ConnectionResetError("it ended in its answer")


def words_of(status: int) -> bytes:
    """What a status is called, which is what many programs show of a refusal."""
    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b""


async def _give(web: Web, flow: Flow, request: h11.Request, reply: Reply) -> None:
    headers = list(reply.headers)
    bodiless = request.method == b"HEAD" or reply.status in _BODILESS
    if not bodiless:
        headers.append((b"content-length", b"%d" % len(reply.body)))
    head = h11.Response(status_code=reply.status, headers=headers, reason=words_of(reply.status))
    events = [head, h11.Data(data=reply.body), h11.EndOfMessage()]
    await web.hand_in(flow, *(events if not bodiless else (events[0], events[2])))
