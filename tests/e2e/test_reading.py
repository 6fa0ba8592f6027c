"""What is read inside TLS, and what is added there: against an Internet of the tests' own (tests/support/world.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hotbed import Sandbox, Template, connect, rollout_once
from hotbed.errors import InvalidRequest, NotSupported
from hotbed.sdk import calls
from hotbed.sdk.client import Client
from hotbed.wire.execs import RolloutRequest
from tests.e2e.processes import wait_until
from tests.support.world import SECRET, World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

# Words are METHOD URL pairs; what each gave is printed: the answer's JSON, or how it failed.
ASK = """
import json, sys, urllib.request
def ask(method, url):
    try:
        request = urllib.request.Request(url, method=method, headers={"Authorization": "mine"})
        with urllib.request.urlopen(request, timeout=20) as reply:
            return json.loads(reply.read())
    except Exception as error:
        return {"error": f"{getattr(error, 'code', '')} {error}"}
print(json.dumps([ask(*pair) for pair in zip(sys.argv[1::2], sys.argv[2::2])]))
"""


@pytest.fixture(scope="module")
def client(earth: World) -> Iterator[Client]:
    """A client of the node in it."""
    with connect(earth.url) as found:
        yield found


def ask(client: Client, egress: Any, *words: str, **more: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What a rollout gets for each METHOD and URL, and what the node says of it."""
    result = rollout_once("python", code=ASK, args=words, egress=egress, client=client, **more)
    assert result.ok, result.stderr
    return json.loads(result.stdout), dict(result.egress or {})


def test_methods_are_held_to_inside_tls(client: Client) -> None:
    """For a host that is read; its certificate is the node's there."""
    egress = {"allow": [{"host": "good.test", "methods": ["GET"], "read": True}]}

    got, told = ask(client, egress, "GET", "https://good.test/a", "POST", "https://good.test/b")

    assert (got[0]["path"], got[0]["headers"]["authorization"]) == ("/a", "mine")
    assert "403" in got[1]["error"] and told["refused"][0]["reason"].startswith("POST is not among the methods")


def test_a_secret_alone_allows_its_hosts(client: Client) -> None:
    """And one that the node does not hold is refused before anything is made."""
    got, _ = ask(client, {"secret_refs": ["good"]}, "GET", "https://good.test/a", "GET", "https://other.test/a")

    assert got[0]["headers"]["authorization"] == "*" * len(SECRET) and "error" in got[1]  # what is said back is masked
    with pytest.raises(InvalidRequest, match="holds no secret 'nobody'"):
        ask(client, {"secret_refs": ["nobody"]}, "GET", "https://good.test/a")


HOST = """
import socket, ssl, sys
context = ssl.create_default_context()
sock = socket.create_connection(("good.test", 443))
with context.wrap_socket(sock, server_hostname="good.test") as tls:
    tls.sendall(b"GET / HTTP/1.1\\r\\nHost: shared.test\\r\\nConnection: close\\r\\n\\r\\n")
    print(tls.recv(4096).decode())
"""


def test_the_host_inside_tls_must_be_the_one_outside(earth: World, client: Client) -> None:
    """Also where both are behind one address, and both allowed."""
    egress = {"allow": [{"host": "good.test", "read": True}, {"host": "shared.test", "read": True}]}

    result = rollout_once("python", code=HOST, egress=egress, client=client)

    assert result.stdout.startswith("HTTP/1.1 403"), (result.stdout, result.stderr)
    assert not earth.diary("http", host="shared.test")


