"""Packages are wheels by name, installed once; nothing else of pip's can be reached through a requirements.txt."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from hotbed.errors import BadEnvDir, TemplateFailed
from hotbed.pools.requirements import Requirements, allowed_lines, set_key, top_level_names


def write(tmp_path: Path, text: str) -> Path:
    """A requirements.txt."""
    (tmp_path / "requirements.txt").write_text(text)
    return tmp_path / "requirements.txt"


def wheel(directory: Path, name: str = "tinything", version: str = "1.0") -> None:
    """A wheel of one module."""
    directory.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": b"ANSWER = 42\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for path, data in files.items()
    )
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, data in {**files, f"{info}/RECORD": (record + f"{info}/RECORD,,\n").encode()}.items():
            archive.writestr(path, data)


@pytest.mark.parametrize(
    "line",
    [
        "numpy",
        "numpy==1.26.4",
        "Some.Pack-age_2 >=1.0, <2, !=1.5.*",
        "pkg[extra,other]~=1.0",
        "pkg (>=1.0)",
        'pkg==1.0; python_version < "3.12"',
        "pkg==1.0 --hash=sha256:abcdef0123 --hash=sha256:00",
        "pkg==1.0 \\\n    --hash=sha256:ab",
        "pkg==1!2.0+local",
    ],
)
def test_packages_with_versions_are_allowed(tmp_path: Path, line: str) -> None:
    """Comments and blank lines too."""
    assert len(allowed_lines(write(tmp_path, f"# comment\n\n{line}  # why\n"))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "-e .",
        "-r other.txt",
        "--index-url http://evil",
        "--find-links /etc",
        "git+https://host/repo",
        "pkg @ https://host/pkg.whl",
        "./local",
        "/etc/passwd",
        "file:///etc/passwd",
        "pkg --global-option=x",
        "pkg==1.0 --hash=sha256:ab --index-url=http://evil",
        "pkg\t; x\t@ http://evil",
        "a" + " " * 5000 + "%",
    ],
)
def test_options_urls_and_paths_are_not(tmp_path: Path, line: str) -> None:
    """They would reach the node's files and whatever it can connect to."""
    with pytest.raises(BadEnvDir, match=r"requirements.txt: .* is not a package with versions"):
        allowed_lines(write(tmp_path, line))


def test_order_does_not_matter_and_content_does(tmp_path: Path) -> None:
    """A set is installed once."""
    assert set_key(["a", "b"]) == set_key(["b", "a"]) != set_key(["a"])


def test_without_requirements_nothing_is_installed(tmp_path: Path) -> None:
    """A file of comments counts as none."""
    requirements = Requirements(tmp_path / "sets")
    assert asyncio.run(requirements.installed(tmp_path)) is None
    write(tmp_path, "# nothing yet\n")

    assert asyncio.run(requirements.installed(tmp_path)) is None


@pytest.mark.slow
def test_a_set_is_installed_once_from_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And then it is a directory on the import path."""
    wheel(tmp_path / "wheels")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    write(tmp_path, "tinything==1.0\n")

    async def twice() -> list[Path | None]:
        requirements = Requirements(tmp_path / "sets")
        return list(await asyncio.gather(requirements.installed(tmp_path), requirements.installed(tmp_path)))

    first, second = asyncio.run(twice())
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    third = asyncio.run(Requirements(tmp_path / "sets").installed(tmp_path))

    assert first == second == third
    assert first is not None
    assert (first / "tinything.py").exists()
    assert top_level_names(first) == ("tinything",)


@pytest.mark.slow
def test_what_pip_says_is_told_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the next try starts afresh."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    write(tmp_path, "no-such-package-at-all==9\n")

    with pytest.raises(TemplateFailed, match="installed: ERROR.* no-such-package-at-all"):
        asyncio.run(Requirements(tmp_path / "sets", python=sys.executable).installed(tmp_path))
    assert [path.suffix for path in (tmp_path / "sets").iterdir()] == [".txt"]
