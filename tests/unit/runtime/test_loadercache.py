"""The loader's cache: what is added is found, and nothing that was in it is lost."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from hotbed.runtime import loadercache

HOST = Path("/etc/ld.so.cache")
OURS = {"libzz.so.1": "/opt/python/lib/libzz.so.1", "liba.so": "/opt/python/lib/liba.so"}


def made(*libraries: tuple[str, str], hardware: bool = False) -> bytes:
    """A cache as ldconfig writes it, with one entry for a kind of processor if that is wanted."""
    count = len(libraries)
    strings, entries = b"", b""
    start = 48 + 24 * count
    for name, path in libraries:
        at = start + len(strings)
        entries += struct.pack("<iIIIQ", 0x0303, at, at + len(name) + 1, 0, 1 << 62 if hardware else 0)
        strings += name.encode() + b"\0" + path.encode() + b"\0"
    kind = start + len(strings)
    strings += b"x86-64-v3\0"
    strings += bytes(-len(strings) % 4)
    at = start + len(strings)
    names = at + 8 + 16
    extension = struct.pack("<II IIII I", 0xEAA42174, 1, 1, 0, names, 4, kind)
    return (
        struct.pack("<20sIIB3xI12x", b"glibc-ld.so.cache1.1", count, len(strings), 2, at)
        + entries
        + strings
        + extension
    )


def entries_of(cache: bytes) -> list[tuple[str, str]]:
    """Names and paths, in their order."""
    count = struct.unpack_from("<I", cache, 20)[0]
    found = []
    for number in range(count):
        _, name, path, _, _ = struct.unpack_from("<iIIIQ", cache, 48 + 24 * number)
        found.append(tuple(cache[at : cache.index(b"\0", at)].decode() for at in (name, path)))
    return [(name, path) for name, path in found]


def test_added_libraries_stand_where_a_loader_looks_for_them() -> None:
    """It looks by halving: one that is out of order is one that is not there."""
    cache = loadercache.with_libraries(made(("libz.so.1", "/lib/libz.so.1"), ("libb.so.2", "/lib/libb.so.2")), OURS)

    assert cache is not None
    assert [name for name, _ in entries_of(cache)] == ["libzz.so.1", "libz.so.1", "libb.so.2", "liba.so"]
    assert dict(entries_of(cache)) == {"libz.so.1": "/lib/libz.so.1", "libb.so.2": "/lib/libb.so.2", **OURS}


def test_added_library_wins_over_one_of_its_name() -> None:
    """The interpreter of a template is not to run on the host's library."""
    cache = loadercache.with_libraries(made(("liba.so", "/usr/lib/liba.so")), {"liba.so": "/opt/python/lib/liba.so"})

    assert cache is not None
    assert entries_of(cache) == [("liba.so", "/opt/python/lib/liba.so"), ("liba.so", "/usr/lib/liba.so")]


def test_names_of_processors_are_found_after_the_move() -> None:
    """Libraries for one kind of processor are named by them."""
    cache = loadercache.with_libraries(made(("liba.so", "/lib/v3/liba.so"), hardware=True), {"libb.so": "/x/libb.so"})

    assert cache is not None
    extension = struct.unpack_from("<I", cache, 32)[0]
    _, _, _, _, names, _ = struct.unpack_from("<6I", cache, extension)
    name = struct.unpack_from("<I", cache, names)[0]
    assert cache[name:].startswith(b"x86-64-v3\0")


def test_numbers_in_names_are_compared_as_numbers() -> None:
    """And come after every letter, the end of a name before everything."""
    names = [b"liba.so", b"liba.so.2", b"liba.so.10", b"libab.so", b"liba1.so"]

    assert sorted(names, key=loadercache.order) == [b"liba.so", b"liba.so.2", b"liba.so.10", b"libab.so", b"liba1.so"]


@pytest.mark.parametrize("cache", [b"", b"ld.so-1.7.0\0" + bytes(100), made(("liba.so", "/lib/liba.so"))[:60]])
def test_cache_of_another_form_is_left_alone(cache: bytes) -> None:
    """Older glibc, or half a file."""
    assert loadercache.with_libraries(cache, OURS) is None


@pytest.mark.skipif(not HOST.exists(), reason="no glibc")
def test_hosts_cache_with_nothing_added_is_what_it_was() -> None:
    """Byte for byte, so its order is understood."""
    assert loadercache.with_libraries(HOST.read_bytes(), {}) == HOST.read_bytes()


@pytest.mark.skipif(not HOST.exists(), reason="no glibc")
def test_ldconfig_reads_what_was_written(tmp_path: Path) -> None:
    """The program that makes such caches."""
    ldconfig = shutil.which("ldconfig", path=os.defpath + ":/sbin:/usr/sbin")
    if ldconfig is None:
        pytest.skip("no ldconfig")
    cache = loadercache.with_libraries(HOST.read_bytes(), OURS)
    assert cache is not None
    (tmp_path / "cache").write_bytes(cache)

    said = subprocess.run([ldconfig, "-p", "-C", tmp_path / "cache"], capture_output=True, text=True, check=True).stdout

    assert all(f"{name} (libc6,x86-64) => {path}" in said for name, path in OURS.items())
