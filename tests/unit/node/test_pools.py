"""Making a pool is all or nothing, and what it took comes back however it ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hotbed.errors import (
    AtCapacity,
    BoltzUnavailable,
    IsolationUnavailable,
    NotFound,
    PoolClosed,
    SandboxFailed,
    TemplateFailed,
    Unauthorized,
)
from hotbed.node.pools import KEPT_WARM
from hotbed.runtime.base import Template, TemplateSpec
from hotbed.wire.pools import CreatePool
from tests.support.env_backend import EnvBackend
from tests.unit.node.pooling import backend_of, pooling_node, send_env, wanted


def test_a_pool_has_all_its_workers_and_ends_with_its_lease(tmp_path: Path) -> None:
    """A trainer that is killed leaves nothing."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            lease = node.leases.open()
            made = await node.pools.create(await wanted(node, tmp_path, 3), lease)
            assert len(backend_of(node).boxes) == 3
            assert node.pools.get(made.id).row().lease_id == lease.id

            node.leases.end(lease)

            with pytest.raises(PoolClosed):
                node.pools.get(made.id)
            await node.nursery.wait_empty(timeout_s=5)
            assert not backend_of(node).boxes

    asyncio.run(main())


def test_one_worker_that_cannot_be_made_takes_the_others_with_it(tmp_path: Path) -> None:
    """No half pools."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home", boltz_slots=2) as node:
            backend_of(node).refuse = {2}
            with pytest.raises(SandboxFailed, match="no room"):
                await node.pools.create(await wanted(node, tmp_path, 3, mode="boltz"), None)

            await node.nursery.wait_empty(timeout_s=5)
            assert (len(node.pools), len(backend_of(node).boxes), node.pools.slots.free) == (0, 0, 2)

    asyncio.run(main())


def test_slots_are_shared_and_come_back(tmp_path: Path) -> None:
    """A pool holds its share for its life; without a share there is no pool, and no fallback."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home", boltz_slots=3) as node:
            request = await wanted(node, tmp_path, 2, mode="boltz", slots=2)
            first = await node.pools.create(request, None)
            with pytest.raises(AtCapacity, match="1 of 3 are free"):
                await node.pools.create(request, None)
            await node.pools.get(first.id).close("deleted")

            assert (first.slots, node.pools.slots.free) == (2, 3)
        async with pooling_node(tmp_path / "home") as node:
            with pytest.raises(BoltzUnavailable, match="no Boltz slots"):
                await node.pools.create(await wanted(node, tmp_path, 1, mode="boltz"), None)

    asyncio.run(main())


def test_only_boltz_templates_load_the_environment(tmp_path: Path) -> None:
    """In default mode it is loaded in each sandbox; its imports are ahead in both."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home", boltz_slots=1) as node:
            digest = await send_env(node, tmp_path / "e", "import json\nfrom hotbed.env import serve\nserve(id, id)")
            await node.pools.create(CreatePool(env_digest=digest, n=1), None)
            await node.pools.create(CreatePool(env_digest=digest, n=1, mode="boltz"), None)
            plans = [json.loads(dict(spec.env)["HOTBED_ENV_PRELOAD"]) for spec in backend_of(node).specs]

            assert [plan["env"] for plan in plans] == [None, "/env/env.py"]
            assert [plan["modules"] for plan in plans] == [["json"], ["json"]]

    asyncio.run(main())


def test_a_template_that_cannot_import_ahead_is_tried_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that starts threads must not make default mode impossible."""
    real = EnvBackend.template

    async def picky(self: EnvBackend, spec: TemplateSpec) -> Template:
        if json.loads(dict(spec.env)["HOTBED_ENV_PRELOAD"])["modules"]:
            raise TemplateFailed("a preloaded module started threads")
        return await real(self, spec)

    async def main() -> None:
        async with pooling_node(tmp_path / "home", boltz_slots=1) as node:
            monkeypatch.setattr(EnvBackend, "template", picky)
            await node.pools.create(await wanted(node, tmp_path, 1), None)
            for ahead in ({"mode": "boltz"}, {"preload": True}):
                with pytest.raises(TemplateFailed, match="env.py could not be loaded: .* threads"):
                    await node.pools.create(await wanted(node, tmp_path, 1, **ahead), None)

    asyncio.run(main())


def test_an_environment_is_loaded_ahead_only_on_a_node_that_lets_it(tmp_path: Path) -> None:
    """It runs with the template's rights, so the node's owner has a say; both modes then share one template."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            with pytest.raises(BoltzUnavailable, match="--boltz-slots"):
                await node.pools.create(await wanted(node, tmp_path, 1, preload=True), None)
            assert backend_of(node).specs == []
        async with pooling_node(tmp_path / "home", boltz_slots=1) as node:
            await node.pools.create(await wanted(node, tmp_path, 1, preload=True), None)
            await node.pools.create(await wanted(node, tmp_path, 1, mode="boltz"), None)
            first, second = backend_of(node).specs
            assert first == second
            assert json.loads(dict(first.env)["HOTBED_ENV_PRELOAD"])["env"] == "/env/env.py"

    asyncio.run(main())


def test_templates_that_no_pool_uses_are_retired_the_longest_unused_first(tmp_path: Path) -> None:
    """Each is a process; an afternoon of edits to env.py must not leave hundreds."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            for number in range(KEPT_WARM + 2):
                request = await wanted(node, tmp_path, 1, limits={"pids": 50 + number})
                await node.pools.get((await node.pools.create(request, None)).id).close("deleted")
            await node.nursery.wait_empty(timeout_s=5)

            assert [spec.limits.pids for spec in backend_of(node).retired] == [50, 51]

    asyncio.run(main())


def test_what_cannot_be_served_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """Unknown directory, more isolation than there is."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            request = await wanted(node, tmp_path, 1, min_isolation="vm")
            with pytest.raises(IsolationUnavailable):
                await node.pools.create(request, None)
            with pytest.raises(NotFound, match="environment directory"):
                await node.pools.create(type(request)(env_digest="0" * 64, n=1), None)

            assert backend_of(node).specs == []

    asyncio.run(main())


def test_a_pool_is_known_by_its_token_to_who_wants_its_lanes(tmp_path: Path) -> None:
    """Its id alone is no key."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            made = await node.pools.create(await wanted(node, tmp_path, 1), None)

            assert node.pools.get_with(made.id, made.token).id == made.id
            with pytest.raises(Unauthorized):
                node.pools.get_with(made.id, "0" * 32)
            with pytest.raises(NotFound):
                node.pools.get("pl_other")

    asyncio.run(main())


def test_a_pool_without_a_lease_ends_by_its_ttl(tmp_path: Path) -> None:
    """Nobody else would end it."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home", ttl_s=0.05) as node:
            made = await node.pools.create(await wanted(node, tmp_path, 1), None)
            while len(node.pools):
                await asyncio.sleep(0.01)

            with pytest.raises(PoolClosed):
                node.pools.get(made.id)

    asyncio.run(main())
