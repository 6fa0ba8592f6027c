"""A node that lives in a network of the tests' own making, connected to an Internet of their own (`internet.py`).

Two network namespaces joined by a veth pair: in one every address is answered, in the other runs the node, for which
the first is the world. An ordinary user makes them in a user namespace of its own; the node itself runs, there too, as
the ordinary user that it would be (a second user namespace maps the id back). Everything ends with this process.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hotbed import rollout_once
from hotbed.sdk.client import Client
from tests.e2e.node_process import BOOT
from tests.e2e.processes import children_of

_NEWNS, _NEWUSER, _NEWNET = 0x00020000, 0x10000000, 0x40000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

ZONE: dict[str, Any] = {
    "good.test": ["93.184.215.14"],
    "other.test": ["93.184.215.15"],
    "shared.test": ["93.184.215.14"],
    "evil.test": ["45.33.32.156"],
    "a.wild.test": ["93.184.215.20"],
    "six.test": ["2606:2800:220:1::1"],
    "private.test": ["10.1.2.3"],
    "meta.test": ["169.254.169.254"],
    "loop.test": ["127.0.0.1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "nat64.test": ["64:ff9b::7f00:1"],
    "node.test": ["192.0.2.1"],
    "rebind.test": [["93.184.215.30"], ["10.1.2.3"], ["127.0.0.1"]],
    "github.com": ["93.184.215.40"],
    "pypi.org": ["93.184.215.41"],
}


SECRET = "Bearer not-for-sandboxes-1739"  # the node's, named `good`: for good.test

# What sandboxes run: the words after it are URLs, each is fetched, and what came of each is printed as JSON.
FETCH = """
import json, ssl, sys, urllib.request
context = ssl.create_default_context(cafile="/work/ca.pem")
def fetch(url):
    try:
        how = context if url.startswith("https") else None
        with urllib.request.urlopen(url, context=how, timeout=20) as reply:
            return json.loads(reply.read())["host"]
    except Exception as error:
        return f"{type(error).__name__} {getattr(error, 'code', '')} {getattr(error, 'reason', '')}"
print(json.dumps([fetch(url) for url in sys.argv[1:]]))
"""


class World:
    """The running node's socket, and what reached the Internet."""

    def __init__(self, directory: Path, process: subprocess.Popen[bytes], word: dict[str, Any]) -> None:
        self.directory = directory
        self.process = process
        self.socket = directory / "node.sock"
        self.node_pid = int(word["pid"])
        self.certificate = (directory / "ca.pem").read_text()

    def broker_pid(self) -> int:
        """The node's egress broker; 0 when there is none at the moment."""
        for pid in children_of(self.node_pid):
            try:
                if Path(f"/proc/{pid}/comm").read_text().strip() == "hotbed-egress":
                    return pid
            except OSError:
                continue  # it ended just now
        return 0

    @property
    def url(self) -> str:
        """For `connect`."""
        return f"unix://{self.socket}"

    def diary(self, kind: str = "", **where: str) -> list[dict[str, Any]]:
        """What arrived outside, oldest first."""
        path = self.directory / "diary.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        wanted = {**({"kind": kind} if kind else {}), **where}
        return [line for line in lines if all(line.get(name) == value for name, value in wanted.items())]

    def names(self, **changes: Any) -> None:
        """Change the zone."""
        write_zone(self.directory, {**ZONE, **changes})


def write_zone(directory: Path, zone: dict[str, Any]) -> None:
    """As a whole: the name server reads it at any moment."""
    fresh = directory / "zone.new"
    fresh.write_text(json.dumps(zone))
    fresh.rename(directory / "zone.json")


def fetch(earth: World, client: Client, egress: Any, *urls: str) -> tuple[list[str], dict[str, Any]]:
    """What a rollout under a policy gets from each URL, and what the node says of it."""
    result = rollout_once(
        "python", code=FETCH, args=urls, files={"/work/ca.pem": earth.certificate}, egress=egress, client=client
    )
    assert result.ok, result.stderr
    return json.loads(result.stdout), dict(result.egress or {})


@contextmanager
def world(directory: Path, **settings: Any) -> Iterator[World]:
    """A world that is gone afterwards."""
    directory.chmod(0o755)
    write_zone(directory, ZONE)
    _certificates(directory)
    _hold_secret(directory / "home" / "egress-secrets.json")
    given = json.dumps({"socket": str(directory / "node.sock"), "home": str(directory / "home"), **settings})
    with (directory / "node.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.world", str(directory), given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "SSL_CERT_FILE": str(directory / "ca.pem")},  # what the node's machine trusts
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"no world: {(directory / 'node.log').read_text()[-3000:]}")
        yield World(directory, process, json.loads(line))
    finally:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)


