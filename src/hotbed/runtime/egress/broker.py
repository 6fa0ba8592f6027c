"""The broker: one process of a node that holds the doors of all its sandboxes, and every connection out of them.

It is a process of its own because what it reads comes from programs nobody trusts: it holds no sandbox, no key and no
ledger, and when it is killed, its doors close with it and nothing leaves any more. As root it gives its rights up for
those of the unprivileged id that sandboxes have. It ends with the node's channel.

Node to broker, as frames: `watch` (names that give answers away), `open` with a sandbox's id, its policy and a channel
over which its template sends the doors (`parked`: nothing is accepted before a `policy`); `doors` with another such
channel; `policy`; `report`; `close`; `signed`; `recording`, `recorded` and `forget` (answers that were kept). Broker to
node: `opened` with a witness (see `doorway`) or `broken`; `knock` (something was dialled in a parked sandbox: under
which policy?); `report`, `decisions`, `closed`, `sign` (a certificate is needed), `keep` (an answer).
"""

from __future__ import annotations

import asyncio
import encodings.idna
import json
import os
import resource
import socket
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NoReturn

import uvloop

from hotbed.egress.entries import Entry, entry_of
from hotbed.egress.policy import NONE, Policy, parse
from hotbed.egress.secrets import secret_of
from hotbed.guest import frames, kernel
from hotbed.guest.frames import Header
from hotbed.runtime.egress import doors, lookups, tls
from hotbed.runtime.egress.certificates import Certificates
from hotbed.runtime.egress.pace import Pace
from hotbed.runtime.egress.recordings import Recording, unpack
from hotbed.runtime.egress.relay import Pipes
from hotbed.runtime.egress.resolving import Resolver
from hotbed.runtime.egress.ward import Ward
from hotbed.runtime.link import Link, close_all
from hotbed.runtime.linux import identity

NAME = "hotbed-egress"  # in the host's list of processes
PROXY_PORT, DNS_PORT = 3128, 53
_BODY_LIMIT = 64 << 20
_MESSAGE_LIMIT = 1 << 16
_FDS_ROOM = socket.CMSG_SPACE(frames.FDS_LIMIT * 4)
_TELL_EVERY_S = 0.5
_SWEEP_TURNS = 60


