"""From a template and an environment directory, the template that its workers are forked from. Pure.

The derived template has imported what env.py will import, and each worker loads env.py itself. Where it is loaded
*ahead* (in boltz mode, or when asked for) the template has loaded env.py too, so a worker is a bare fork that shares
what env.py built.

CAVEAT: whatever a template imports runs with the template's own rights: every capability in its user namespace and none
outside, before its filter is installed. That is code its author chose for the whole pool, never a candidate's; and
env.py is loaded ahead only where the node's owner has given the node Boltz slots.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hotbed.guest.environments import env_preload
from hotbed.pools import envlib, requirements
from hotbed.runtime.base import Limits, TemplateSpec

ENV_HOME = "/env"
ENTRY = f"{ENV_HOME}/env.py"
PROGRAM = "env_server"
_PACKAGES_HOME = "/opt/packages"
# Numeric libraries start a thread for each of the host's CPUs unless told otherwise: more than a worker's share, and
# threads are what a copy of an environment cannot take along.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
_PRELOAD_MODULE = "hotbed.guest.environments.env_preload"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvBundle:
    """An environment as the node has it: its directory, its packages, what it will import."""

    digest: str
    tree: Path
    envlib: Path
    packages: Path | None = None
    modules: Sequence[str] = ()

    def without_modules(self) -> EnvBundle:
        """The same with nothing imported ahead."""
        return replace(self, modules=())


def derive(base: TemplateSpec, bundle: EnvBundle, *, ahead: bool, limits: Limits) -> TemplateSpec:
    """The template of an environment's workers. Equal for equal arguments, so pools share it."""
    mounts = [(str(bundle.tree), ENV_HOME), (str(bundle.envlib), envlib.INSIDE)]
    path = [_PACKAGES_HOME, envlib.INSIDE]
    if bundle.packages is not None:
        mounts.append((str(bundle.packages), requirements.INSIDE))
        path.append(requirements.INSIDE)
    plan = {
        "paths": path[2:],
        "modules": list(bundle.modules),
        "env": ENTRY if ahead else None,
    }
    env = {**_ONE_THREAD, **dict(base.env), "PYTHONPATH": ":".join(path), env_preload.VARIABLE: json.dumps(plan)}
    return replace(
        base,
        name=f"{base.name[:40]}-{'loaded' if ahead else 'env'}-{bundle.digest[:12]}",
        preload=(*base.preload, _PRELOAD_MODULE),
        programs=(PROGRAM,),
        env=tuple(sorted(env.items())),
        mounts=(*base.mounts, *mounts),
        limits=limits,
        parks=False,
    )
