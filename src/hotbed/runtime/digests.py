"""What names a template: a digest over its spec and over what it is made of on this host."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict

from hotbed.runtime.base import HOST_IMAGE, TemplateSpec


def of_spec(spec: TemplateSpec) -> str:
    """The content address of a template: of its image, or on this host's Python."""
    if spec.image != HOST_IMAGE:
        return "sha256:" + hashlib.sha256(json.dumps({"spec": asdict(spec)}, sort_keys=True).encode()).hexdigest()
    parts = {
        "spec": asdict(spec),
        "python": sys.version,
        "platform": sys.platform,
        "packages": versions_of(spec.preload),
    }
    return "sha256:" + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def versions_of(modules: Iterable[str]) -> dict[str, str]:
    """The versions of the distributions that modules come from: an upgraded package makes another template."""
    tops = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - {"hotbed"}
    if not tops:
        return {}
    homes = importlib.metadata.packages_distributions()
    return {name: importlib.metadata.version(name) for top in sorted(tops) for name in homes.get(top, ())}