def lacking() -> str:
    """Why there can be no world here; empty if there can."""
    for program in ("ip", "openssl"):
        if not any(Path(folder, program).exists() for folder in ("/usr/sbin", "/sbin", "/usr/bin", "/bin")):
            return f"{program} is not installed"
    probe = subprocess.run(
        [sys.executable, "-c", "from tests.support.world import enter; enter()"], capture_output=True, text=True
    )
    return "" if probe.returncode == 0 else f"no network namespaces here: {probe.stderr.strip()[-200:]}"


def _hold_secret(path: Path) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps({"good": {"hosts": ["good.test"], "value": SECRET}}))


def _certificates(directory: Path) -> None:
    """An authority of the tests' own, and one certificate for every name there is."""
    names = ",".join(f"DNS:{name}" for name in (*ZONE, "*.test"))
    config = directory / "san.cnf"
    config.write_text(f"subjectAltName={names}\nextendedKeyUsage=serverAuth\n")
    key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    commands = (
        f"req -x509 -keyout ca.key -out ca.pem -days 30 -subj /CN=tests -addext keyUsage=critical,keyCertSign {key}",
        f"req -keyout server.key -out server.csr -subj /CN=internet {key}",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile san.cnf -out server.pem",
    )
    for command in commands:
        subprocess.run(["openssl", *command.split()], cwd=directory, check=True, capture_output=True)


def enter() -> None:
    """Into fresh namespaces: network and mounts, and as an ordinary user the user namespace that allows it."""
    uid, gid = os.geteuid(), os.getegid()
    _call("unshare", (_NEWUSER if uid else 0) | _NEWNET | _NEWNS)
    if uid:
        _map(f"0 {uid} 1", f"0 {gid} 1")
    _call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)


def _map(uid: str, gid: str) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", uid), ("gid_map", gid)):
        Path("/proc/self", name).write_text(text)


def _call(name: str, *values: Any) -> None:
    if getattr(_libc, name)(*values) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *" ".join(words).split()], check=True, env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"})


def answer_everything() -> None:
    """In the Internet's namespace: every address is local, but for the way back."""
    for line in (
        "link set lo up",
        "link set v1 up",
        "addr add 192.0.2.2/24 dev v1",
        "addr add 2001:db8:1::2/64 dev v1 nodad",
        "route add local default dev lo",
        "-6 route add local 2600::/12 dev lo",
    ):
        _ip(line)


def _start_internet(directory: Path) -> subprocess.Popen[bytes]:
    def apart() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, 9)
        _call("unshare", _NEWNET)

    code = (
        "import sys; sys.stdin.readline(); from pathlib import Path; from tests.support import internet, world;"
        "world.answer_everything(); internet.main(Path(sys.argv[1]))"
    )
    internet = subprocess.Popen(
        [sys.executable, "-c", code, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=apart,
    )
    _ip("link set lo up")
    _ip(f"link add v0 type veth peer name v1 netns {internet.pid}")
    for line in (
        "link set v0 up",
        "addr add 192.0.2.1/24 dev v0",
        "addr add 2001:db8:1::1/64 dev v0 nodad",
        "route add default via 192.0.2.2",
        "-6 route add default via 2001:db8:1::2",
    ):
        _ip(line)
    assert internet.stdin is not None and internet.stdout is not None
    internet.stdin.write(b"go\n")
    internet.stdin.flush()
    assert internet.stdout.readline() == b"ready\n", "the Internet did not start"
    return internet


def _start_node(settings: str, uid: int, gid: int) -> tuple[subprocess.Popen[bytes], bytes]:
    def ordinary() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, 9)
        if uid:
            _call("unshare", _NEWUSER)
            _map(f"{uid} 0 1", f"{gid} 0 1")

    reader, writer = os.pipe()
    node = subprocess.Popen(
        [sys.executable, "-c", BOOT, settings, str(writer)], pass_fds=[writer], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, preexec_fn=ordinary,
    )  # fmt: skip
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        return node, pipe.readline()


def main(directory: Path, settings: str) -> None:
    """Make the world, say so, and keep it until standard input ends."""
    uid, gid = os.geteuid(), os.getegid()
    enter()
    resolv = directory / "resolv.conf"
    resolv.write_text("nameserver 192.0.2.2\noptions timeout:2 attempts:2\n")
    _call("mount", os.fsencode(resolv), os.fsencode(os.path.realpath("/etc/resolv.conf")), None, _MS_BIND, None)
    internet = _start_internet(directory)
    node, word = _start_node(settings, uid, gid)
    sys.stdout.write(word.decode() or "{}")
    sys.stdout.flush()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    sys.stdin.read()
    node.terminate()
    try:
        node.wait(15)
    except subprocess.TimeoutExpired:
        node.kill()
    internet.kill()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
