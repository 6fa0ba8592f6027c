"""The published client on the gateway's wire: keys, templates, sandboxes, and what is refused."""

from __future__ import annotations

import socket

import pytest

from tests.interop.conftest import Served
from tests.interop.published import Published

pytestmark = pytest.mark.slow  # each test starts an interpreter

CLIENT = "client = C.connect(api_key=os.environ['COLLIMATE_API_KEY'])\n"


def test_sandboxes_from_creation_to_deletion(published: Published, served: Served) -> None:
    """One merged stream, state between execs, labels, and an id that ended is unknown."""
    published.run(
        CLIENT
        + """
assert type(client).__name__ == "GatewayClient" and client.health()["status"] == "ok"
with client.session("python", label="mine") as box:
    ended = box.id
    assert box.id.startswith("sbx_") and box.fork_time_ms >= 0
    assert box.exec(command="echo out; echo err >&2; echo kept > f").stdout == "out\\nerr\\n"
    assert box.exec(command="cat f").stdout == "kept\\n"
    [row] = client.list_sandboxes()
    assert (row["id"], row["template"], row["template_id"], row["label"]) == (box.id, "python", "python", "mine")
    assert client.get_sandbox(box.id)["state"] == "running"
assert refused(lambda: client.get_sandbox(ended))[:2] == (404, "not_found") and client.list_sandboxes() == []
with C.Sandbox("python", client=client) as box:
    box.upload_bytes("/work/f", b"\\x00\\xff" * 200_000)
    assert box.download("/work/f") == b"\\x00\\xff" * 200_000
assert client.exec_once("python", code="print(1)")["stdout"] == "1\\n"
assert client.usage()["totals"]["execs"] >= 3
""",
        **served.as_tenant("acme"),
    )


def test_a_bake_is_live_and_of_its_tenant_alone(published: Published, served: Served) -> None:
    """Environment baked, ready command run, phases honest; released and deleted."""
    published.run(
        CLIENT
        + """
ready = C.Ready(cmd="test $A = b", env={"A": "b"})
handle = C.Template.bake(client, name="mine", image="python", ready=ready, width=8)
status = handle.wait(timeout=20)
assert (handle.id, status.phase, status.declared, status.warm) == ("acme--mine", "Live", 8, 8)
assert C.Template.bake(client, name="mine", image="python", ready=ready, width=8).id == handle.id
with client.session(handle.id) as box:
    assert box.exec(command="echo $A").stdout == "b\\n"
    assert refused(lambda: client.delete_template(handle.id))[:2] == (409, "template_in_use")
assert client.expect_width(handle.id, 100_000)["expected_width"] == 256
assert client.release_template(handle.id)["released"]
assert handle.id in [row["id"] for row in client.images()]
assert client.delete_template(handle.id)["deleted"] and refused(lambda: client.get_template(handle.id))[0] == 404
with client.env("python", width=4) as env, env.sandbox() as box:
    assert box.exec(code="print(7)").stdout == "7\\n"
""",
        **served.as_tenant("acme"),
    )


def test_what_the_node_cannot_do_is_refused_by_name(published: Published, served: Served) -> None:
    """Never faked: no ports to wait for, no secrets."""
    published.run(
        CLIENT
        + """
bake = lambda **what: client.create_template(**{"name": "x", "image": "python", "width": 1, **what})
for ready in ({"ports": ["80"]}, {"http": "http://localhost"}):
    assert refused(lambda: bake(ready=ready))[:2] == (400, "bad_request")
assert client.list_templates() == [row for row in client.list_templates() if row["visibility"] == "public"]
for call in (lambda: client.expect_width("python", 3), lambda: client.release_template("python"),
             lambda: client.delete_template("python")):
    status, code, text = refused(call)
    assert (status, code) == (403, "forbidden") and "catalog" in text
assert refused(lambda: client.create_sandbox("python", egress={"allow": ["x y"]}))[:2] == (400, "bad_request")
assert refused(lambda: client.create_sandbox("python", secret_refs=["s"]))[:2] == (400, "bad_request")
assert refused(lambda: client.create_sandbox("nope"))[:2] == (404, "not_found")
""",
        **served.as_tenant("acme"),
    )


