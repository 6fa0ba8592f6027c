"""Programs that an environment starts can import `hotbed.env`, and nothing else of ours."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hotbed.pools.envlib import materialise


@pytest.mark.parametrize("module", ["hotbed.env", "boltzlabs.env"])
def test_serve_is_importable_from_these_files_alone(tmp_path: Path, module: str) -> None:
    """With the standard library only."""
    library = materialise(tmp_path / "home")
    code = f"import sys; sys.path.insert(0, {str(library)!r}); from {module} import serve; serve(id, id)"
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, input="")

    assert run.stdout.startswith("task: "), run.stderr


def test_it_is_made_once_and_readable_by_all(tmp_path: Path) -> None:
    """Two nodes may share a home."""
    library = materialise(tmp_path / "home")

    assert materialise(tmp_path / "home") == library
    assert [path.name for path in (tmp_path / "home").iterdir()] == [library.name]
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444 for path in library.rglob("*"))
    assert sorted(path.name for path in (library / "hotbed").iterdir()) == ["__init__.py", "env.py", "guest"]
