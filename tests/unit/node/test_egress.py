"""Which policy a sandbox gets, and whose attempts are whose."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotbed.errors import InvalidRequest, NotSupported, TierLimit
from hotbed.node.egress import Egress, EgressSettings
from hotbed.node.leases import Lease
from hotbed.node.ledger.entry import Entry
from hotbed.node.templates import TemplateNetwork
from hotbed.node.tenants import Tenant, Tier
from hotbed.runtime.egress.outlets import Outlets


class Templates:
    """What egress asks of the templates."""

    def __init__(self, **networks: TemplateNetwork) -> None:
        self._networks = networks

    def network(self, name: str) -> TemplateNetwork:
        """Any, unless it was told otherwise."""
        return self._networks.get(name, TemplateNetwork())


async def no_broker() -> Any:
    """None of these tests needs one."""
    raise AssertionError


def egress(settings: EgressSettings | None = None, *, noted: list[Entry] | None = None, **networks: Any) -> Egress:
    """A node's egress, with a backend that could."""
    backend = SimpleNamespace(outlets=Outlets(no_broker))
    templates: Any = Templates(**networks)
    return Egress(settings or EgressSettings(), backend, templates, note=(noted if noted is not None else []).append)


def tenant() -> Lease:
    """A lease of somebody's."""
    return Lease(tenant=Tenant("t", Tier(name="pro")))


def test_nothing_is_what_nobody_asked_for() -> None:
    """No policy, no network; and so with `none`."""
    found = egress()

    assert found.policy(None, "python", None) is None
    assert found.policy({"mode": "none"}, "python", None) is None


def test_a_request_overrides_its_template() -> None:
    """Which is what holds where it says nothing."""
    found = egress(web=TemplateNetwork(egress={"allow": ["a.org"]}))

    default, own = found.policy(None, "web", None), found.policy({"mode": "open"}, "web", None)

    assert default is not None and default.mode == "allowlist"
    assert own is not None and own.mode == "open"
    assert found.policy({"mode": "none"}, "web", None) is None


def test_a_tier_without_a_network_gives_none_whoever_asks() -> None:
    """The request, or the template."""
    found = egress(web=TemplateNetwork(egress={"allow": ["a.org"]}))
    lease = Lease(tenant=Tenant("t", Tier(name="demo", network=False)))

    for given, template in (({"mode": "open"}, "python"), (None, "web"), ({"allow": ["a.org"]}, "web")):
        with pytest.raises(TierLimit, match="tier demo gives no sandbox a network"):
            found.policy(given, template, lease)
    assert found.policy({"mode": "none"}, "web", lease) is None
    assert found.policy(None, "python", lease) is None


def test_a_template_without_a_network_takes_no_policy() -> None:
    """As the published protocol has it."""
    with pytest.raises(InvalidRequest, match="without a network"):
        egress(closed=TemplateNetwork(allowed=False)).policy({"mode": "open"}, "closed", None)


def test_a_node_may_give_nobody_a_network() -> None:
    """By its operator's choice, or because its isolation has none."""
    with pytest.raises(NotSupported, match="gives no sandbox a network"):
        egress(EgressSettings(enabled=False)).policy("open", "python", None)
    templates: Any = Templates()
    with pytest.raises(NotSupported, match="no network to give"):
        Egress(EgressSettings(), object(), templates, note=lambda _: None).policy("open", "python", None)


@pytest.mark.parametrize(
    "entry", ["10.0.0.0/8", "127.0.0.1:8080", "::1", "0.0.0.0/0", {"host": "a.org", "addresses": ["10.0.0.0/8"]}]
)
def test_a_tenant_cannot_list_what_is_not_public(entry: Any) -> None:
    """The node's own user can, and the operator may let tenants have some."""
    given = {"allow": [entry]}

    with pytest.raises(InvalidRequest, match="not of the public Internet"):
        egress().read(given, tenant())

    assert egress().read(given, None).mode == "allowlist"


def test_an_operator_opens_networks_for_tenants() -> None:
    """Those, and no wider ones."""
    found = egress(EgressSettings(tenants=("10.1.0.0/16",)))

    assert found.read({"allow": ["10.1.2.3:5432"]}, tenant()).mode == "allowlist"
    with pytest.raises(InvalidRequest, match="not of the public Internet"):
        found.read({"allow": ["10.0.0.0/8"]}, tenant())


def test_what_an_operator_opens_is_a_network() -> None:
    """A typing error is no traceback."""
    with pytest.raises(InvalidRequest, match="egress_tenants: '10.1'"):
        EgressSettings(tenants=("10.1",))


def test_presets_of_the_operator_are_known(tmp_path: Path) -> None:
    """Beside the built-in ones."""
    body = {"name": "mirror", "version": "1", "about": "ours", "allow": ["mirror.example"]}
    (tmp_path / "mirror.json").write_text(json.dumps(body))

    policy = egress(EgressSettings(presets=tmp_path)).policy("mirror", "python", None)

    assert policy is not None and policy.allow[0].host == "mirror.example"


def test_attempts_go_to_the_ledger_under_their_names() -> None:
    """Until the sandbox is over."""
    noted: list[Entry] = []
    found = egress(noted=noted)
    box: Any = SimpleNamespace(id=7)
    request: Any = SimpleNamespace(egress=found.policy("open", "python", None))
    template: Any = SimpleNamespace(spec=SimpleNamespace(name="python"))
    assert found.follow(box, request, template, tenant()) is box
    found.name(box, rollout_id="rollout_1")

    found._on_rows(7, [{"kind": "dns"}], False)
    found._on_rows(7, [], True)
    found._on_rows(7, [{"kind": "dns"}], False)

    (entry,) = noted
    assert (entry.kind, entry.tenant, entry.details["rollout_id"]) == ("egress", "t", "rollout_1")