def test_forks_have_the_parents_files(published: Published, served: Served) -> None:
    """One by one and as a group, with its seeds; more than the tier allows is refused, never cut short."""
    published.run(
        CLIENT
        + """
with client.session("python", label="parent") as box:
    box.exec(command="echo kept > f; sleep 100 > /dev/null 2>&1 &")
    children = box.fork(2, labels=["a", "b"])
    assert len({child["id"] for child in children}) == 2 and all(child["id"].startswith("sbx_") for child in children)
    client.exec(children[0]["id"], command="echo changed > f")
    assert client.exec(children[1]["id"], command="cat f")["stdout"] == "kept\\n"
    assert sorted(row["label"] for row in client.list_sandboxes()) == ["a", "b", "parent"]
    with box.fork_group(40, seed_mode="crn") as group:
        results = group.exec_each("import os; print(open('f').read(), os.urandom(4).hex())")
        assert len({result.stdout for result in results}) == 1, results
        assert {result.seed for result in results} == set(group.seeds) and len(set(group.seeds)) == 1
    with box.fork_group(3, seed_mode="vanilla") as group:
        results = group.exec_each("import os; print(os.urandom(8).hex())")
        assert len({result.stdout for result in results}) == 3
    assert refused(lambda: client.fork(box.id, count=33))[:2] == (400, "bad_request")
    assert len(client.list_sandboxes()) == 3
assert client.exec(children[1]["id"], command="cat f")["stdout"] == "kept\\n"
for child in children:
    client.delete_sandbox(child["id"])
assert client.list_sandboxes() == []
""",
        **served.as_tenant("acme"),
    )


def test_a_suspended_sandbox_waits_until_it_is_resumed(published: Published, served: Served) -> None:
    """Nothing of it runs meanwhile, and an exec is told so."""
    published.run(
        CLIENT
        + """
with client.session("python") as box:
    box.exec(command="(while true; do echo . >> ticks; sleep 0.01; done) > /dev/null 2>&1 &")
    assert box.suspend()["state"] == "suspended" and client.get_sandbox(box.id)["state"] == "suspended"
    assert refused(lambda: box.exec(command="true"))[:2] == (409, "sandbox_suspended")
    assert box.resume()["state"] == "running"
    assert box.exec(command="test -s ticks").ok
""",
        **served.as_tenant("acme"),
    )


def test_a_tenant_cannot_see_or_touch_anothers(published: Published, served: Served) -> None:
    """A foreign id is 404 whatever is asked of it, exactly like one that never was."""
    published.run(
        CLIENT
        + """
other = C.GatewayClient(os.environ["OTHER_KEY"])
handle = C.Template.bake(client, name="secret", image="python", width=1)
handle.wait(timeout=20)
with client.session(handle.id) as box:
    assert other.list_sandboxes() == []
    assert "secret" not in str((other.images(), other.list_templates(), other.health()))
    assert other.health()["sessions"] == 0
    for call in (other.get_sandbox, other.fork, other.suspend, other.resume, lambda i: other.exec(i, command="id"),
                 lambda i: other.connect_url(i, 80)):
        real, never = refused(lambda: call(box.id)), refused(lambda: call("sbx_" + "0" * 48))
        assert real[:2] == never[:2] == (404, "not_found"), (real, never)
    assert other.delete_sandbox(box.id)["deleted"] is False and client.get_sandbox(box.id)["state"] == "running"
    for call in (other.get_template, other.delete_template, other.release_template, other.create_sandbox):
        assert refused(lambda: call(handle.id))[:2] == (404, "not_found")
client.delete_template(handle.id)
""",
        **served.as_tenant("acme"),
        OTHER_KEY=served.keys["bob"],
    )


