"""The OpenAPI 3.1 document, made of the wire types, the route table and its notes.

msgspec writes the schema of each wire type, and it is msgspec that decodes the requests: what the document says of a
shape is what the server does. `REFINED` adds what the types cannot say and their own checks do (a seed is 64 hex
characters). Every status that an operation may answer with is listed, with the error codes behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

from hotbed.errors import Error
from hotbed.wire.execs import TIMEOUT_LIMIT_S
from hotbed.wire.reference import EVERYWHERE, JSON, NOTES, Note, Parameter
from hotbed.wire.routes import API_HEADER, LEASE_HEADER, NDJSON, ROUTES, Route

_REF = "#/components/schemas/{name}"
_POSITIVE = {"exclusiveMinimum": 0}
_SEED = {"pattern": "^[0-9a-fA-F]{64}$"}
_DIGEST = {"pattern": "^[0-9a-f]{64}$"}
_PATH = {"pattern": "^/[^\\u0000]{0,1000}$"}
#: What the checks of the wire types demand of a field, by its name.
REFINED: Mapping[str, Mapping[str, Any]] = {
    "seed": _SEED,
    "env_digest": _DIGEST,
    "digest": _DIGEST,
    "path": _PATH,
    "cwd": _PATH,
    "timeout_seconds": {**_POSITIVE, "maximum": TIMEOUT_LIMIT_S},
    "output_bytes": {"minimum": 0},
    "ttl_s": _POSITIVE,
    "idle_ttl_s": _POSITIVE,
    "deadline_s": _POSITIVE,
    "concurrency": {"minimum": 1},
    "template": {"minLength": 1, "examples": ["python"]},
}
DESCRIPTION = (
    "Bodies are JSON in UTF-8. Fields that are not known are ignored; a text field whose bytes are not UTF-8 travels "
    "as base64 in its sibling with `_b64` at its end. With a key, also send `X-Hotbed-API: 1`: without it, a request "
    "with a key is taken for the published gateway client's."
)
ERROR = {
    "type": "object",
    "description": "What went wrong. `code` is stable; `error` and `error_code` say the same to the published client.",
    "properties": {
        **{name: {"type": "string"} for name in ("code", "message", "error", "error_code")},
        "hint": {"type": "string", "description": "what to do about it"},
    },
    "required": ["code", "message", "error", "error_code"],
}


def document(version: str) -> dict[str, Any]:
    """The whole document."""
    schemas = _schemas()
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = operation(route, NOTES[route.name])
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hotbed", "version": version, "description": DESCRIPTION, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Error": ERROR},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def operation(route: Route, note: Note) -> dict[str, Any]:
    """One operation."""
    found: dict[str, Any] = {
        "operationId": route.name,
        "summary": note.summary,
        "parameters": [*_segments(route), *map(_query, note.query), *_HEADERS],
        "responses": {str(route.status): _answer(route, note), **_failures(note)},
    }
    if route.request is not None:
        found["requestBody"] = _content(JSON, _ref(route.request), required=True)
    elif note.takes != JSON:
        found["requestBody"] = _content(note.takes, {}, required=True)
    return found


def statuses(note: Note) -> dict[int, list[str]]:
    """The error codes that an operation may answer with, by status."""
    known = errors_by_code()
    found: dict[int, list[str]] = {}
    for code in dict.fromkeys((*EVERYWHERE, *note.errors)):
        found.setdefault(known[code].status, []).append(code)
    return dict(sorted(found.items()))


@cache
def errors_by_code() -> Mapping[str, type[Error]]:
    """Every error that the wire knows."""
    found: dict[str, type[Error]] = {}
    waiting: list[type[Error]] = [Error]
    while waiting:
        kind = waiting.pop()
        found[kind.code] = kind
        waiting += [child for child in kind.__subclasses__() if child.__module__ == Error.__module__]
    return found


def _schemas() -> dict[str, Any]:
    kinds = {kind for route in ROUTES for kind in (route.request, route.reply) if kind is not None}
    kinds.update(kind for note in NOTES.values() for kind in note.lines)
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    _, schemas = msgspec.json.schema_components(ordered, ref_template=_REF)
    asked = _reached({route.request.__name__ for route in ROUTES if route.request is not None}, schemas)
    return {name: _refined(schema) if name in asked else schema for name, schema in sorted(schemas.items())}


def _reached(names: Iterable[str], schemas: Mapping[str, Any]) -> set[str]:
    """These schemas and those that they are made of: what a request can hold."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += re.findall(r"#/components/schemas/(\w+)", str(schemas[name]))
    return found


def _refined(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = {name: _narrowed(found, REFINED.get(name)) for name, found in schema.get("properties", {}).items()}
    return {**schema, "properties": properties}


def _narrowed(schema: Mapping[str, Any], more: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A field's schema with more demanded of it; null, where it is allowed, stays allowed."""
    if more is None:
        return schema
    if "anyOf" not in schema:
        return {**schema, **more}
    either = [part if part.get("type") == "null" else {**part, **more} for part in schema["anyOf"]]
    return {**schema, "anyOf": either}


def _answer(route: Route, note: Note) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if route.reply is not None:
        content[JSON] = {"schema": _ref(route.reply)}
    elif note.gives != NDJSON:
        content[note.gives] = {"schema": {"type": "object"} if note.gives == JSON else {}}
    if note.lines:
        kinds = " or ".join(kind.__name__ for kind in note.lines)
        content[NDJSON] = {"schema": {"description": f"lines of JSON, each {kinds}"}}
    return {"description": note.summary, "content": content}


def _failures(note: Note) -> dict[str, Any]:
    error = {JSON: {"schema": {"$ref": _REF.format(name="Error")}}}
    return {
        str(status): {"description": ", ".join(codes), "content": error} for status, codes in statuses(note).items()
    }


def _segments(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]


def _query(parameter: Parameter) -> dict[str, Any]:
    found: dict[str, Any] = {"name": parameter.name, "in": "query", "description": parameter.says}
    schema: dict[str, Any] = {"type": parameter.kind}
    if parameter.kind == "integer":
        schema["minimum"] = 0
    if parameter.required:
        schema.update(REFINED.get(parameter.name, {}))
    return {**found, "required": parameter.required, "schema": schema}


_HEADERS = tuple(
    {"name": name, "in": "header", "description": says, "required": False, "schema": {"type": "string"}}
    for name, says in (
        (LEASE_HEADER, "the lease to make things under, and to end them with"),
        (API_HEADER, "1, with a key: this is our API's request, not the published gateway client's"),
    )
)


def _ref(kind: type[Any]) -> dict[str, Any]:
    return {"$ref": _REF.format(name=kind.__name__)}


def _content(media: str, schema: Mapping[str, Any], *, required: bool) -> dict[str, Any]:
    return {"required": required, "content": {media: {"schema": schema}}}
