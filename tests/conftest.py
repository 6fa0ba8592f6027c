"""What every test gets: a clean environment, and the markers that depend on where it runs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.postgres import Postgres, missing, running_postgres

_ESCAPE = Path(__file__).parent / "escape"
_OURS = ("HOTBED_", "COLLIMATE_", "BOLTZLABS_")

# No deadline: how long an example takes says more about the machine's other work. In CI the examples are the same each
# time, so that a red run can be repeated.
settings.register_profile("hotbed", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("hotbed")


_HOME = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """State of a run's own, from before the first fixture: never that of the person who runs the tests."""
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        del os.environ[name]
    home = os.environ["HOTBED_HOME"] = config.stash[_HOME] = tempfile.mkdtemp(prefix="hotbed-tests-")
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs root when we are not, and mark the escape tests as such."""
    for item in items:
        if _ESCAPE in item.path.parents:
            item.add_marker(pytest.mark.escape)
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs to be root"))


@pytest.fixture(scope="session", autouse=True)
def reachable(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Templates of root's have ids of their own, and reach nothing below a directory that is only its owner's."""
    base, top = tmp_path_factory.getbasetemp(), Path(tempfile.gettempdir())
    for path in (base, *base.parents):
        if top not in path.parents or path.stat().st_uid != os.geteuid():
            break
        path.chmod(path.stat().st_mode & 0o7777 | 0o055)


@pytest.fixture(scope="session")
def runtime_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this run's node lives, so that tests never meet the node of the person who runs them."""
    return tmp_path_factory.mktemp("node")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, runtime_dir: Path, pytestconfig: pytest.Config) -> None:
    """No setting of the person who runs the tests, or of another test, reaches them."""
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOTBED_RUNTIME_DIR", str(runtime_dir))
    monkeypatch.setenv("HOTBED_HOME", pytestconfig.stash[_HOME])


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server, started by the first test that asks for it."""
    pytest.importorskip("psycopg")
    if (reason := missing()) is not None:
        pytest.skip(reason)
    with running_postgres() as server:
        yield server
