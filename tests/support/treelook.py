"""Everything about a tree that two unpackers of one image must agree on, as JSON; also a program: `treelook.py DIR`.

Left out is what a sandbox's image never has (owners, device nodes, set-user-id bits, attributes that are not a user's).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from typing import Any


def looks(top: str) -> dict[str, Any]:
    """By path: kind, mode, time, content or target, attributes, and which other names the file has."""
    found: dict[str, Any] = {}
    names: dict[tuple[int, int], str] = {}
    for folder, folders, files in os.walk(top):
        for name in sorted([*folders, *files]):
            path = os.path.join(folder, name)
            about = os.lstat(path)
            if stat.S_ISCHR(about.st_mode) or stat.S_ISBLK(about.st_mode):
                continue
            short = os.path.relpath(path, top)
            first = names.setdefault((about.st_dev, about.st_ino), short) if stat.S_ISREG(about.st_mode) else ""
            found[short] = [*_about(path, about), first if first != short else ""]
    return found


def _about(path: str, about: os.stat_result) -> list[Any]:
    kind, mode = stat.S_IFMT(about.st_mode), about.st_mode & 0o1777
    content: Any = None
    attributes: dict[str, str] = {}
    if stat.S_ISLNK(about.st_mode):
        return [kind, 0, about.st_mtime_ns, os.readlink(path), {}]
    if stat.S_ISREG(about.st_mode):
        with open(path, "rb") as file:
            content = [about.st_size, hashlib.sha256(file.read()).hexdigest()]
    for key in os.listxattr(path):
        if key.startswith("user."):
            attributes[key] = os.getxattr(path, key).hex()
    return [kind, mode, about.st_mtime_ns, content, attributes]


if __name__ == "__main__":
    json.dump(looks(sys.argv[1]), sys.stdout)
