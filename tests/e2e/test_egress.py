"""Networks per fork, against an Internet of the tests' own (tests/support/world.py)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hotbed import BakeFailed, RLPool, Sandbox, Template, connect, rollout_once
from hotbed.errors import InvalidRequest
from hotbed.sdk.client import Client
from tests.e2e.processes import wait_until
from tests.support.world import FETCH, World, fetch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def client(earth: World) -> Iterator[Client]:
    """A client of the node in it."""
    with connect(earth.url) as found:
        yield found


GOOD, BAD = "good.test", "URLError  [Errno -2] Name or service not known"


@pytest.mark.parametrize(
    ("egress", "good", "evil"),
    [
        ({"allow": [GOOD]}, True, False),
        ({"mode": "allowlist", "allow": ["*.test"], "deny": ["evil.test"]}, True, False),
        ({"deny": ["evil.test"]}, True, False),
        ({"mode": "denylist", "deny": ["45.33.0.0/16"]}, True, False),
        ({"mode": "open"}, True, True),
        ("open", True, True),
        ({"mode": "none"}, False, False),
        (None, False, False),
        ({"allow": []}, False, False),
        ({"preset": "package-indexes"}, False, False),
        ({"preset": "rl-leakage"}, True, True),
    ],
)
def test_every_form_of_policy_holds(earth: World, client: Client, egress: Any, good: bool, evil: bool) -> None:
    """By name, through TLS and without, for programs that know of no proxy."""
    urls = [f"{scheme}://{host}/" for host in (GOOD, "evil.test") for scheme in ("http", "https")]

    got, _ = fetch(earth, client, egress, *urls)

    assert [answer in (GOOD, "evil.test") for answer in got] == [good, good, evil, evil]


def test_what_was_tried_is_told(earth: World, client: Client) -> None:
    """On the result, and in the ledger row by row."""
    before = len(earth.diary("http", host="good.test"))

    _, told = fetch(
        earth, client, {"allow": [GOOD]}, "http://good.test/x", "https://github.com/answers", "http://evil.test/"
    )

    assert len(earth.diary("http", host="good.test")) == before + 1
    assert told["mode"] == "allowlist" and told["bytes_down"] > 0 and told["suspected_leak"] is True
    assert {item["to"] for item in told["refused"]} == {"github.com", "evil.test"}
    rows = client.egress(limit=10).attempts
    found = {(row.kind, row.name, row.verdict, row.leak) for row in rows if row.rollout_id == rows[0].rollout_id}
    assert ("http", "good.test", "allowed", False) in found and ("dns", "github.com", "denied", True) in found


def test_ipv6_goes_the_same_way(earth: World, client: Client) -> None:
    """Names that lead to it, and addresses that are listed."""
    policy = {"allow": ["six.test", "[2606:2800::/32]:80"]}

    got, _ = fetch(earth, client, policy, "https://six.test/", "http://[2606:2800:220:1::1]/", "http://[2607::1]/")

    assert got[:2] == ["six.test", "[2606:2800:220:1::1]"]
    assert got[2].startswith("HTTPError 403")


def test_two_forks_have_two_policies_at_once_under_load(earth: World, client: Client) -> None:
    """None ever gets what the other may."""

    def one(number: int) -> list[bool]:
        mine, others = ("good.test", "other.test") if number % 2 else ("other.test", "good.test")
        both = [f"{scheme}://{host}/{number}" for host in (mine, others) for scheme in ("http", "https")]
        urls = both * 3
        got, _ = fetch(earth, client, {"allow": [mine]}, *urls)
        return [answer == mine for answer in got] + [answer == others for answer in got]

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(one, range(24)))

    expected = [True, True, False, False] * 3 + [False] * 12
    assert outcomes == [expected] * 24


def test_a_template_has_a_default_that_sandboxes_override(client: Client, earth: World) -> None:
    """And one without a network refuses every policy."""
    client.create_template("web", egress={"allow": [GOOD]})
    client.create_template("closed", network=False)

    def gets(template: str, egress: Any) -> bool:
        code = "import urllib.request as u; print(u.urlopen('http://good.test/', timeout=20).status)"
        return rollout_once(template, code=code, egress=egress, client=client).ok

    assert gets("web", None) and not gets("web", {"mode": "none"})
    with pytest.raises(InvalidRequest, match="without a network"):
        gets("closed", "open")


DRIP = """
import socket, sys
sock = socket.create_connection(("good.test", 80), 20)
sock.sendall(b"GET /drip HTTP/1.1\\r\\nHost: good.test\\r\\n\\r\\n")
open("/work/started", "w").close()
try:
    while sock.recv(100):
        pass
    print("ended")
