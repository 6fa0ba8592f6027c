"""Mixed load for as long as it is told, and then: is everything back?

Threads do what trainers do (rollouts, episodes, programs they talk to, jobs, ports, clients that vanish) against a node
of their own. Before and after, with nothing running, the node's processes, descriptors, mounts and memory are counted.
Memory may grow by `GROWTH_MIB`: what a node remembers of ended sandboxes and answered requests is bounded, not nothing.
So may the control groups that it keeps to use again: as many as sandboxes were at any one moment, up to a bound of its
own. Their descriptors are not counted with the others.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hotbed import Client, Sandbox, connect, rollout_once
from hotbed.sdk.embedded import NodePlace, start_node

THREADS = 6
BURST = 80  # more than a node ever keeps ready of one template
WARM_S = 10.0
SETTLE_S = 20.0
GROWTH_MIB = 48
GROUPS = 96  # kept free at most (runtime/groups.py)
SERVER = (
    "import socket; s = socket.create_server(('127.0.0.1', 7000)); c, _ = s.accept(); c.sendall(c.recv(9)); c.close()"
)


def rollout(client: Client) -> None:
    """The common case."""
    assert rollout_once("python", code="print(6 * 7)", client=client).stdout == "42\n"


def crash(client: Client) -> None:
    """A program that forks, fills and dies late."""
    command = "(sleep 30 &) ; head -c 3000000 /dev/zero > f; kill -9 $$"
    assert rollout_once("python", command=command, client=client).status == "signal"


def timeout(client: Client) -> None:
    """One that does not end."""
    assert rollout_once("python", command="sleep 60", timeout_seconds=0.2, client=client).status == "timeout"


def episode(client: Client) -> None:
    """A kept sandbox, a program that is talked to on a terminal, and a job."""
    with Sandbox("python", client=client) as sandbox:
        sandbox.upload_bytes("/work/f", os.urandom(100_000))
        assert len(sandbox.download("/work/f")) == 100_000
        job = sandbox.start_job(command="echo job")
        with sandbox.process(command="read x; echo got $x", terminal=(24, 80)) as process:
            process.write("this\n")
            assert process.wait(20).ok
        assert job.wait(20).ok
        sandbox.start_job(command="sleep 60")


def port(client: Client) -> None:
    """A connection to a port inside."""
    with Sandbox("python", client=client) as sandbox, sandbox.port_forward(7000) as forward:
        sandbox.start_job(code=SERVER)
        for _ in range(200):
            try:
                with socket.create_connection((forward.host, forward.port), 10) as connection:
                    connection.sendall(b"x")
                    if connection.recv(9) == b"x":
                        return
            except OSError:
                pass  # nothing listens yet
            time.sleep(0.02)
        raise AssertionError("nothing came back through the port")


def vanish(client: Client) -> None:
    """A client that is gone in the middle."""
    with connect(unix_socket=client.url.removeprefix("unix://")) as other:
        Sandbox("python", client=other).start()
        process = Sandbox("python", client=other).process(command="sleep 60")
        process.close()


WORK: tuple[Callable[[Client], None], ...] = (rollout, rollout, rollout, crash, timeout, episode, port, vanish)


def load(client: Client, seconds: float) -> tuple[int, list[BaseException]]:
    """Do all of it for so long; how often, and what failed."""
    deadline, failures, counts = time.monotonic() + seconds, list[BaseException](), [0] * THREADS

    def work(number: int) -> None:
        draw = random.Random(number)
        while time.monotonic() < deadline and not failures:
            try:
                draw.choice(WORK)(client)
                counts[number] += 1
            except BaseException as failure:  # noqa: BLE001 - a thread's boundary: told by the caller
                failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts), failures


def family(pid: int) -> list[int]:
    """A process and all below it."""
    found, queue = [], [pid]
    while queue:
        parent = queue.pop()
        found.append(parent)
        try:
            queue += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
        except OSError:
            found.pop()
    return found


def descriptors(pid: int) -> list[str]:
    """What a process has open."""
    found = []
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{number}"))
        except FileNotFoundError:
            pass  # closed since
    return found


def burst(client: Client) -> None:
    """Ask for so much at once that as many sandboxes are kept ready as ever may be: the load is to add none."""
    with ThreadPoolExecutor(BURST) as threads:
        list(threads.map(lambda _: rollout(client), range(2 * BURST)))


def parked(client: Client) -> int:
    """How many sandboxes are ready, once their number stays."""
    deadline, before = time.monotonic() + SETTLE_S, -1
    while (now := int(client.stats()["backend"]["spares"])) != before and time.monotonic() < deadline:
        before = now
        time.sleep(2.0)
    return now


def counted(client: Client, pid: int) -> dict[str, int]:
    """What there is, once it has settled."""
    deadline = time.monotonic() + SETTLE_S
    while (stats := client.stats()["node"])["running"] or stats["background"]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    parked(client)
    status, backend = Path(f"/proc/{pid}/status").read_text(), client.stats()["backend"]
    return {
        "processes": len(family(pid)),
        "descriptors": sum("/cgroup/" not in what for what in descriptors(pid)),
        "groups": backend.get("cgroups_free", 0) + backend.get("cgroups_used", 0),
        "mounts": len(Path(f"/proc/{pid}/mounts").read_text().splitlines()),
        "sandboxes": stats["running"] + stats["sessions"],
        "memory_mib": int(status.partition("VmRSS:")[2].split()[0]) >> 10,
    }


def differences(before: dict[str, int], after: dict[str, int]) -> list[str]:
    """What has not come back."""
    slack = {"processes": 4, "descriptors": 24, "groups": GROUPS, "memory_mib": GROWTH_MIB}
    return [
        f"{name}: {before[name]} before, {after[name]} after"
        for name in before
        if after[name] > before[name] + slack.get(name, 0)
    ]


def main() -> int:
    """Soak; 0 when everything came back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="hotbed-soak-") as directory:
        os.environ["HOTBED_HOME"] = f"{directory}/home"
        place = NodePlace(directory=f"{directory}/run")
        place.prepare()
        start_node(place)
        with connect(unix_socket=place.socket) as client:
            pid = int(Path(place.socket).with_suffix(".pid").read_text())
            load(client, WARM_S)
            burst(client)
            before = counted(client, pid)
            done, failures = load(client, seconds)
            after = counted(client, pid)
    told = differences(before, after) + [f"failed: {failure!r}" for failure in failures[:3]]
    sys.stdout.write(f"{done} done in {seconds:.0f} s\nbefore {before}\nafter  {after}\n")
    sys.stdout.writelines(f"NOT BACK {line}\n" for line in told)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
