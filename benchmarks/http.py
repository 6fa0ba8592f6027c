"""Create a sandbox, run something in it, delete it, through HTTP: the published client and ours, many at once.

The baseline is the published client on its own local backend, measured in the same round just before: it isolates
nothing and limits nothing, and starts a Python for each program. It listens with a backlog of five and loses most of
128 clients, so what counts is its best with so many clients or fewer. The same client then speaks to this node, in both
of its wires, and ours on TCP and on the Unix socket. Each driver is a process of its own with a thread per client, so
it is a driver's Python, on the node's own cores, that 128 clients measure at last.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.graders import published_python
from benchmarks.lab import node
from benchmarks.measure import cpu_watch
from benchmarks.rollouts import used
from benchmarks.rows import Row

CLIENTS = (1, 16, 128)
BAR = 2.0

_DRIVER = """
import json, sys, threading, time
kind, place, clients, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
CODE, EXPECTED = "print(sum(range(1000)))", "499500\\n"
if kind == "ours":
    from hotbed import Sandbox, connect
    client = connect(**json.loads(place))
    def once():
        with Sandbox("python", client=client) as sandbox:
            assert sandbox.exec(CODE).stdout == EXPECTED
else:
    from collimate_rl import CollimateClient, GatewayClient
    client = CollimateClient(place) if kind == "daemon" else GatewayClient(api_key="col_pro_bench_key", base_url=place)
    def once():
        made = client.create_session("py")["session_id"]
        assert client.session_exec(made, code=CODE)["stdout"] == EXPECTED
        client.delete_session(made)

taken, failed, stop, ready = [], [], threading.Event(), threading.Barrier(clients + 1)
def work():
    ready.wait()
    while not stop.is_set():
        begun = time.perf_counter()
        try:
            once()
            taken.append(time.perf_counter() - begun)
        except Exception as failure:
            failed.append(repr(failure)[:200])

once()
threads = [threading.Thread(target=work, daemon=True) for _ in range(clients)]
for thread in threads:
    thread.start()
ready.wait()
time.sleep(seconds / 4)  # until everybody has a connection
taken.clear(), failed.clear()
begun = time.perf_counter()
time.sleep(seconds)
result = [len(taken) / (time.perf_counter() - begun), sorted(taken), list(failed)]
stop.set()
for thread in threads:
    thread.join(30)  # the published client's sandboxes outlive it: what it leaves would be measured with the next
print(json.dumps(result))
"""

_BACKEND = """
import sys
from collimate_rl.local_backend import LocalCollimateBackend
with LocalCollimateBackend() as backend:
    print(backend.base_url, flush=True)
    sys.stdin.read()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """What one driver saw."""

    rate: float
    p50_ms: float
    p99_ms: float
    failed: int


def run(*, count: int) -> list[Row]:
    """One round."""
    seconds = max(1.0, count / 200)
    python, port = published_python(), free_port()  # no environment, no baseline
    rows = []
    with node(port=port, max_sandboxes=512) as (client, pid):
        sockets = {
            "our client, TCP": ("ours", json.dumps({"url": f"http://127.0.0.1:{port}"})),
            "our client, Unix socket": ("ours", json.dumps({"unix_socket": client.url.removeprefix("unix://")})),
        }
        theirs = {f"published client, {wire}": (wire, f"http://127.0.0.1:{port}") for wire in ("daemon", "gateway")}
        baseline = 0.0
        for clients in CLIENTS:
            if python is not None:
                with local_backend(python) as url:
                    local = drive(python, "daemon", url, clients, seconds)
                baseline = max(baseline, local.rate)
                rows.append(row("published client, its local backend", clients, local))
                for name, (kind, place) in theirs.items():
                    rows.append(measured(name, python, kind, place, clients, seconds, pid, baseline))
            for name, (kind, place) in sockets.items():
                rows.append(measured(name, sys.executable, kind, place, clients, seconds, pid, baseline))
    return rows


def measured(
    name: str, python: str, kind: str, place: str, clients: int, seconds: float, pid: int, baseline: float
) -> Row:
    """A driver against our node, and what it took."""
    with cpu_watch((pid,)) as cpu:
        driven = drive(python, kind, place, clients, seconds)
    return row(name, clients, driven, baseline=baseline, note=used(cpu))


def row(name: str, clients: int, driven: Driven, *, baseline: float = 0.0, note: str = "") -> Row:
    """Rollouts per second, which are three requests each, and how long one takes."""
    latency = f"p50 {driven.p50_ms:.1f} ms, p99 {driven.p99_ms:.1f} ms, {driven.failed} failed"
    return Row(
        name=f"HTTP rollouts per second, {name}, {clients} client{'s' if clients > 1 else ''}",
        value=driven.rate,
        unit="/s",
        ratio=driven.rate / baseline if baseline else None,
        of="local backend",
        bar=BAR if baseline else None,
        higher_is_better=True,
        note=f"{3 * driven.rate:.0f} requests/s; {latency}" + (f"; {note}" if note else ""),
    )


def drive(python: str, kind: str, place: str, clients: int, seconds: float) -> Driven:
    """Run a driver."""
    argv = [python, "-c", _DRIVER, kind, place, str(clients), str(seconds)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, timeout=seconds + 120)
    rate, ordered, failed = json.loads(done.stdout)
    if not ordered and kind == "ours":
        raise RuntimeError(f"nothing was done; {failed[:1]}")
    ordered = ordered or [0.0]
    return Driven(
        rate=rate,
        p50_ms=1e3 * ordered[len(ordered) // 2],
        p99_ms=1e3 * ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
        failed=len(failed),
    )


@contextmanager
def local_backend(python: str) -> Iterator[str]:
    """The published client's own backend, in a process of its own; its address."""
    process = subprocess.Popen(
        [python, "-c", _BACKEND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate()


def free_port() -> int:
    """A TCP port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