def test_a_group_hears_one_world_and_so_does_its_replay(earth: World, client: Client) -> None:
    """Each request goes out once; what was never asked is refused and named when it runs again."""
    egress = {"allow": ["good.test"], "record": True}
    words = ["GET", "https://good.test/once", "GET", "http://good.test/clear", "GET", "https://good.test/once"]
    seeded: dict[str, Any] = {"seed": "ab" * 32, "determinism": "rng", "labels": {"group_id": "one-world"}}
    request = RolloutRequest(template="python", code=ASK, args=tuple(words), egress=egress, **seeded)

    first, second = (client.link.send(calls.rollout(request, None)) for _ in range(2))
    again = client.replay(first.id)

    counts = [answer["count"] for answer in json.loads(first.stdout)]
    assert counts == [1, 1, 2] and second.stdout == first.stdout
    assert again.identical, again.differences
    assert len(earth.diary("http", path="/once")) == 2 and len(earth.diary("http", path="/clear")) == 1
    assert client.replay_group("one-world").identical
    assert len(earth.diary("http", path="/once")) == 2


MOVED = """
import time, urllib.request
try:
    print(urllib.request.urlopen(f"http://good.test/at-{time.time_ns()}").status)
except OSError as error:
    print(error)
"""


def test_what_was_not_recorded_is_refused_and_named(earth: World, client: Client) -> None:
    """In the ledger, under the run that asked for it."""
    first = rollout_once("python", code=MOVED, egress={"allow": ["good.test"], "record": True}, client=client)
    report = client.replay(first.id)

    def named() -> bool:
        found = client.egress(rollout_id=report.replay_id, verdict="denied").attempts
        return any(row.reason.startswith("not in the recording: GET http://good.test:80/at-") for row in found)

    assert first.stdout == "200\n" and not report.identical
    assert {item.source for item in report.differences} == {"network"}
    assert report.differences[-1].replayed.startswith("not in the recording: GET http://good.test:80/at-")
    assert wait_until(named)


def get(sandbox: Sandbox, url: str) -> Any:
    """How often the server had been asked that, as it said, and the exec that heard it."""
    result = sandbox.exec(code=ASK, args=["GET", url])
    return json.loads(result.stdout)[0].get("count"), result


def test_a_kept_sandbox_and_its_forks_are_recorded(earth: World, client: Client) -> None:
    """From its beginning, under whatever policy it has by then; each of them counts what it has asked itself."""
    egress, url = {"allow": ["good.test"], "record": True}, "https://good.test/kept"
    with Sandbox("python", egress=egress, seed="cd" * 32, client=client) as parent:
        heard = [get(parent, url)[0] for _ in range(2)]
        parent.update_egress({"allow": ["good.test", "other.test"]})
        heard.append(get(parent, "https://other.test/kept-too")[0])
        children = parent.fork(2)
        try:
            last = [get(child, url) for child in children]
        finally:
            for child in children:
                child.close()
    before = len(earth.diary("http"))

    reports = [client.replay(result.id) for _, result in last]

    assert heard == [1, 2, 1] and [count for count, _ in last] == [1, 1]
    assert all(report.identical for report in reports), reports[0].differences
    assert reports[0].replayed == 4 and len(earth.diary("http")) == before


def test_what_is_not_recorded_from_its_beginning_is_not_recorded(client: Client) -> None:
    """Nor what is never run again."""
    with Sandbox("python", egress="open", client=client) as sandbox, pytest.raises(NotSupported, match="beginning"):
        sandbox.update_egress({"mode": "open", "record": True})
    with pytest.raises(NotSupported, match="only rollouts and sandboxes are recorded"):
        Template.bake(client, name="kept", setup=["true"], egress={"mode": "open", "record": True})


def test_what_was_run_after_a_change_of_policy_is_run_again_after_it(earth: World, client: Client) -> None:
    """Recorded or not: under the first policy it would be another run."""
    with Sandbox("python", egress={"allow": ["good.test"]}, client=client) as sandbox:
        sandbox.update_egress({"allow": ["other.test"]})
        refused = sandbox.exec(code=ASK, args=["GET", "https://good.test/after"])

    report = client.replay(refused.id)

    assert report.identical and report.replayed == 1
    assert not earth.diary("http", path="/after")
