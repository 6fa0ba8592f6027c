"""A template's recipe as a file in a repository, hotbed.toml, and as options.

[template]
name = "task-17"
image = "rootfs:./root"            # paths are the file's own directory's
setup = ["pip install --no-index ./wheels/*.whl"]
preload = ["numpy"]
env = { TOKEN = "x" }
limits = { memory_mib = 2048 }
width = 64
[template.ready]
cmd = "./serve.sh"
http = "http://localhost:8080/health"
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hotbed.cli.commands.run import policy
from hotbed.errors import InvalidRequest

FILE = "hotbed.toml"
_FIELDS = ("name", "image", "setup", "preload", "warm_cmd", "env", "limits", "egress", "width", "ready")
_READY = ("cmd", "http", "ports", "env", "network", "timeout_s")
_LOCAL = ("oci", "docker-archive", "rootfs")


def of_file(path: str) -> dict[str, Any]:
    """The recipe of a file, or of the directory that has one. Raises `InvalidRequest`."""
    place = Path(path)
    place = place / FILE if place.is_dir() else place
    try:
        tomllib: Any = importlib.import_module("tomllib")
        found = tomllib.loads(place.read_text())
    except ImportError:
        raise InvalidRequest(f"{FILE} needs Python 3.11", hint="give options instead") from None
    except (OSError, ValueError) as error:  # what is not TOML or not UTF-8 is a ValueError
        raise InvalidRequest(f"{place} cannot be read: {error}") from None
    recipe = found.get("template")
    if not isinstance(recipe, dict):
        raise InvalidRequest(f"{place} has no table [template]")
    _check(f"{place}: template", recipe, _FIELDS)
    ready = recipe.get("ready", {})
    _check(f"{place}: template.ready", ready, _READY)
    recipe.setdefault("name", place.resolve().parent.name.lower())
    if "image" in recipe:
        recipe["image"] = _beside(place.resolve().parent, str(recipe["image"]))
    return dict(recipe)


def _check(where: str, table: Any, known: Sequence[str]) -> None:
    unknown = sorted(set(table) - set(known)) if isinstance(table, dict) else [repr(table)]
    if unknown:
        raise InvalidRequest(f"{where} has no {', '.join(unknown)}", hint=f"it has {', '.join(known)}")


def _beside(folder: Path, image: str) -> str:
    """A relative path in an image's name is one beside the file."""
    kind, colon, rest = image.partition(":")
    return f"{kind}:{folder / rest}" if colon and kind in _LOCAL else image


def with_options(recipe: Mapping[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """The recipe with what was given on the command line, which wins. Raises `InvalidRequest`."""
    from hotbed.wire.templates import Ready

    given = {name: getattr(args, name) for name in ("name", "setup", "preload", "warm_cmd", "width")}
    given["image"] = _beside(Path.cwd(), args.image) if args.image else None
    given["egress"] = policy(args.egress)
    given["env"] = _pairs("--env", args.env, str)
    given["limits"] = _pairs("--limit", args.limit, float)
    found = {**recipe, **{name: value for name, value in given.items() if value is not None}}
    ready = dict(found.pop("ready", {}))
    options = {
        "cmd": args.ready_cmd,
        "http": args.ready_http,
        "ports": args.ready_port,
        "timeout_s": args.ready_timeout,
    }
    ready.update({name: value for name, value in options.items() if value is not None})
    if ready:
        found["ready"] = Ready(**{**ready, "ports": tuple(ready.get("ports", ()))})
    if "name" not in found:
        raise InvalidRequest("the template needs a name", hint=f"--name NAME, or a {FILE}")
    return found


def _pairs(option: str, words: Sequence[str] | None, kind: type) -> dict[str, Any] | None:
    if words is None:
        return None
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        try:
            if not equals:
                raise ValueError
            found[name] = kind(value)
        except ValueError:
            raise InvalidRequest(f"{option} {word!r} is not NAME=VALUE") from None
    return found
