"""Which of the tests' objects a candidate may use, and how far."""

from __future__ import annotations

import asyncio
import functools
import glob
import importlib
import io
import json
import logging
import math
import operator
import os
import pathlib
import pickle
import queue
import random
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any
from unittest import mock

import pytest

from hotbed.guest.judging import offered


class Mine:
    """As the tests' own classes are: of a module without a file, here of `__main__`."""

    balance = 0

    def verify(self) -> bool:
        """What it does."""
        return False


Mine.__module__ = "__main__"


async def _job() -> int:
    return 731


@pytest.mark.parametrize("name", ["cr_code", "cr_frame", "__code__", "co_consts", "f_locals", "gi_code", "_private"])
def test_code_and_frames_are_out_of_reach(name: str) -> None:
    """They hold what the tests expect."""
    coroutine = _job()
    frame = sys._getframe()
    for value in (coroutine, frame, _job.__code__, _job, (x for x in [0]), sys):
        with pytest.raises(AttributeError):
            offered.Offered().get(value, name)
    coroutine.close()


def test_what_leads_nowhere_is_offered() -> None:
    """The tests' own classes, and those of the library that reach no file, process or module."""
    for value in (
        *(Mine(), Mine, [], {}, iter([]), queue.Queue(), random.Random(1), re.compile("a"), threading.Lock(), len),
        *(io.StringIO(), io.BytesIO(), mock.Mock(), [].append, functools.partial(int), pathlib.Path("a"), ValueError()),
        *(logging.getLogger("a"), object(), operator.attrgetter("a"), math.sin, json.dumps, os.path.join, time.sleep),
        *(pathlib.Path("a").joinpath, mock.Mock().method, "a".upper, random.Random(1).random, functools.reduce),
    ):
        offered.Offered().check(value)


def test_what_leads_elsewhere_is_not() -> None:
    """Also where a test was careless enough to hand it over."""
    for value in (
        *(os.environ, socket.socket, subprocess.Popen, io.FileIO, tempfile.TemporaryDirectory, sys, eval, getattr),
        *(os.system, os.listdir, subprocess.run, shutil.copy, importlib.import_module, pickle.loads, sys.exit),
        *(functools.partial(os.listdir), asyncio.run, logging.getLogger, mock.patch, tempfile.mkdtemp, glob.glob),
        *(functools.partial(getattr), operator.attrgetter, str.format, open, logging.FileHandler, mock.patch("os.sep")),
    ):
        with pytest.raises(TypeError):
            offered.Offered().check(value)


@pytest.fixture
def lent(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> tuple[offered.Offered, pathlib.Path]:
    """A folder that a test handed over, in a judge that works elsewhere."""
    (tmp_path / "judge").mkdir()
    monkeypatch.chdir(tmp_path / "judge")
    (tmp_path / "given").mkdir()
    (tmp_path / "given/a").write_text("1")
    found = offered.Offered()
    found.lend(tmp_path / "given")
    return found, tmp_path / "given"


def test_a_path_is_used_below_what_was_handed_over(lent: tuple[offered.Offered, pathlib.Path]) -> None:
    """Read, written and listed."""
    found, given = lent
    found.get(given / "b", "write_text")("2")

    assert found.get(given / "a", "read_text")() == "1"
    assert sorted(path.name for path in found.get(given, "iterdir")()) == ["a", "b"]
    assert found.get(given, "joinpath")("x") == given / "x" and found.get(given, "name") == "given"


@pytest.mark.parametrize("way", ["/proc/self/mem", "..", "../judge/expected.json", "link/x"])
def test_nothing_else_is_reached_from_it(lent: tuple[offered.Offered, pathlib.Path], way: str) -> None:
    """By an absolute path, upwards, or over a link that a test has made."""
    found, given = lent
    (given / "link").symlink_to("/etc")
    for name in ("read_text", "iterdir", "open"):
        with pytest.raises(PermissionError):
            found.get(given.joinpath(way), name)()


@pytest.mark.parametrize("name", ["cwd", "home", "symlink_to", "rename", "replace", "chmod", "resolve", "owner"])
def test_what_would_leave_it_is_not_offered(lent: tuple[offered.Offered, pathlib.Path], name: str) -> None:
    """Or tell of what is around it."""
    found, given = lent
    with pytest.raises(AttributeError):
        found.get(given, name)


def test_the_judges_own_folder_is_no_place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one above it."""
    (tmp_path / "judge").mkdir()
    monkeypatch.chdir(tmp_path / "judge")
    for folder in (tmp_path, tmp_path / "judge", pathlib.Path("/")):
        found = offered.Offered()
        found.lend(folder)
        with pytest.raises(PermissionError):
            found.get(folder, "iterdir")()


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.set(Mine(), "verify", lambda: True),
        lambda found: found.set(Mine(), "verify", True),
        lambda found: found.delete(Mine(), "verify"),
        lambda found: found.set(mock.Mock(), "info", lambda: True),
        lambda found: found.set(mock.Mock(), "call_count", 1),
        lambda found: found.set(mock.Mock(), "assert_called_once_with", 1),
        lambda found: found.get(mock.Mock(), "configure_mock"),
        lambda found: found.get(mock.MagicMock(), "mock_calls"),
        lambda found: found.set(pathlib.Path("a"), "name", "b"),
        lambda found: found.get(logging.getLogger("a"), "handlers"),
        lambda found: found.set(Mine(), "_private", 1),
    ],
)
def test_what_the_tests_check_by_is_theirs(change: Callable[[offered.Offered], Any]) -> None:
    """Methods, what a mock remembers and how it answers, what leads on from a part."""
    with pytest.raises(AttributeError):
        change(offered.Offered())


def test_plain_attributes_can_be_set_and_removed() -> None:
    """As a function that changes its argument does."""
    found, mine, stand_in = offered.Offered(), Mine(), mock.Mock()
    found.set(mine, "balance", 5)
    found.set(stand_in, "name", "b")

    assert (mine.balance, stand_in.name) == (5, "b")
    found.delete(mine, "balance")
    assert found.get(mine, "balance") == 0


def test_a_database_takes_statements() -> None:
    """And is not copied elsewhere."""
    found = offered.Offered()
    with closing(sqlite3.connect(":memory:")) as connection:
        found.check(connection)
        assert found.get(connection, "execute")("select 2").fetchone() == (2,)
        with pytest.raises(AttributeError):
            found.get(connection, "backup")
