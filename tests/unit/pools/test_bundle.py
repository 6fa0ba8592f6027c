"""The template of an environment's workers is the base template, and what the environment adds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hotbed.pools.bundle import EnvBundle, derive
from hotbed.runtime.base import Limits, TemplateSpec

BASE = TemplateSpec(name="python", preload=("json",), env=(("A", "1"),), mounts=(("/data", "/data"),))


def derived(ahead: bool = False, **changes: Any) -> TemplateSpec:
    """A derived template."""
    env = {"digest": "ab" * 32, "tree": Path("/held/ab/tree"), "envlib": Path("/held/envlib"), **changes}
    return derive(BASE, EnvBundle(**env), ahead=ahead, limits=Limits(pids=9))


def test_the_base_is_kept_and_the_environment_added() -> None:
    """Its directory at /env, the modules it will import, its own limits."""
    spec = derived(modules=("decimal",))
    env = dict(spec.env)

    assert spec.mounts == (("/data", "/data"), ("/held/ab/tree", "/env"), ("/held/envlib", "/opt/envlib"))
    assert spec.preload == ("json", "hotbed.guest.environments.env_preload")
    assert (spec.programs, spec.limits.pids, env["A"]) == (("env_server",), 9, "1")
    assert json.loads(env["HOTBED_ENV_PRELOAD"]) == {"paths": [], "modules": ["decimal"], "env": None}
    assert env["PYTHONPATH"] == "/opt/packages:/opt/envlib"


def test_packages_are_seen_and_importable() -> None:
    """By the environment and by what it starts."""
    spec = derived(packages=Path("/held/req"))
    env = dict(spec.env)

    assert ("/held/req", "/opt/requirements") in spec.mounts
    assert json.loads(env["HOTBED_ENV_PRELOAD"])["paths"] == ["/opt/requirements"]
    assert env["PYTHONPATH"].endswith(":/opt/requirements")


def test_equal_environments_share_a_template_and_different_ones_do_not() -> None:
    """A template is a process."""
    assert derived() == derived()
    assert len({derived(), derived(True), derived(tree=Path("/held/cd/tree")), derived(packages=Path("/x"))}) == 4


def test_the_environment_is_loaded_in_the_template_only_when_asked_for() -> None:
    """Otherwise env.py runs in sandboxes only."""
    plans = [json.loads(dict(derived(ahead).env)["HOTBED_ENV_PRELOAD"]) for ahead in (False, True)]

    assert [plan["env"] for plan in plans] == [None, "/env/env.py"]


def test_a_long_template_name_still_makes_a_name() -> None:
    """Names end at 63 characters."""
    base = TemplateSpec(name="x" * 63)
    bundle = EnvBundle(digest="ab" * 32, tree=Path("/t"), envlib=Path("/e"))

    assert len(derive(base, bundle, ahead=True, limits=base.limits).name) <= 63
