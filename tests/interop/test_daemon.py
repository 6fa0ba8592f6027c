"""The published client on the daemon's wire, over a Unix socket and over TCP."""

from __future__ import annotations

import socket

import pytest

from tests.interop.conftest import Served
from tests.interop.published import Published

pytestmark = pytest.mark.slow  # each test starts an interpreter

CLIENT = """
where = os.environ["WHERE"]
client = C.CollimateClient(unix_socket=where) if where.startswith("/") else C.CollimateClient(where)
"""


@pytest.fixture(params=["unix", "tcp"])
def where(request: pytest.FixtureRequest, open_served: Served) -> str:
    """Both transports of the wire."""
    return open_served.socket if request.param == "unix" else open_served.url


def test_sessions_from_creation_to_deletion(published: Published, where: str) -> None:
    """State lives between execs, and an id that ended is unknown."""
    published.run(
        CLIENT
        + """
assert client.health()["status"] == "ok" and "python" in client.templates()
with C.Sandbox("python", client=client) as box:
    assert box.session_id.startswith("sess_") and box.warm_hit in (True, False)
    box.exec(command="echo kept > note; mkdir -p d")
    assert C.Sandbox.attach(client, box.session_id).exec(command="cat note").stdout == "kept\\n"
    [row] = client.list_sessions()
    assert row["session_id"] == box.session_id and row["exec_count"] == 2 and row["template_id"] == "python"
    client.delete_session(box.session_id)
    assert refused(lambda: client.get_session(box.session_id))[:2] == (404, "no_such_session")
assert client.list_sessions() == [] and client.delete_session("sess_x") == {"deleted": False, "session_id": "sess_x"}
""",
        WHERE=where,
    )


def test_execs_answer_in_the_wires_words(published: Published, where: str) -> None:
    """One ordered stream, -1 and a word on a timeout, real argument lists, exact files, bytes that are not text."""
    published.run(
        CLIENT
        + """
run = lambda **what: client.exec_once("python", **what)
both = run(command="echo out; echo err >&2; exit 3")
assert (both["stdout"], both["stderr"], both["exit_code"]) == ("out\\nerr\\n", "", 3), both
assert all(value is not None for value in both.values())
late = run(command="echo first; sleep 9", timeout_seconds=1)
assert late["exit_code"] == -1 and late["stdout"] == "first\\n\\ntimeout after 1s", late
assert run(commands=[["bash", "-c", "echo hi"], ["sh", "-c", "exit 4"]])["exit_code"] == 4
exact = run(command="cat a/b", files=[{"path": "a/b", "content": "no newline"}])
assert exact["stdout"] == "no newline"
assert run(command="printf '\\\\377ok'")["stdout"] == "\\ufffdok"
assert run(command="wc -c < f", files=[{"path": "f", "content": "\\ud800"}])["stdout"] == "3\\n"
assert len(run(code="print('y' * (15 << 20))")["stdout"]) == (15 << 20) + 1
assert run(code="x = 1", files=[{"path": "big", "content": "z" * (33 << 20)}])["exit_code"] == 0
""",
        WHERE=where,
    )


def test_a_pinned_seed_repeats_and_a_bad_one_is_fatal(published: Published, where: str) -> None:
    """The stand-in never says verified; we do, and mean it."""
    published.run(
        CLIENT
        + """
program = "import os, random; print(random.random(), os.urandom(4))"
draw = lambda seed: client.exec_once("python", code=program, seed=seed)
one, two, other = draw("ab" * 32), draw("ab" * 32), draw("cd" * 32)
assert one["stdout"] == two["stdout"] != other["stdout"] and one["seed"] == "ab" * 32 and one["seed_ack"] == "verified"
assert refused(lambda: draw("ab"))[:2] == (400, "invalid_seed")
""",
        WHERE=where,
    )


def test_what_cannot_be_done_is_refused_with_the_wires_codes(published: Published, where: str) -> None:
    """With text, since the client shows it."""
    published.run(
        CLIENT
        + """
assert refused(lambda: client.exec_once("nope", code="1"))[:2] == (404, "no_template")
assert refused(lambda: client._request("POST", "/v1/exec", {"code": "1"}))[:2] == (400, "template_id_required")
assert refused(lambda: client.exec_once("python", code="1", egress={"mode": "closed"}))[:2] == (400, "bad_request")
assert client.exec_once("python", code="1", egress={"mode": "none"})["exit_code"] == 0
assert refused(lambda: client._request("GET", "/v1/nope"))[:2] == (404, "not_found")
assert refused(lambda: client.session_exec("sess_../../x", code="1"))[0] == 404
""",
        WHERE=where,
    )


def test_files_and_rewards_built_from_execs(published: Published, where: str) -> None:
    """Upload and download of 11 MiB, the published graders, and many threads at once."""
    published.run(
        CLIENT
        + """
data = os.urandom(3 << 20)
with C.Sandbox("python", client=client) as box:
    box.upload_bytes("/work/x y/z.bin", data)
    assert box.download("/work/x y/z.bin") == data
    box.exec(command="head -c 11534336 /dev/zero > big")
    assert len(box.download("/work/big")) == 11534336
    box.upload_bytes("/work/empty", b"")
    assert box.download("/work/empty") == b""
spec = C.UnitTestReward(tests=[{"input": [1, 2], "expected": 3}])
codes = ["def solve(a, b): return a + b", "def solve(a, b): return 0"] * 12
grades = C.grade_batch(client, "py", codes, spec)
assert [grade.reward for grade in grades] == [1.0, 0.0] * 12
""",
        WHERE=where,
    )


def test_a_killed_grader_earns_nothing(published: Published, where: str) -> None:
    """The client reads the last line as the reward: what was printed before the kill must not be it."""
    published.run(
        CLIENT
        + """
answer = client.exec_once("python", command="echo 1.0; sleep 9", timeout_seconds=1)
assert C.UnitTestReward(tests=[]).parse(answer["stdout"]) == 0.0
""",
        WHERE=where,
    )


def test_an_absolute_form_target_is_served(open_served: Served) -> None:
    """The client sends one over a Unix socket wherever http_proxy is set."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(open_served.socket)
        connection.sendall(b"GET http://localhost/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
