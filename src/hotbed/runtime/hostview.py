"""What a template shows of this host: decided here, as plain data, before anything is mounted.

The rule is to name what is shown, never what is hidden: the system's programs and libraries (/usr and the links into
it), the node's own interpreter, the packages that a template preloads, and the few files of /etc that programs need to
find libraries, time zones and certificates. Everything else of the host is absent, homes and secrets first of all.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotbed import guest
from hotbed.errors import TemplateFailed

PYTHON_HOME = "/opt/python"
PACKAGES_HOME = "/opt/packages"
GUEST_HOME = "/.hotbed/lib/hotbed/guest"
PATH = "/opt/python/bin:/usr/local/bin:/usr/bin:/bin"

_LINKS_INTO_USR = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC_FILES = (
    "ld.so.cache", "ld.so.conf", "ssl/openssl.cnf", "mime.types", "protocols", "services", "rpc", "debian_version",
    "os-release", "ethertypes", "magic", "inputrc", "bash.bashrc", "profile", "localtime", "timezone",
)  # fmt: skip
_ETC_TREES = (
    "alternatives",
    "ld.so.conf.d",
    "ssl/certs",
    "pki/tls/certs",
    "pki/ca-trust",
    "ca-certificates",
    "perl",
    "fonts",
)
_ETC_PATTERNS = ("python3*", "java-*", "php*", "R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """A tree of the host and where a template sees it, read-only."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """The Python that a template runs. `tree` is mounted where it is not part of /usr."""

    executable: str
    tree: Bind | None = None
    library_path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """Everything of the host that a template will see."""

    interpreter: Interpreter
    trees: tuple[Bind, ...]
    packages: tuple[Bind, ...]
    links: tuple[tuple[str, str], ...]
    etc: tuple[str, ...]
    over: tuple[Path, ...] = ()

    def env(self) -> dict[str, str]:
        """The environment of a sandbox before the template's own variables."""
        env = {"PATH": PATH, "HOME": "/work", "LANG": "C.UTF-8", "TERM": "dumb", "USER": "root", "LOGNAME": "root"}
        if self.packages:
            env["PYTHONPATH"] = PACKAGES_HOME
        if self.interpreter.library_path:
            env["LD_LIBRARY_PATH"] = self.interpreter.library_path
        return env


def describe(preload: Iterable[str] = (), mounts: Iterable[tuple[str, str]] = ()) -> HostView:
    """The view that a template with these preloads gets of the host this process runs on."""
    interpreter = node_interpreter()
    system, links = _system_trees()
    own = (interpreter.tree,) if interpreter.tree else ()
    extra = tuple(Bind(source=os.path.realpath(source), target=target) for source, target in mounts)
    return HostView(
        interpreter=interpreter,
        trees=(*system, *own, *extra),
        packages=packages_of(preload),
        links=links,
        etc=tuple(_etc_paths()),
    )


def _system_trees() -> tuple[tuple[Bind, ...], tuple[tuple[str, str], ...]]:
    """/usr, and the old top-level directories as whatever they are here: links into it, or trees of their own."""
    trees, links = [Bind(source="/usr", target="/usr")], []
    for name in _LINKS_INTO_USR:
        path = "/" + name
        if os.path.islink(path):
            links.append((path, os.readlink(path)))
        elif os.path.isdir(path):
            trees.append(Bind(source=path, target=path))
    if os.path.isdir("/nix/store"):
        trees.append(Bind(source="/nix/store", target="/nix/store"))
    return tuple(trees), tuple(links)


def node_interpreter() -> Interpreter:
    """The interpreter this process runs on, below its virtual environment if it has one."""
    base = os.path.realpath(sys.base_prefix)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    real = os.path.realpath(os.path.join(base, "bin", name))
    if not os.path.exists(real):
        real = os.path.realpath(sys.executable)
    if base == "/usr" or base.startswith("/usr/") or base.startswith("/nix/store/"):
        return Interpreter(executable=real)
    tree = Bind(source=base, target=PYTHON_HOME)
    library_path = None
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        library_path = PYTHON_HOME + "/lib"
    return Interpreter(executable=f"{PYTHON_HOME}/{os.path.relpath(real, base)}", tree=tree, library_path=library_path)


