"""The OpenAPI document. That the server does what it says is tested in tests/e2e/test_openapi.py."""

from __future__ import annotations

import json
import re
from typing import Any

from hotbed.server.openapi import REFINED, document, errors_by_code, statuses
from hotbed.wire.reference import NOTES
from hotbed.wire.routes import ROUTES


def test_every_route_is_an_operation() -> None:
    """By its name, with its answer, its failures, its path's segments and its body."""
    paths = document("1")["paths"]
    for route in ROUTES:
        found = paths[route.path][route.method.lower()]
        assert found["operationId"] == route.name
        assert str(route.status) in found["responses"] and "400" in found["responses"]
        segments = [item["name"] for item in found["parameters"] if item["in"] == "path"]
        assert segments == re.findall(r"{(\w+)}", route.path)
        assert ("requestBody" in found) == (route.request is not None or NOTES[route.name].takes != "application/json")


def test_every_reference_leads_somewhere() -> None:
    """A document with a hole in it is refused by every tool that reads one."""
    made: dict[str, Any] = json.loads(json.dumps(document("1")))
    names = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(made)))

    assert names <= set(made["components"]["schemas"])
    assert "Error" in names


def test_what_the_checks_demand_is_in_the_schemas_of_requests_only() -> None:
    """An older server's answer may hold what a request may not."""
    schemas = document("1")["components"]["schemas"]

    assert schemas["CreateSandbox"]["properties"]["seed"]["anyOf"][0] == {"type": "string", **REFINED["seed"]}
    assert schemas["FileSpec"]["properties"]["path"]["pattern"].startswith("^/")
    assert schemas["SandboxCreated"]["properties"]["seed"] == {"type": "string", "default": ""}


def test_failures_are_grouped_by_status() -> None:
    """With the codes that tell them apart."""
    found = statuses(NOTES["create_sandbox"])

    assert {"at_capacity", "quota_exceeded", "rate_limited"} <= set(found[429])
    assert errors_by_code()["pool_closed"].status == 410
