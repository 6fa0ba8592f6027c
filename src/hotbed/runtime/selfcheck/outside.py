"""Attempts on the network and on the node."""

from __future__ import annotations

import os
import secrets
import socket
import struct
from collections.abc import Sequence

from hotbed.errors import Error, PortClosed, SandboxFailed
from hotbed.guest.frames import pack
from hotbed.runtime.base import BoxRequest, ExecRequest, Limits
from hotbed.runtime.replay.pinner import Pinner
from hotbed.runtime.sandboxes import ForkBox
from hotbed.runtime.selfcheck.bench import Attempt, Bench, hold, shell_in
from hotbed.runtime.templates import Ended

_HOST = """
import json, socket
def reached(family, address):
    sock = socket.socket(family)
    sock.settimeout(2)
    try:
        sock.connect(address)
        return True
    except OSError:
        return False
print(json.dumps([reached(socket.AF_UNIX, "\\0{name}"), reached(socket.AF_INET, ("127.0.0.1", {port}))]))
"""
_EGRESS = """
import json, socket
found = []
for family, address in ((socket.AF_INET, ("8.8.8.8", 53)), (socket.AF_INET, ("169.254.169.254", 80)),
                        (socket.AF_INET6, ("2001:4860:4860::8888", 53))):
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        sock = socket.socket(family, kind)
        sock.settimeout(2)
        try:
            sock.connect(address)
            sock.send(b"x")
            found.append(address)
        except OSError:
            pass
try:
    found.append(socket.getaddrinfo("example.com", 80))
except OSError:
    pass
print(json.dumps(found))
"""
_LIES = (
    b"\xff" * 64,
    struct.pack("!II", 1 << 31, 0),
    struct.pack("!II", 2, 0) + b"[]",
    struct.pack("!II", 7, 0) + b"no json",
    pack({"op": "result", "id": "1", "status": "splendid", "stdout": 0, "stderr": 0}),
    pack({"op": "result", "id": "1", "status": "ok", "stdout": 5, "stderr": 0}, b"x"),
    pack({"op": "result", "id": "1", "status": "ok", "stdout": 1, "stderr": 0, "order": [[2, 1]]}, b"x"),
    pack({"op": "result", "id": "1", "status": "ok", "stdout": -1, "stderr": 1}),
    pack({"op": "result", "id": "1", "status": "ok", "exit_code": "0", "order": []}),
    pack({"op": "error", "code": "isolation_failed", "message": 7}),
)


async def no_host_network(bench: Bench) -> None:
    """Listeners of the host: on its loopback, and with an abstract name."""
    name = "hotbed-" + secrets.token_hex(8)
    with socket.socket(socket.AF_UNIX) as unix, socket.socket() as tcp:
        unix.bind("\0" + name)
        unix.listen()
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        reached = await bench.answer(_HOST.format(name=name, port=tcp.getsockname()[1]))
    hold(reached == [False, False], f"reached on the host (abstract socket, loopback): {reached}")


async def no_egress(bench: Bench) -> None:
    """Packets to the world, to a cloud's metadata, and a name lookup."""
    found = await bench.answer(_EGRESS)
    hold(found == [], f"left the sandbox: {found}")


async def ports_lead_inside(bench: Bench) -> None:
    """A port of the host's, by the way that leads to ports inside."""
    with socket.socket() as host:
        host.bind(("127.0.0.1", 0))
        host.listen()
        async with bench.box() as box:
            try:
                (await box.dial(host.getsockname()[1])).close()
            except PortClosed:
                return
    hold(False, "a connection into a sandbox reached the host's loopback")


class _Nobody:
    """A template that has nothing to kill."""

    def kill_box(self, box_id: int) -> None:
        """Nothing."""

    def wire(self, box_id: int, ports: Sequence[int], channel: int) -> None:
        """Nothing."""
        os.close(channel)


async def forged_frames_refused(bench: Bench) -> None:
    """An agent that says whatever it likes, while another sandbox goes on."""
    pinner = Pinner(bench.backend.launching.supervise)
    async with bench.box() as honest:
        for number, lie in enumerate(_LIES):
            ours, theirs = socket.socketpair()
            box = ForkBox(-number - 1, ours, _Nobody(), limits=Limits(), slot=None, pinner=pinner, request=BoxRequest())
            theirs.sendall(lie)
            theirs.shutdown(socket.SHUT_WR)
            try:
                outcome = await box.exec(ExecRequest(kind="code", program=b"pass", timeout_s=1.0))
            except Error:
                pass
            else:
                hold(False, f"a lie was believed: {outcome}")
            box.on_process_end(Ended(status=9, reason="over"))
            theirs.close()
        hold((await shell_in(honest, "echo fine")).stdout == b"fine\n", "another sandbox was harmed")


async def isolation_never_lowered(bench: Bench) -> None:
    """Limits and names that the kernel refuses: each makes a stage fail."""
    for request in (
        BoxRequest(hostname="x" * 80, use_spare=False),
        BoxRequest(limits=Limits(open_files=1 << 40), use_spare=False),
    ):
        box = await bench.template.fork(request)
        try:
            await box.exec(ExecRequest(kind="code", program=b"print(1)"))
        except SandboxFailed:
            continue
        finally:
            await box.kill()
        hold(False, f"a sandbox ran although a stage of its isolation failed: {request}")


ATTEMPTS = (
    Attempt(claim="no-host-network", run=no_host_network),
    Attempt(claim="no-egress", run=no_egress),
    Attempt(claim="ports-lead-inside", run=ports_lead_inside),
    Attempt(claim="forged-frames-refused", run=forged_frames_refused),
    Attempt(claim="isolation-never-lowered", run=isolation_never_lowered),
)
