"""The ledger over HTTP: what ran is listed, shown whole, and run again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from hotbed.node.ledger.ledger import Ledger
from hotbed.node.node import Node
from hotbed.node.policy import Policy
from hotbed.runtime.backends.fake import FakeBackend
from hotbed.server.app import make_app
from hotbed.wire import routes
from tests.unit.node.nodes import POLICY
from tests.unit.server.asking import ask, make_sandbox, served


@asynccontextmanager
async def remembering(home: Path) -> AsyncIterator[ASGIApp]:
    """An application whose node keeps a ledger."""
    node = Node(FakeBackend(), Policy(**POLICY), version="test", ledger=Ledger(home))
    await node.start()
    try:
        yield make_app(node)
    finally:
        await node.close()


def in_app(home: Path, scenario: Any) -> None:
    """Run a scenario against one."""

    async def run() -> None:
        async with remembering(home) as app:
            await scenario(app)

    asyncio.run(run())


async def rollout(app: ASGIApp, **request: Any) -> str:
    """Run one; its id."""
    answer = await ask(app, "POST", "/v1/rollouts", {"template": "python", **request})
    assert answer.status == 200, answer.body
    return str(answer.json["id"])


def test_what_was_answered_is_in_the_ledger(tmp_path: Path) -> None:
    """With what was asked and what was printed, newest first, page by page."""

    async def scenario(app: ASGIApp) -> None:
        ids = [await rollout(app, command=f"echo {n}; echo e >&2; exit {n % 2}") for n in range(5)]
        page = (await ask(app, "GET", "/v1/rollouts?limit=2")).json
        assert [row["id"] for row in page["rollouts"]] == ids[:2:-1]
        rest = (await ask(app, "GET", f"/v1/rollouts?before={page['next']}")).json
        assert [row["id"] for row in rest["rollouts"]] == ids[2::-1]
        mistyped = await ask(app, "GET", "/v1/rollouts?stauts=exit")
        assert (mistyped.status, "status" in mistyped.json["hint"]) == (400, True)
        failed = (await ask(app, "GET", "/v1/rollouts?status=exit")).json["rollouts"]
        assert {row["exit_code"] for row in failed} == {1}
        detail = (await ask(app, "GET", f"/v1/rollouts/{ids[3]}")).json
        assert (detail["stdout"], detail["stderr"]) == ("3\n", "e\n")
        assert detail["request"]["command"].startswith("echo 3")

    in_app(tmp_path, scenario)


def test_a_rollout_that_prints_the_same_again_is_identical(tmp_path: Path) -> None:
    """And one that does not says where and why."""

    async def scenario(app: ASGIApp) -> None:
        same = await rollout(app, command="echo same; exit 3")
        report = (await ask(app, "POST", f"/v1/rollouts/{same}/replay")).json
        assert (report["identical"], report["id"]) == (True, same)
        other = await rollout(app, command="echo now; date +%s%N")
        report = (await ask(app, "POST", f"/v1/rollouts/{other}/replay")).json
        assert report["identical"] is False
        (difference,) = report["differences"]
        assert (difference["what"], difference["source"]) == ("stdout", "clock")
        assert difference["offset"] >= len("now\n")

    in_app(tmp_path, scenario)


def test_an_exec_is_run_again_with_what_came_before_it(tmp_path: Path) -> None:
    """Files put into the sandbox and execs that changed it are part of what an exec saw."""

    async def scenario(app: ASGIApp) -> None:
        url = f"/v1/sandboxes/{await make_sandbox(app)}"
        await ask(app, "PUT", f"{url}/files?path=/work/a&mode=644", b"hello ")
        await ask(app, "POST", f"{url}/exec", {"command": "printf world >> a"})
        answer = await ask(app, "POST", f"{url}/exec", {"command": "cat a"})
        assert answer.json["stdout"] == "hello world"
        report = (await ask(app, "POST", f"/v1/rollouts/{answer.json['id']}/replay")).json
        assert (report["identical"], report["replayed"]) == (True, 2)

    in_app(tmp_path, scenario)


def test_an_exec_of_a_fork_of_a_fork_is_run_again_in_one(tmp_path: Path) -> None:
    """What a parent did after it was forked is not what its child saw; nothing of the replay stays."""

    async def scenario(app: ASGIApp) -> None:
        names = [await make_sandbox(app)]
        for number in range(3):
            url = f"/v1/sandboxes/{names[-1]}"
            await ask(app, "POST", f"{url}/exec", {"command": f"printf {number} >> a"})
            forked = await ask(app, "POST", f"{url}/fork", {})
            names.append(forked.json["children"][0]["id"])
            await ask(app, "POST", f"{url}/exec", {"command": "printf late >> a"})
        answer = await ask(app, "POST", f"/v1/sandboxes/{names[-1]}/exec", {"command": "cat a"})

        report = (await ask(app, "POST", f"/v1/rollouts/{answer.json['id']}/replay")).json
        assert (answer.json["stdout"], report["identical"], report["replayed"]) == ("012", True, 4)
        kept = (await ask(app, "GET", "/v1/sandboxes")).json["sandboxes"]
        assert {row["id"] for row in kept} == set(names)

    in_app(tmp_path, scenario)


def test_what_was_removed_and_made_by_the_file_operations_is_done_again(tmp_path: Path) -> None:
    """An exec sees them as well as it sees a file that was put there."""

    async def scenario(app: ASGIApp) -> None:
        name = await make_sandbox(app)
        files = f"/v1/sandboxes/{name}/files"
        await ask(app, "PUT", f"{files}?path=/work/a", b"1")
        for operation, path in (("remove", "/work/a"), ("mkdir", "/work/b")):
            answer = await ask(app, "POST", files, {"operation": operation, "path": path})
            assert answer.status == 200, answer.body
        answer = await ask(app, "POST", f"/v1/sandboxes/{name}/exec", {"command": "ls"})

        report = (await ask(app, "POST", f"/v1/rollouts/{answer.json['id']}/replay")).json
        assert (answer.json["stdout"], report["identical"]) == ("b\n", True)

    in_app(tmp_path, scenario)


def test_a_group_is_run_again_whole(tmp_path: Path) -> None:
    """Siblings of a GRPO group are named by their label."""

    async def scenario(app: ASGIApp) -> None:
        for n in range(3):
            await rollout(app, command=f"echo {n}", labels={"group_id": "g1"})
        report = (await ask(app, "POST", "/v1/groups/g1/replay")).json
        assert (report["identical"], len(report["reports"])) == (True, 3)
        assert (await ask(app, "POST", "/v1/groups/nope/replay")).status == 404

    in_app(tmp_path, scenario)


def test_a_group_may_have_slashes_in_its_name(tmp_path: Path) -> None:
    """As a run and its step have; as our client writes it."""

    async def scenario(app: ASGIApp) -> None:
        await rollout(app, command="echo", labels={"group_id": "run 7/step 3"})
        again = await ask(app, "POST", routes.REPLAY_GROUP.url(id="run 7/step 3"))
        assert (again.status, again.json["group_id"], len(again.json["reports"])) == (200, "run 7/step 3", 1)

    in_app(tmp_path, scenario)


def test_bad_questions_get_answers(tmp_path: Path) -> None:
    """Unknown ids, pages that are no numbers, things that cannot be run again."""

    async def scenario(app: ASGIApp) -> None:
        assert (await ask(app, "GET", "/v1/rollouts/nope")).json["code"] == "unknown_rollout"
        assert (await ask(app, "POST", "/v1/rollouts/nope/replay")).status == 404
        assert (await ask(app, "GET", "/v1/rollouts?limit=x")).status == 400
        name = await make_sandbox(app)
        answer = await ask(app, "POST", f"/v1/rollouts/create_{name}/replay")
        assert (answer.status, answer.json["code"]) == (400, "invalid_request")

    in_app(tmp_path, scenario)


def test_a_node_without_a_ledger_says_so() -> None:
    """It is a choice, not an empty list."""

    async def scenario() -> None:
        async with served() as (_, app):
            answer = await ask(app, "GET", "/v1/rollouts")
            assert answer.status == 400
            assert "no ledger" in answer.json["message"]

    asyncio.run(scenario())
