"""What a network with a policy costs: the same client beside the server and inside a sandbox, in turns.

The server is a process of its own on the loopback. The client's code is the same in both places; inside, each of its
connections is accepted by the broker, decided and dialled by it. A relayed connection says nothing that it could
read; an HTTP one is read request by request.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from benchmarks.baselines import settle
from benchmarks.lab import node
from benchmarks.measure import cpu_watch, interleaved, timings
from benchmarks.replay import PARKING_S
from benchmarks.rollouts import used
from benchmarks.rows import Row
from hotbed import Client, Sandbox, rollout_once

MEGABYTES = 1000
ROUNDS = 5

SERVER = r"""
import socket, threading
listener = socket.create_server(("127.0.0.1", 0), backlog=512)
print(listener.getsockname()[1], flush=True)
CHUNK = b"x" * (1 << 20)
def serve(sock):
    with sock:
        while data := sock.recv(4096):
            if data.startswith(b"GET "):
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
                return
            if data.startswith(b"bulk"):
                for _ in range(int(data[4:])):
                    sock.sendall(CHUNK)
                return
            sock.sendall(data)
while True:
    sock, _ = listener.accept()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=serve, args=(sock,), daemon=True).start()
"""

CLIENT = r"""
import json, socket, sys, time
port, count, megabytes = map(int, sys.argv[1:])
clock = time.perf_counter
def middle(action):
    taken = []
    for _ in range(count):
        begun = clock(); action(); taken.append(clock() - begun)
    return sorted(taken)[count // 2] * 1e3
def connect():
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock
def until_end(sock):
    size = 0
    buffer = bytearray(1 << 20)
    while got := sock.recv_into(buffer):
        size += got
    return size
def http():
    with connect() as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        until_end(sock)
def relayed():
    with connect() as sock:
        sock.sendall(b"\0hello")
        sock.recv(100)
held = connect()
def again():
    held.sendall(b"\0hello")
    held.recv(100)
again()
found = {"http": middle(http), "relayed": middle(relayed), "again": middle(again)}
begun = clock()
with connect() as sock:
    sock.sendall(b"bulk%d" % megabytes)
    size = until_end(sock)
found["rate"] = size / 1e6 / (clock() - begun)
print(json.dumps(found))
"""


def run(*, count: int) -> list[Row]:
    """One round."""
    with server() as port, node() as (client, pid), cpu_watch((pid,)) as cpu:
        policy = {"allow": [f"127.0.0.1:{port}"]}
        outside, inside = measured(client, policy, port, count=max(50, count // ROUNDS))
        forks = forked(client, policy, count=count)
    settle()
    return [*latencies(outside, inside), *rates(outside, inside, note=used(cpu)), *forks]


def measured(client: Client, policy: dict[str, Any], port: int, *, count: int) -> tuple[dict[str, float], ...]:
    """The client's numbers outside and inside, the best of several turns each."""
    words = [str(port), str(count), str(MEGABYTES)]
    turns: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
    with Sandbox("python", egress=policy, client=client) as sandbox:
        for _ in range(ROUNDS):
            outside = subprocess.run([sys.executable, "-c", CLIENT, *words], capture_output=True, check=True)
            turns[0].append(json.loads(outside.stdout))
            turns[1].append(json.loads(sandbox.exec(code=CLIENT, args=words, timeout_seconds=120).stdout))
    best = {"rate": max}
    return tuple({name: best.get(name, min)(one[name] for one in turn) for name in turn[0]} for turn in turns)


def latencies(outside: dict[str, float], inside: dict[str, float]) -> list[Row]:
    """What a request takes longer."""
    words = {
        "again": "a message on a connection that is relayed",
        "relayed": "a connection that is relayed, with its first answer",
        "http": "an HTTP request, with its connection",
    }
    rows = []
    for name, what in words.items():
        note = f"{outside[name]:.3f} ms outside, {inside[name]:.3f} inside"
        rows.append(Row(name=f"added to {what}", value=inside[name] - outside[name], unit="ms", bar=1.0, note=note))
    return rows


def rates(outside: dict[str, float], inside: dict[str, float], *, note: str) -> list[Row]:
    """How fast a download is."""
    return [
        Row(name="a download beside the server", value=outside["rate"], unit="MB/s", note=note),
        Row(name="the same inside a sandbox", value=inside["rate"], unit="MB/s", bar=300.0, higher_is_better=True),
    ]


def forked(client: Client, policy: dict[str, Any], *, count: int) -> list[Row]:
    """What a rollout with a network takes longer than one without: parked ahead, and one right after the other."""
    kinds = {"plain": None, "networked": policy}
    rows = []
    for how, gap_s in {"from a parked sandbox": PARKING_S, "back to back": 0.001}.items():
        actions = {
            name: timings(partial(rollout_once, "python", code="1", egress=egress, client=client), gap_s=gap_s)
            for name, egress in kinds.items()
        }
        found = interleaved(actions, count=count // 2, turn=1)
        plain, networked = found["plain"].p50, found["networked"].p50
        name = f"added to a rollout by a network, {how}"
        note = f"{plain:.2f} ms without a network, {networked:.2f} with"
        rows.append(Row(name=name, value=networked - plain, unit="ms", bar=1.5, note=note))
    return rows


@contextmanager
def server() -> Iterator[int]:
    """The other side, and its port."""
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
