"""The operations on templates as values, before any I/O has happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from hotbed.sdk.bodies import json_body, read_json
from hotbed.sdk.calls import Call
from hotbed.sdk.programs import EgressPolicy
from hotbed.wire import routes
from hotbed.wire.checks import egress_object, require, require_mapping
from hotbed.wire.codec import from_wire, to_wire
from hotbed.wire.templates import (
    CreateTemplate,
    ExpectSandboxes,
    ImageList,
    ImageRow,
    TemplateDeleted,
    TemplateList,
    TemplateRow,
)

T = TypeVar("T")


def listing() -> Call[tuple[TemplateRow, ...]]:
    """Every template the caller can use, or has asked for."""

    def read(body: bytes) -> tuple[TemplateRow, ...]:
        return _read(TemplateList, body).templates

    return Call(method="GET", target=routes.LIST_TEMPLATES.url(), read=read)


def create(request: CreateTemplate) -> Call[TemplateRow]:
    """Name a template. One that has to be baked is not ready when this returns."""
    body = json_body(to_wire(request))
    route = routes.CREATE_TEMPLATE
    return Call(method=route.method, target=route.url(), read=partial(_read, TemplateRow), body=body)


def get(name: str) -> Call[TemplateRow]:
    """One of them, and how far it is."""
    return Call(method="GET", target=routes.GET_TEMPLATE.url(name=name), read=partial(_read, TemplateRow))


def delete(name: str) -> Call[TemplateDeleted]:
    """Forget one, or give up its bake."""
    route = routes.DELETE_TEMPLATE
    return Call(method=route.method, target=route.url(name=name), read=partial(_read, TemplateDeleted))


def expect(name: str, width: int) -> Call[TemplateRow]:
    """Say how many of its sandboxes will be wanted at once."""
    route, body = routes.EXPECT_SANDBOXES, json_body(to_wire(ExpectSandboxes(width=width)))
    return Call(method=route.method, target=route.url(name=name), read=partial(_read, TemplateRow), body=body)


def images() -> Call[tuple[ImageRow, ...]]:
    """What a template can be made from."""

    def read(body: bytes) -> tuple[ImageRow, ...]:
        return _read(ImageList, body).images

    return Call(method="GET", target=routes.LIST_IMAGES.url(), read=read)


def described(
    name: str,
    image: str,
    preload: Sequence[str],
    env: Mapping[str, str] | None,
    limits: Mapping[str, float] | None,
    egress: EgressPolicy | None,
    *,
    setup: Sequence[str] = (),
    **more: Any,
) -> CreateTemplate:
    """The wire form of what a user wrote. `more` are fields that need no change."""
    for what, value in (("setup", setup), ("preload", preload)):
        require(not isinstance(value, (str, bytes)), f"{what} is one string, {value!r}", 'give a list: ["json"]')
    require_mapping("env", env)
    require_mapping("limits", limits)
    return CreateTemplate(
        name=name,
        image=image,
        setup=tuple(setup),
        preload=tuple(preload),
        env=dict(env or {}),
        limits=limits,
        egress=egress_object(egress),
        **more,
    )


def _read(kind: type[T], body: bytes) -> T:
    return from_wire(kind, read_json(body))