def _etc_paths() -> Iterable[str]:
    """The files and small trees of /etc that are copied, as far as this host has them."""
    for name in (*_ETC_FILES, *_ETC_TREES):
        if os.path.lexists("/etc/" + name):
            yield name
    for pattern in _ETC_PATTERNS:
        for path in sorted(Path("/etc").glob(pattern)):
            yield path.name


def packages_of(modules: Iterable[str]) -> tuple[Bind, ...]:
    """The installed packages that the modules need and that /usr and the interpreter do not already show."""
    wanted: dict[str, str] = {}
    for module in modules:
        top = module.partition(".")[0]
        origin = _origin(top) if top != "hotbed" else None  # a guest module: every template has those
        if origin is None or _is_shown(origin):
            continue
        for path in _distribution_paths(top, origin):
            wanted[os.path.basename(path)] = path
    return tuple(Bind(source=path, target=f"{PACKAGES_HOME}/{name}") for name, path in sorted(wanted.items()))


def _origin(module: str) -> str | None:
    """The file or directory a top-level module comes from; None for a built-in one."""
    spec = importlib.util.find_spec(module)
    if spec is None:
        raise TemplateFailed(
            f"the template preloads {module!r}, which this node's Python does not have",
            hint=f"{sys.executable} -m pip install {module}",
        )
    if spec.submodule_search_locations:
        return os.path.realpath(list(spec.submodule_search_locations)[0])
    return os.path.realpath(spec.origin) if spec.has_location and spec.origin else None


def _is_shown(path: str) -> bool:
    stdlib = os.path.realpath(sysconfig.get_path("stdlib"))
    in_stdlib = path.startswith(stdlib + "/") and "site-packages" not in path and "dist-packages" not in path
    return in_stdlib or path.startswith("/usr/lib/")


def _distribution_paths(module: str, origin: str) -> Iterable[str]:
    """A module's own path, and every top-level path of its distribution and of what that requires."""
    yield origin
    names = importlib.metadata.packages_distributions().get(module, []) if sys.version_info >= (3, 10) else []
    queue, seen = list(names), set()
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # an optional requirement that is not installed
        yield from _top_level_paths(found)
        queue += [_required_name(line) for line in found.requires or () if "extra ==" not in line]


def _top_level_paths(distribution: importlib.metadata.Distribution) -> Iterable[str]:
    tops = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__", "bin")}
    for top in sorted(tops):
        path = os.path.realpath(str(distribution.locate_file(top)))
        if os.path.exists(path):
            yield path


def _required_name(requirement: str) -> str:
    end = next((i for i, c in enumerate(requirement) if not (c.isalnum() or c in "-_.")), len(requirement))
    return requirement[:end]


def guest_package() -> Bind:
    """The code that runs inside, as a template sees it. Sandboxes do not see it."""
    return Bind(source=os.path.dirname(os.path.realpath(guest.__file__)), target=GUEST_HOME)


def as_plan(view: HostView, env: Mapping[str, str]) -> dict[str, Any]:
    """The view as the plain data that the launcher is sent."""
    lib = guest_package()
    own = {"library_path": view.interpreter.library_path} if view.interpreter.library_path else {}
    return {
        **own,
        "executable": view.interpreter.executable,
        "env": {**view.env(), **env},
        "trees": [[bind.source, bind.target] for bind in view.trees],
        "packages": [[bind.source, bind.target] for bind in view.packages],
        "guest": [lib.source, lib.target],
        "links": [list(link) for link in view.links],
        "etc": list(view.etc),
        "over": [str(path) for path in view.over],
    }