def test_a_quota_is_refused_before_anything_is_made(published: Published, served: Served) -> None:
    """In text for people, which the client shows as it is."""
    published.run(
        CLIENT
        + """
made = [client.create_sandbox("python")["id"] for _ in range(8)]
try:
    client.create_sandbox("python")
except C.DemoTierLimit as limit:
    assert limit.code == "demo_tier_limit" and "tenant tiny may have 8 sandboxes in tier demo" in str(limit)
else:
    raise AssertionError("the ninth was made")
assert len(client.list_sandboxes()) == 8
assert client.exec(made[0], command="echo ok")["stdout"] == "ok\\n"
client.delete_sandbox(made[0])
made[0] = client.create_sandbox("python")["id"]
for name in made:
    client.delete_sandbox(name)
assert refused(lambda: client.create_template(name="x", image="python", width=1))[1] == "demo_tier_limit"
""",
        **served.as_tenant("tiny"),
    )


def test_without_a_good_key_there_is_nothing(published: Published, served: Served) -> None:
    """Also not on the daemon's wire, which has no way to send one."""
    published.run(
        CLIENT
        + """
key = os.environ["COLLIMATE_API_KEY"]
for guess in (key[:-1] + ("0" if key[-1] != "0" else "1"), "col_pro_00000000_" + "0" * 64, "x", key.upper()):
    assert refused(C.GatewayClient(guess).list_sandboxes)[:2] == (401, "unauthorized")
daemon = C.CollimateClient(os.environ["COLLIMATE_BASE_URL"])
assert refused(daemon.list_sessions)[:2] == (401, "unauthorized") and daemon.health() == {"status": "ok"}
assert C.CollimateClient(unix_socket=os.environ["SOCKET"]).health()["templates"]
""",
        **served.as_tenant("acme"),
        SOCKET=served.socket,
    )


def test_a_server_without_keys_takes_any(published: Published, open_served: Served) -> None:
    """On loopback, where everybody may do anything."""
    published.run(
        CLIENT + 'assert client.exec_once("python", command="echo a; echo b >&2")["stdout"] == "a\\nb\\n"\n',
        COLLIMATE_API_KEY="col_demo_any_thing",
        COLLIMATE_BASE_URL=open_served.url,
    )


@pytest.mark.parametrize(
    "words",
    [
        ("bake", "--image", "python", "--name", "cli", "--width", "4"),
        ("demo", "--image", "python", "--name", "cli", "--width", "4", "--rounds", "2"),
        ("status", "python"),
        ("fleet", "--include-public"),
        ("burst", "python", "-n", "40", "-c", "20"),
        ("rl", "python", "--steps", "1", "--group", "2", "--prompts", "4", "-c", "8"),
        ("launch", "python", "-n", "40", "-c", "20", "--hold", "0.1", "--teardown"),
        ("launch", "python", "--teardown-only"),
    ],
    ids=lambda words: " ".join(words[:1]),
)
def test_its_commands_end_well(published: Published, served: Served, words: tuple[str, ...]) -> None:
    """Every command of the published command line that speaks to a server."""
    published.command(*words, **served.as_tenant("acme"))


def test_an_answer_leaves_in_one_write(served: Served) -> None:
    """Head and body apart cost 40 ms each time, where the kernel waits for more."""
    host, _, port = served.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        for path in ("/v1/health", "/v1/images", "/v1/sandboxes") * 5:
            head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.keys['acme']}\r\n\r\n"
            connection.sendall(head.encode())
            answer = connection.recv(1 << 16)
            length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            assert len(answer.partition(b"\r\n\r\n")[2]) == length, path


def test_a_hundred_at_once_are_all_served(published: Published, served: Served) -> None:
    """Each connection is one thread's, and none is refused at the door."""
    published.run(
        CLIENT
        + """
from concurrent.futures import ThreadPoolExecutor
def one(number):
    with client.session("python") as box:
        return box.exec(command=f"echo {number}").stdout
with ThreadPoolExecutor(100) as threads:
    assert list(threads.map(one, range(200))) == [f"{number}\\n" for number in range(200)]
assert client.list_sandboxes() == []
""",
        **served.as_tenant("acme"),
    )
