"""One test file per module, at the mirrored path: where a thing is tested has one answer."""

from __future__ import annotations

from pathlib import Path

from tests.meta.tree import PACKAGE, ROOT, named, python_files

UNIT = ROOT / "tests" / "unit"


def test_each_module_has_its_test_file() -> None:
    """`src/hotbed/a/b.py` is tested by `tests/unit/a/test_b.py`."""
    missing = [named(mirror(module)) for module in modules() if not mirror(module).exists()]

    assert missing == []


def test_each_unit_test_file_has_its_module() -> None:
    """A test file whose module moved away moves with it."""
    expected = {mirror(module) for module in modules()}

    assert [named(file) for file in UNIT.rglob("test_*.py") if file not in expected] == []


def modules() -> list[Path]:
    """Every module that holds something to test."""
    return [file for file in python_files(PACKAGE) if not file.name.startswith("__")]


def mirror(module: Path) -> Path:
    """Where a module's tests are."""
    relative = module.relative_to(PACKAGE)
    return UNIT / relative.parent / f"test_{relative.name}"
