"""What a node is told when it starts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.server.settings import Settings, make_home, make_private_dir, read_settings


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a settings file needs tomllib")
def test_a_flag_wins_over_the_environment_over_the_file(tmp_path: Path) -> None:
    """Each of the three can set each field."""
    file = tmp_path / "hotbed.toml"
    file.write_text('max_sandboxes = 1\nqueue_limit = 1\nlinger_s = 1\nwarm = ["a", "b"]\n')
    environ = {"HOTBED_SETTINGS": str(file), "HOTBED_QUEUE_LIMIT": "2", "HOTBED_LINGER_S": "2"}

    settings = read_settings({"linger_s": 3.0, "queue_wait_s": None}, environ)

    assert (settings.max_sandboxes, settings.queue_limit, settings.linger_s) == (1, 2, 3.0)
    assert (settings.queue_wait_s, settings.warm) == (60.0, ("a", "b"))


def test_the_environment_is_text_and_the_settings_are_not() -> None:
    """An empty variable counts as unset."""
    settings = read_settings(
        {}, {"HOTBED_EMBEDDED": "yes", "HOTBED_WARM": "a, b", "HOTBED_PORT": "0", "HOTBED_HOME": ""}
    )

    assert (settings.embedded, settings.warm, settings.port) == (True, ("a", "b"), 0)
    assert settings.home.endswith(".local/state/hotbed")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"port": 70_000}, "port"),
        ({"linger_s": -1.0}, "linger_s"),
        ({"backend": "docker"}, "fork or fake"),
        ({"port": 80, "host": "0.0.0.0"}, "without TLS"),
        ({"public_url": "sandboxes.example.org"}, "public_url"),
        ({"public_url": "https://example.org/?t=1"}, "public_url"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(flags: dict[str, Any], message: str) -> None:
    """Before anything is started."""
    with pytest.raises(InvalidRequest, match=message):
        read_settings(flags, {})


def test_a_wrong_value_names_its_setting(tmp_path: Path) -> None:
    """Wherever it came from."""
    with pytest.raises(InvalidRequest, match="max_sandboxes is not int"):
        read_settings({}, {"HOTBED_MAX_SANDBOXES": "many"})
    with pytest.raises(InvalidRequest, match="embedded is not bool"):
        read_settings({}, {"HOTBED_EMBEDDED": "perhaps"})
    with pytest.raises(InvalidRequest, match="cannot be read|Python 3.11"):
        read_settings({"settings": str(tmp_path / "missing")}, {})


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a settings file needs tomllib")
def test_an_unknown_setting_in_the_file_is_refused(tmp_path: Path) -> None:
    """A typing mistake must not be a default in disguise."""
    file = tmp_path / "hotbed.toml"
    file.write_text("max_sandbox = 1\n")

    with pytest.raises(InvalidRequest, match="max_sandbox"):
        read_settings({"settings": str(file)}, {})


def test_an_address_is_told_as_a_client_names_it() -> None:
    """For the log of who starts a server, and in refusals."""
    assert Settings(socket="/s", host="::1", port=8080).addresses == ("unix:///s", "http://[::1]:8080")
    assert Settings(port=1, tls_cert="c", tls_key="k").addresses == ("https://127.0.0.1:1",)
    assert Settings(socket="/s").addresses == ("unix:///s",)


def test_where_it_listens() -> None:
    """A socket in the runtime directory unless told otherwise; none when only a port was asked for."""
    assert read_settings({}, {"HOTBED_RUNTIME_DIR": "/r"}).socket_path == Path("/r/node.sock")
    assert read_settings({"socket": "/s", "port": 1}, {}).socket_path == Path("/s")
    assert read_settings({"port": 1}, {}).socket_path is None
    assert read_settings({}, {"XDG_RUNTIME_DIR": "/x"}).socket_path == Path("/x/hotbed/node.sock")


def test_zero_sandboxes_means_as_many_as_the_machine_holds() -> None:
    """A number that is given is taken."""
    assert Settings().policy().max_sandboxes > 0
    assert Settings(max_sandboxes=3).policy().max_sandboxes == 3


def test_a_directory_of_somebody_elses_making_is_refused(tmp_path: Path) -> None:
    """Whoever could put a socket there would answer for the node."""
    make_private_dir(tmp_path / "new")
    make_private_dir(tmp_path / "new")
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path / "new")

    for wrong in ("open", "link"):
        with pytest.raises(InvalidRequest, match="only uid"):
            make_private_dir(tmp_path / wrong)


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """With what to do about it, and no traceback."""
    (tmp_path / "file").touch()

    with pytest.raises(InvalidRequest, match="runtime directory .*File exists"):
        make_private_dir(tmp_path / "file")
    with pytest.raises(InvalidRequest, match="keep its state .*Not a directory"):
        make_home(tmp_path / "file" / "home")