except OSError as error:
    print(type(error).__name__)
"""


def test_a_policy_changes_while_a_connection_lives(earth: World, client: Client) -> None:
    """What it no longer allows ends at once; what it newly allows works."""
    with Sandbox("python", egress={"allow": [GOOD]}, client=client) as sandbox, ThreadPoolExecutor(1) as pool:
        running = pool.submit(sandbox.exec, code=DRIP)
        assert wait_until(lambda: sandbox.exec(command="test -e /work/started").ok)

        state = sandbox.update_egress({"allow": ["other.test"]})

        assert state.egress["allow"] == ["other.test"]
        assert running.result(20).stdout.strip() in ("ended", "ConnectionResetError")
        sandbox.upload_bytes("/work/ca.pem", earth.certificate)
        got = sandbox.exec(code=FETCH, args=["https://other.test/", "https://good.test/"])
        assert json.loads(got.stdout) == ["other.test", BAD]


def test_forks_have_the_policy_that_their_parent_has_by_then(earth: World, client: Client) -> None:
    """And one of their own from then on."""
    with Sandbox("python", egress="open", client=client) as parent:
        parent.upload_bytes("/work/ca.pem", earth.certificate)
        parent.update_egress({"allow": [GOOD]})
        children = parent.fork(2)
        children[1].update_egress({"allow": ["other.test"]})
        try:
            words = ["http://good.test/", "http://other.test/"]
            got = [json.loads(child.exec(code=FETCH, args=words).stdout) for child in children]
        finally:
            for child in children:
                child.close()

    assert got == [[GOOD, BAD], [BAD, "other.test"]]


def test_what_begins_with_a_snapshot_has_the_policy_that_was_then(earth: World, client: Client) -> None:
    """Unless it brings its own; and none where there was none, whatever the template's default."""
    client.create_template("default-web", egress={"allow": [GOOD]})
    words = ["http://good.test/", "http://other.test/"]

    def reached(template: str, policy: Any, **more: Any) -> list[bool]:
        with Sandbox(template, egress=policy, client=client) as parent:
            parent.upload_bytes("/work/ca.pem", earth.certificate)
            kept = parent.snapshot()
            parent.update_egress("none")
            with Sandbox.from_snapshot(kept, client=client, **more) as later:
                got = json.loads(later.exec(code=FETCH, args=words).stdout)
        return [answer in (GOOD, "other.test") for answer in got]

    assert reached("python", {"allow": [GOOD]}) == [True, False]
    assert reached("python", {"allow": [GOOD]}, egress={"allow": ["other.test"]}) == [False, True]
    assert reached("default-web", {"mode": "none"}) == [False, False]


def test_a_sandbox_gets_a_network_while_it_lives(earth: World, client: Client) -> None:
    """And loses it again."""
    with Sandbox("python", client=client) as sandbox:
        sandbox.upload_bytes("/work/ca.pem", earth.certificate)

        def reached() -> bool:
            return bool(json.loads(sandbox.exec(code=FETCH, args=["http://good.test/"]).stdout) == [GOOD])

        assert not reached()
        sandbox.update_egress("open")
        assert reached()
        sandbox.update_egress("none")
        assert not reached()


def test_a_killed_broker_lets_nothing_out_and_comes_back(earth: World, client: Client) -> None:
    """Fail closed: its doors are its own, and go with it."""
    with Sandbox("python", egress={"allow": [GOOD]}, client=client) as sandbox:
        sandbox.upload_bytes("/work/ca.pem", earth.certificate)
        assert (sandbox.exec(code=FETCH, args=["https://good.test/"]).egress or {})["complete"] is True
        before = earth.broker_pid()

        os.kill(before, signal.SIGKILL)

        assert (sandbox.exec(code=FETCH, args=["https://good.test/"]).egress or {})["complete"] is False

        def works() -> bool:
            return bool(json.loads(sandbox.exec(code=FETCH, args=["https://good.test/"]).stdout) == [GOOD])

        assert wait_until(works)
        assert earth.broker_pid() != before
        assert json.loads(sandbox.exec(code=FETCH, args=["https://evil.test/"]).stdout) == [BAD]


REACHING = """
import urllib.request
from hotbed.env import serve
def reached():
    found = []
    for host in ("good.test", "evil.test"):
        try:
            found.append(urllib.request.urlopen(f"http://{host}/", timeout=20).status)
        except OSError:
            found.append(0)
    return found
serve(reset=lambda seed: reached(), step=lambda action: (reached(), 0.0, True, {}))
"""


