"""What names a template: a digest over its spec and over what it is made of on this host."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict

from hotbed.runtime.base import TemplateSpec


def of_spec(spec: TemplateSpec) -> str:
    """The content address of a template on this host's Python."""
    parts = {"spec": asdict(spec), "python": sys.version, "platform": sys.platform}
    return "sha256:" + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
