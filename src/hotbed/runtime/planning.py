"""From a template's spec to what the launcher and the template's process are told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotbed.runtime import hostview, imageview, roots
from hotbed.runtime.base import HOST_IMAGE, TemplateSpec
from hotbed.runtime.hostview import HostView
from hotbed.runtime.images.record import ImageRecord
from hotbed.runtime.images.store import Hold, Store
from hotbed.runtime.imageview import ImageView
from hotbed.runtime.linux import identity

View = HostView | ImageView


def view_of(spec: TemplateSpec, images: Store) -> tuple[View, Hold]:
    """What a template will see, and a hold on what must stay for that. Blocks. Raises `NotFound`, `TemplateFailed`."""
    if spec.image == HOST_IMAGE:
        return hostview.describe(spec.preload, spec.mounts), Hold(())
    record = images.get(spec.image)
    hold = images.hold(record)
    try:
        return _view_of(spec, record, images), hold
    except BaseException:
        hold.close()
        raise


def _view_of(spec: TemplateSpec, record: ImageRecord, images: Store) -> View:
    over = tuple(map(images.layer, record.over))
    if record.host:
        return replace(hostview.describe(spec.preload, spec.mounts), over=over)
    return imageview.describe(record, map(images.layer, record.layers), spec.mounts, over=over)


def plan_of(spec: TemplateSpec, view: View, *, root: str, networks: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The launcher's plan, and the template's config."""
    plan = _plan(view, dict(spec.env))
    ids = identity.mine()
    plan.update(root=root, ids={"uid": ids.uid, "gid": ids.gid, "count": ids.count})
    config = {
        "preload": list(spec.preload),
        "programs": list(spec.programs),
        "packages": bool(view.packages),
        "environ": {name: value for name, value in plan["env"].items() if name.startswith("PYTHON")},
        "networks": networks,
        "interpreter": [spec.interpreter.wait, spec.interpreter.file] if spec.interpreter else None,
        "over": [f"{roots.OVER}/{number}" for number in reversed(range(len(view.over)))],
        **(imageview.as_config(view, spec) if isinstance(view, ImageView) else {"attached": roots.attached(plan)}),
    }
    return plan, config


def _plan(view: View, own: dict[str, str]) -> dict[str, Any]:
    return imageview.as_plan(view, own) if isinstance(view, ImageView) else hostview.as_plan(view, own)
