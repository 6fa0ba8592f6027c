"""The few files that make `hotbed.env` and `boltzlabs.env` importable by programs that an environment starts.

Not the package itself: a sandbox has no business with the rest of it. The environment's own process does not need even
these, since the environment server offers both modules.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

import hotbed.env
from hotbed import guest

INSIDE = "/opt/envlib"

_ALIAS = '"""An alias."""\n\nfrom hotbed.env import serve\n\n__all__ = ["serve"]\n'


def materialise(home: Path) -> Path:
    """The files in a directory below `home`, named by their content, so that whoever has an older one keeps it."""
    files = _files()
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
    target = home / f"envlib-{digest}"
    if target.is_dir():
        return target
    home.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=home, prefix=".envlib"))
    for name, data in files.items():
        place = fresh / name
        place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(0o644)
    for path in (fresh, *(path for path in fresh.rglob("*") if path.is_dir())):
        path.chmod(0o755)
    try:
        fresh.rename(target)
    except OSError:  # another node was faster, with the same files
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def _files() -> dict[str, bytes]:
    environment = Path(str(guest.__file__)).parent / "environments" / "environment.py"
    return {
        "hotbed/__init__.py": b"",
        "hotbed/env.py": Path(str(hotbed.env.__file__)).read_bytes(),
        "hotbed/guest/__init__.py": b"",
        "hotbed/guest/environments/environment.py": environment.read_bytes(),
        "boltzlabs/__init__.py": b"",
        "boltzlabs/env.py": _ALIAS.encode(),
    }