class Broker:
    """Serves one node."""

    def __init__(self, control: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._wards: dict[int, Ward] = {}
        self._resolver = Resolver()
        self._recordings: dict[str, Recording] = {}
        self._certificates = Certificates(lambda name: self._link.post({"op": "sign", "name": name}))
        self._pipes = Pipes()
        self._pace = Pace()
        self._watched: tuple[Entry, ...] = ()
        self._turn = 0
        self._closing: set[asyncio.Task[None]] = set()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        self._link = Link(control, body_limit=_BODY_LIMIT, on_frame=self._on_frame, on_end=self._on_end)
        self._timer = self._loop.call_later(_TELL_EVERY_S, self._tell_all)

    def _on_frame(self, header: Header, body: bytes, fds: list[int]) -> None:
        if "id" in header:
            self._on_ward(header, header["id"], fds)
        else:
            self._on_news(header, body)
        close_all(fds)

    def _on_news(self, header: Header, body: bytes) -> None:
        """What is about no sandbox of its own."""
        op = header["op"]
        if op == "signed":
            self._certificates.tell(header["name"], body)
        elif op == "watch":
            self._watched = tuple(entry_of(item, "watch") for item in header["entries"])
        elif op == "recording":
            self._recordings[header["name"]] = Recording(partial(self._keep, header["name"]))
        elif op == "recorded":
            self._recordings[header["name"]].add(header["key"], unpack(body))
        elif op == "forget":
            self._recordings.pop(header["name"], None)

    def _on_ward(self, header: Header, number: int, fds: list[int]) -> None:
        op, ward = header["op"], self._wards.get(number)
        if op == "open":
            ward = self._begin(number, header)
        if op in ("open", "doors") and ward is not None and fds:
            self._await_doors(number, ward, socket.socket(fileno=fds.pop()))
        elif op == "policy" and ward is not None:
            self._change(ward, header)
            if header["ask"]:
                self._link.post({"op": "changed", "id": number, "ask": header["ask"]})
        elif op == "report":
            self._report(number, ward, header["ask"])
        elif op == "close":
            self._close(number)

    def _begin(self, number: int, header: Header) -> Ward:
        """A sandbox's ward. Asked for again, it is the same: one that was replaced would keep its doors and policy."""
        ward = self._wards.get(number)
        if ward is None:
            parked = header.get("parked", False)
            knock = partial(self._knock, number) if parked else None
            ward = Ward(NONE, self._watched, self._resolver, self._pipes, self._pace, on_knock=knock)
            ward.certificates = self._certificates
            self._wards[number] = ward
            if parked:
                return ward
        self._change(ward, header)
        return ward

    def _knock(self, number: int) -> None:
        self._link.post({"op": "knock", "id": number})

    def _change(self, ward: Ward, header: Header) -> None:
        ward.recording, ward.sealed = self._recordings.get(header.get("recording", "")), header.get("sealed", False)
        ward.secrets = tuple(secret_of("secret", item) for item in header.get("secrets", ()))
        ward.change(policy_in(header["policy"]))

    def _keep(self, name: str, key: str, reply: bytes) -> None:
        self._link.post({"op": "keep", "name": name, "key": key}, reply)

    def _await_doors(self, number: int, ward: Ward, channel: socket.socket) -> None:
        channel.setblocking(False)
        self._loop.add_reader(channel.fileno(), self._on_doors, number, ward, channel)

    def _on_doors(self, number: int, ward: Ward, channel: socket.socket) -> None:
        try:
            data, ancillary, _, _ = channel.recvmsg(_MESSAGE_LIMIT, _FDS_ROOM, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        self._loop.remove_reader(channel.fileno())
        channel.close()
        fds = frames.unpack_fds(ancillary)
        try:
            if self._wards.get(number) is not ward:
                raise ValueError("it was closed")
            failed = _open_doors(ward, data, fds)
            self._link.give({"op": "opened", "id": number, "failed": failed}, ward.doorway.witness())
        except (ValueError, LookupError, TypeError, OSError) as error:
            self._link.post({"op": "broken", "id": number, "message": str(error)})
        finally:
            close_all(fds)

    def _report(self, number: int, ward: Ward | None, ask: int) -> None:
        if ward is None:
            self._link.post({"op": "report", "id": number, "ask": ask, "tally": None})
            return
        self._tell(number, ward)
        self._link.post({"op": "report", "id": number, "ask": ask, "tally": ward.tally.take()})

    def _close(self, number: int) -> None:
        ward = self._wards.pop(number, None)
        if ward is not None:
            task = self._loop.create_task(self._end(number, ward))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _end(self, number: int, ward: Ward) -> None:
        await ward.close()
        self._tell(number, ward)
        self._link.post({"op": "closed", "id": number, "tally": ward.tally.take()})

    def _tell(self, number: int, ward: Ward) -> None:
        rows = ward.tally.rows()
        if rows:
            self._link.post({"op": "decisions", "id": number, "rows": rows, "tally": ward.tally.take()})

    def _tell_all(self) -> None:
        self._turn += 1
        self._pace.wake()
        for number, ward in self._wards.items():
            self._tell(number, ward)
            if self._turn % _SWEEP_TURNS == 0:
                ward.end_idle()
        self._timer = self._loop.call_later(_TELL_EVERY_S, self._tell_all)

    def _on_end(self, reason: str) -> None:
        for ward in self._wards.values():
            ward.shut()
        self._timer.cancel()
        self._resolver.close()
        self._pipes.close()
        if not self.ended.done():
            self.ended.set_result(reason)


@lru_cache(maxsize=256)
def policy_in(text: str) -> Policy:
    """A policy as the node says it; most sandboxes have one of a few."""
    return parse(json.loads(text), {})


def _open_doors(ward: Ward, data: bytes, fds: list[int]) -> object:
    """Open what a template sent, taking descriptors from the list; the doors that it could not make.

    A template of an image is trusted no more than what runs in it. Raises `ValueError` and others for what is no door.
    """
    message: dict[str, Any] = json.loads(data) if data else {"error": "the sandbox has ended"}
    if "error" in message:
        raise ValueError(message["error"])
    for kind, port in message["doors"]:
        sock = socket.socket(fileno=fds[0])
        del fds[0]
        if not _is_door(sock, kind):
            sock.close()
            raise ValueError("what the template sent is no door")
        _open(ward, kind, port, sock)
    return message["failed"]


def _is_door(sock: socket.socket, kind: object) -> bool:
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    if kind == "udp":
        return sock.type == socket.SOCK_DGRAM
    return sock.type == socket.SOCK_STREAM and bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _open(ward: Ward, kind: str, port: int, sock: socket.socket) -> None:
    if kind == "udp":
        ward.open_datagrams(sock, partial(lookups.on_datagrams, ward))
    elif port == DNS_PORT:
        ward.open_door(sock, partial(lookups.serve_stream, ward))
    else:
        ward.open_door(sock, partial(doors.proxied if port == PROXY_PORT else doors.dialled, ward))


_LOADED = (encodings.idna,)  # what is first needed later: then this process may not be able to read it any more


def give_up_rights() -> None:
    """Be nobody in particular, and take as many descriptors as there may be."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    ids = identity.mine()
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(ids.gid, ids.gid, ids.gid)
        os.setresuid(ids.uid, ids.uid, ids.uid)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)


async def _serve(control: socket.socket) -> None:
    await Broker(control).ended


def run(control: socket.socket) -> NoReturn:
    """Serve until the node is gone; then everything closes by the end of this process."""
    Path("/proc/self/comm").write_text(NAME)
    tls.outside()  # reads what this machine trusts, which may be for its user alone
    give_up_rights()
    uvloop.install()
    asyncio.run(_serve(control))
    os._exit(0)
