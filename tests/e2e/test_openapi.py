"""The server does what its OpenAPI document says: asked by schemathesis, in every way that the document allows and in
many that it does not.

No answer is a 500; every status is one that the document lists for the operation, with the media type and the shape
that it gives. (A refusal with 501 or 503 is in the document with its codes.) The requests are the same in every run.
Where a request is about something that exists, it does: half of the requests to a sandbox are to one that lives, and
half of the programs can be run.

Left out is `positive_data_acceptance`: a body of the right shape may still name a template that nobody made, or say two
things to run; what the shapes cannot say is refused with 400 and a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.schemas import BaseSchema

from hotbed.wire.execs import TIMEOUT_LIMIT_S
from hotbed.wire.reference import BYTES, TAR
from hotbed.wire.routes import HOLD_LEASE, LEASE_HEADER, ROUTES, Route
from tests.e2e.node_process import node_process
from tests.interop.published import free_port

EXAMPLES = {"fake": 12, "fork": 4}
UNBOUNDED = {HOLD_LEASE.name}  # its answer ends with its client
RUNS = {"exec", "rollout"}
PROGRAMS = ("code", "command", "commands", "code_b64", "command_b64")
ASK_TIMEOUT_S = 20
LEFT_OUT = {
    "not_a_server_error",
    "positive_data_acceptance",
    "ignored_auth",
    "use_after_free",
    "ensure_resource_availability",
}
ASKED = [route for route in ROUTES if route.name not in UNBOUNDED]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A live server, its document, and a sandbox of it."""

    url: str
    schema: BaseSchema
    session: requests.Session
    backend: str

    def sandbox(self) -> str:
        """The id of a sandbox that lives; a new one when the last request ended it."""
        listed = self.session.get(f"{self.url}/v1/sandboxes").json()["sandboxes"]
        if not listed:
            made = self.session.post(f"{self.url}/v1/sandboxes", json={"template": "python"})
            return str(made.json()["id"])
        return str(listed[0]["id"])


@pytest.fixture(scope="module", params=["fake", "fork"])
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """On loopback, without keys."""
    directory, port = tmp_path_factory.mktemp("openapi"), free_port()
    directory.chmod(0o755)
    options: dict[str, Any] = {"port": port, "shared": True, "home": str(directory / "home"), "max_sandboxes": 64}
    with node_process(directory, backend=request.param, runtime_dir=str(directory / "run"), **options) as node:
        if node.word.get("code") == "isolation_unavailable":
            pytest.skip(node.word["message"])
        url = f"http://127.0.0.1:{port}"
        with requests.Session() as session:
            session.trust_env = False
            document = session.get(f"{url}/openapi.json", timeout=ASK_TIMEOUT_S).json()
            schema = schemathesis.openapi.from_dict(without_tuples(document))
            yield Asked(url=url, schema=schema, session=session, backend=request.param)


def without_tuples(schema: Any) -> Any:
    """The same with each tuple as a list: schemathesis 4.32 writes a tuple as an older draft does, and stumbles."""
    if isinstance(schema, list):
        return [without_tuples(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: without_tuples(item) for name, item in schema.items() if name != "prefixItems"}
    return {**made, "items": schema["prefixItems"][0]} if "prefixItems" in schema else made


@pytest.mark.slow
@pytest.mark.parametrize("route", ASKED, ids=lambda route: route.name)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_the_server_does_what_the_document_says(asked: Asked, route: Route, mode: GenerationMode) -> None:
    """A client in another language knows nothing but the document."""
    operation = asked.schema[route.path][route.method]
    if mode is GenerationMode.NEGATIVE and not (operation.query or route.request):
        pytest.skip("nothing to get wrong")
    load_all_checks()
    schemathesis.serializer.alias(TAR, BYTES)
    checks: list[Any] = [check for check in CHECKS.get_all() if check.__name__ not in LEFT_OUT]
    turn = iter(range(1 << 20))

    @settings(
        max_examples=EXAMPLES[asked.backend],
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Case[Any]) -> None:
        prepare(case, route, asked, real=next(turn) % 2 == 0, valid=mode is GenerationMode.POSITIVE)
        answer = case.call(base_url=asked.url, session=asked.session, timeout=ASK_TIMEOUT_S)
        assert answer.status_code != 500, answer.text
        case.validate_response(answer, checks=checks)

    ask()


def prepare(case: Case[Any], route: Route, asked: Asked, *, real: bool, valid: bool) -> None:
    """A request that is served in a moment and does nothing to this machine, and that may be about what exists."""
    for name in [name for name in case.headers if name.lower() == LEASE_HEADER]:
        del case.headers[name]  # nearly every lease is one that nobody holds
    if real and "/sandboxes/{id}" in route.path:
        case.path_parameters["id"] = asked.sandbox()
    if isinstance(case.body, dict):
        case.body.update(tamed(case.body, real=real))
        given = [name for name in PROGRAMS if case.body.get(name) is not None] if real and valid else []
        for name in given[1:]:  # of several programs, none would be run
            del case.body[name]
        if route.name in RUNS and asked.backend == "fake":  # which runs things on this machine
            case.body.update({name: "print" for name in ("code", "command") if isinstance(case.body.get(name), str)})
            for name in PROGRAMS[2:]:
                case.body.pop(name, None)


def tamed(body: dict[str, Any], *, real: bool) -> dict[str, Any]:
    """What to change in a body: a second is enough for anything, and `real` names a template that exists."""
    changed: dict[str, Any] = {}
    if real and isinstance(body.get("template"), str) and body["template"]:
        changed["template"] = "python"
    seconds = body.get("timeout_seconds")
    if isinstance(seconds, (int, float)) and seconds > 1:
        changed["timeout_seconds"] = min(seconds, 1 if seconds <= TIMEOUT_LIMIT_S else seconds)
    return changed


@pytest.mark.slow
def test_the_document_is_whole(asked: Asked) -> None:
    """Every operation of it can be asked for."""
    assert sum(1 for _ in asked.schema.get_all_operations()) == len(ROUTES)
