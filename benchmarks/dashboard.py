"""The dashboard off and on: what open pages take from rollouts, and how long pages take in a long ledger.

A page that is open asks for its part every few seconds. A browser would also use the node's own cores to draw it, which
says nothing about the node, so a thread asks what it would. Off and on take turns; on a machine that others use the
rates differ by more than the pages take, and what the node's own CPU says is steadier.
"""

from __future__ import annotations

import http.client
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.baselines import settle
from benchmarks.lab import node
from benchmarks.measure import cpu_watch, percentiles
from benchmarks.rollouts import one, used
from benchmarks.rows import Row
from benchmarks.threads import rate_of
from hotbed import Client

THREADS = 8
TURNS = 4
BROWSERS = 20
ROLLOUTS = 10_000
OPEN = (("/parts/state", 2.0), ("/plots.json", 4.0), ("/parts/grid", 2.0), ("/parts/waits", 5.0))
PAGES = ("/", "/sandboxes", "/rollouts", "/rollouts?status=oom", "/rollouts?before=500", "/groups", "/waits")
_AT_ONCE_MS = 100.0


def run(*, count: int) -> list[Row]:
    """One round."""
    seconds = max(1.0, count / 200)
    with node(dashboard="on") as (client, pid), cpu_watch((pid,)) as cpu:
        rate_of(lambda: one(client), THREADS, 1.0)
        off, on, ten = [], [], []
        for _ in range(TURNS):
            off.append(rate_of(lambda: one(client), THREADS, seconds))
            with looking(client, pages=1):
                on.append(rate_of(lambda: one(client), THREADS, seconds))
            with looking(client, pages=10):
                ten.append(rate_of(lambda: one(client), THREADS, seconds))
        share = cpu_of_looking(client, pid, seconds=8.0)
    settle()
    base = Row(name="rollouts per second, dashboard closed", value=middle(off), unit="/s", note=used(cpu))
    return [
        base,
        against(base, "rollouts per second, each page open in one browser", on, bar=0.95),
        against(base, "rollouts per second, each page open in ten browsers", ten),
        Row(name="CPU of the node for each page open in a browser", value=100 * share, unit="% of a core", bar=1.0),
        *long_ledger(),
    ]


def against(base: Row, name: str, rates: list[float], bar: float | None = None) -> Row:
    """A rate in units of the one with the dashboard closed."""
    rate = middle(rates)
    ratio = rate / base.value
    return Row(name=name, value=rate, unit="/s", ratio=ratio, of="closed", bar=bar, higher_is_better=True)


def middle(values: list[float]) -> float:
    """The median."""
    return sorted(values)[len(values) // 2]


def cpu_of_looking(client: Client, pid: int, *, seconds: float) -> float:
    """What part of a core one browser's pages keep busy on a node that does nothing else."""
    spent = []
    for pages in (0, BROWSERS):
        with looking(client, pages=pages):
            before = cpu_s(pid)
            time.sleep(seconds)
            spent.append((cpu_s(pid) - before) / seconds)
    return (spent[1] - spent[0]) / BROWSERS


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def looking(client: Client, *, pages: int) -> Iterator[None]:
    """Browsers in which every page is open, as far as the node notices."""
    stop = threading.Event()

    def watch(path: str, every_s: float, late_s: float) -> None:
        connection = Browser(client)
        stop.wait(late_s)
        while not stop.is_set():
            connection.get(path)
            stop.wait(every_s)
        connection.close()

    jobs = [(path, every_s, every_s * page / pages) for page in range(pages) for path, every_s in OPEN]
    threads = [threading.Thread(target=watch, args=job, daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


class Browser(http.client.HTTPConnection):
    """A browser's connection to a node's Unix socket."""

    def __init__(self, client: Client) -> None:
        super().__init__("localhost", timeout=20)
        self._path = str(client.link.address.unix_path)

    def connect(self) -> None:
        """Dial."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)

    def get(self, path: str) -> bytes:
        """A page, whole."""
        self.request("GET", path)
        answer = self.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status)
        return body


def long_ledger() -> list[Row]:
    """What pages take when ten thousand rollouts have run."""
    with tempfile.TemporaryDirectory() as home:
        fill(Path(home))
        with node(home=home) as (client, _):
            browser = Browser(client)
            rows = []
            for path in PAGES:
                taken = [timed(browser, path) for _ in range(21)][1:]
                p50 = percentiles(taken).p50
                rows.append(Row(name=f"page {path} of {ROLLOUTS} rollouts", value=p50, unit="ms", bar=_AT_ONCE_MS))
            browser.close()
    return rows


def timed(browser: Browser, path: str) -> float:
    """Seconds that a page takes."""
    begun = time.perf_counter()
    browser.get(path)
    return time.perf_counter() - begun


def fill(home: Path) -> None:
    """A ledger of ten thousand: rollouts, and graded groups of 64."""
    from hotbed.node.ledger.entry import Entry
    from hotbed.node.ledger.ledger import Ledger

    ledger = Ledger(home)
    for number in range(ROLLOUTS):
        graded = number % 2 == 0
        ledger.note(
            Entry(
                id=f"bench_{number:08}",
                kind="grade" if graded else "rollout",
                at=time.time(),
                template="python",
                template_digest="d" * 64,
                request=b'{"code": "print(%d)"}' % number,
                status="oom" if number % 997 == 0 else "ok",
                reward=float(number % 3 == 0) if graded else None,
                stdout=b"%d\n" % number,
                group_id=f"group-{number // 128}" if graded else "",
                details={"passed": 1, "total": 1, "trust": "isolated", "reason": "", "checks": []},
            )
        )
    ledger.close()