def test_environments_of_a_pool_reach_what_it_may(client: Client, tmp_path: Path) -> None:
    """And what each worker tried is told under its pool's id and its own number."""
    (tmp_path / "env.py").write_text(REACHING)
    with RLPool(str(tmp_path), n=2, egress={"allow": [GOOD]}, client=client) as pool:
        assert pool.reset() == [[200, 0], [200, 0]]
        assert pool.step([0, 0])[0] == [[200, 0], [200, 0]]

        def told() -> bool:
            tried = [client.egress(sandbox_id=f"{pool.id}/{i}", verdict="denied").attempts for i in range(2)]
            return all(rows and {one.name for one in rows} == {"evil.test"} for rows in tried)

        assert wait_until(told)


def test_a_server_that_speaks_first_is_reached(earth: World, client: Client) -> None:
    """At a port the web does not use, by name."""
    code = (
        "import socket\nfor port in (22, 2222):\n    sock = socket.create_connection(('good.test', port), 20)\n"
        "    print(sock.recv(100)); sock.sendall(b'hello'); print(sock.recv(100))"
    )

    result = rollout_once("python", code=code, egress={"allow": ["good.test:22,2222"]}, client=client)

    assert result.stdout.split("\n")[:4] == ["b'SSH-2.0-internet\\r\\n'", "b'hello'"] * 2


def test_setup_reaches_what_its_template_may(earth: World, client: Client) -> None:
    """And without a policy nothing."""
    code = (
        "import urllib.request as u; open('/work/got', 'wb').write(u.urlopen('http://good.test/x', timeout=9).read())"
    )
    setup = [f'python3 -c "{code}"']

    with pytest.raises(BakeFailed):
        Template.bake(client, name="without", setup=setup)
    Template.bake(client, name="with", setup=setup, egress={"allow": ["good.test"]})

    assert rollout_once("with", command="cat /work/got", client=client).stdout


# Has twenty connections at once, and says how many were served.
MANY = """
import socket
said = b"GET /many HTTP/1.1\\r\\nHost: good.test\\r\\nConnection: close\\r\\n\\r\\n"
held = []
for _ in range(20):
    held.append(socket.create_connection(("good.test", 8000), 100))
    held[-1].sendall(said)
print(sum(b"200 OK" in sock.recv(4096) for sock in held))
"""


@pytest.mark.timeout(400)
def test_many_sandboxes_have_many_connections(earth: World, client: Client) -> None:
    """Five hundred with twenty at once each: all are served, within what one broker has, and nothing is left over."""
    fds = f"/proc/{earth.broker_pid()}/fd"

    def one(_: int) -> str:
        policy = {"allow": ["good.test:8000"]}
        return rollout_once("python", code=MANY, egress=policy, timeout_seconds=150, client=client).stdout.strip()

    def held() -> int:
        return len(os.listdir(fds)) if os.access(fds, os.R_OK) else 0  # an ordinary user's broker shows it to nobody

    before = held()
    with ThreadPoolExecutor(50) as pool:
        served = list(pool.map(one, range(500)))

    assert served == ["20"] * 500
    parked = client.stats()["backend"]["spares"]
    assert wait_until(lambda: held() <= before + 70 + 12 * parked)  # pipes that are kept for the next; doors made ahead
    assert client.stats()["node"]["counts"].get("leaks", 0) == 0


def test_a_package_is_installed_from_an_index_and_nothing_else_is_reached(earth: World) -> None:
    """With pip, from whatever index this machine's pip is set to, under a policy that lists it beside the preset."""
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    index = subprocess.run(asked, capture_output=True, text=True)
    url = os.environ.get("PIP_INDEX_URL") or index.stdout.strip() or "https://pypi.org/simple"
    host = urlsplit(url).hostname or ""
    try:
        urllib.request.urlopen(f"{url.rstrip('/')}/idna/", timeout=10).close()
    except OSError as error:
        pytest.skip(f"no package index answers here: {error}")
    command = (
        f"python -m pip install --no-cache-dir --target /work/lib --index-url {url} idna"
        " && curl -sf -m 5 http://93.184.215.14"
    )
    policy = {"preset": "package-indexes", "allow": [{"host": host, "addresses": ["0.0.0.0/0"]}]}
    with connect() as own:
        result = rollout_once("python", command=command, egress=policy, timeout_seconds=120, client=own)

    assert "Successfully installed idna" in result.stdout, result.stderr
    assert not result.ok
