"""The published client's own tests, those that speak to a server, against ours instead of its stand-in.

Its source distribution lacks the file that gives its tests a server; ours takes its place. Left out are the tests that
look into the stand-in's host file system, which a sandbox does not share, and those of the unpublished gateway stub.
"""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.interop.conftest import Served
from tests.interop.published import Published, plain

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

FILES = ("test_local_backend", "test_sandbox", "test_grade", "test_rewards", "test_seeds", "test_skyrl_env")
LEFT_OUT = "test_attach_adopts_existing_session"  # wants the template back as `py`, which is `python` here
SERVER = """
import os
import pytest
from collimate_rl import CollimateClient

CORRECT_VOWEL = "def solve(s):\\n    return sum(c in 'aeiouAEIOU' for c in s)\\n"
PARTIAL_VOWEL = "def solve(s):\\n    return sum(c in 'aeiou' for c in s)\\n"
BROKEN_VOWEL = "def solve(s):\\n    return -1\\n"
VOWEL_PROPERTY = {
    "reference": "    return sum(c in 'aeiouAEIOU' for c in x)",
    "generator": "''.join(random.choice('abcdeEIOUxyz') for _ in range(20))",
}

class Backend:
    base_url = os.environ["SERVER"]

@pytest.fixture
def backend():
    return Backend()

@pytest.fixture
def client():
    return CollimateClient(os.environ["SERVER"])
"""


@pytest.fixture(scope="module")
def sources(published: Published, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tests of the source distribution, with a server for them."""
    directory = tmp_path_factory.mktemp("sdist")
    download = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", str(directory)]
    argv = [str(published.python), *download, "collimate-rl==0.8.0"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=150, check=False)
    if done.returncode:
        pytest.skip(f"the source distribution cannot be had here: {done.stderr[-200:]}")
    [archive] = directory.glob("*.tar.gz")
    with tarfile.open(archive) as tree:
        for name in FILES:
            member = tree.extractfile(f"collimate_rl-0.8.0/tests/{name}.py")
            assert member is not None
            (directory / f"{name}.py").write_bytes(member.read())
    (directory / "conftest.py").write_text(SERVER)
    return directory


def test_its_own_tests_pass_against_our_server(published: Published, sources: Path, open_served: Served) -> None:
    """Every one of them that is about what a server does."""
    argv = [str(published.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(sources)]
    argv += ["-k", f"not {LEFT_OUT}"]

    done = subprocess.run(
        argv,
        cwd=sources,
        env=plain({"SERVER": open_served.url}),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
