"""Tenants, their tiers and their callers."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import Forbidden, InvalidRequest, RateLimited, TierLimit
from hotbed.node.tenants import Caller, Tenant, Tenants, Tier, check_scopes, tiers_from

DEFAULT = {"cpus": 1.0, "memory_mib": 1024, "disk_mib": 512}


def test_a_settings_file_changes_a_tier_and_adds_others() -> None:
    """What it does not say stays as it was."""
    tiers = tiers_from({"demo": {"sandboxes": 2}, "team-a": {"cpus": 2}})

    assert (tiers["demo"].sandboxes, tiers["demo"].fork) == (2, 4)
    assert (tiers["team-a"].name, tiers["team-a"].cpus, tiers["pro"].fork) == ("team-a", 2, 32)


@pytest.mark.parametrize(
    "table",
    [{"demo": 3}, {"demo": {"speed": 9}}, {"A b": {}}, {"demo": {"sandboxes": 0}}, {"demo": {"sandboxes": 1.5}},
     {"demo": {"cpus": "many"}}, {"demo": {"requests_per_s": -1}}],
)  # fmt: skip
def test_a_tier_that_makes_no_sense_is_refused(table: dict[str, Any]) -> None:
    """With the name of the setting."""
    with pytest.raises(InvalidRequest):
        tiers_from(table)


def test_requests_beyond_the_rate_wait_for_the_time_named() -> None:
    """A burst is let through, then one at a time."""
    now = [0.0]
    tenant = Tenant("acme", Tier(name="slow", requests_per_s=2.0, burst=3), clock=lambda: now[0])
    for _ in range(3):
        tenant.spend()

    with pytest.raises(RateLimited) as refused:
        tenant.spend()

    assert refused.value.retry_after_s == pytest.approx(0.5)
    now[0] = 0.5
    tenant.spend()


@pytest.mark.parametrize(
    ("table", "others"),
    [
        ({}, "pro and ent do"),
        ({"night": {}}, "pro, ent and night do"),
        ({"pro": {"ingress": False}, "ent": {"ingress": False}, "night": {}}, "night does"),
        ({"pro": {"ingress": False}, "ent": {"ingress": False}}, "no other does"),
    ],
)
def test_a_refusal_names_the_tiers_that_have_the_right(table: dict[str, Any], others: str) -> None:
    """As this server's settings have them: a tenant asks its operator for one that helps."""
    tenant = Tenants(tiers_from(table)).get("acme", "demo")

    refusal = tenant.refusal("ingress", "opens no ports", instead="serve elsewhere")

    assert refusal.message == f"tier demo opens no ports; {others}"
    assert (refusal.hint or "").startswith("serve elsewhere, or ask the operator")


def test_names_of_templates_belong_to_their_tenant() -> None:
    """Nobody reaches another's by any name."""
    acme, bob = Tenant("acme", Tier(name="pro")), Tenant("bob", Tier(name="pro"))
    built_in = frozenset({"python"})

    assert acme.template_name("python", built_in) == "python"
    assert acme.template_name("mine", built_in) == acme.template_name("acme--mine", built_in) == "acme--mine"
    assert bob.template_name("acme--mine", built_in) == "bob--acme--mine"
    assert acme.owns_template("acme--mine") and not bob.owns_template("acme--mine")


def test_limits_stay_under_the_tier() -> None:
    """What is asked for beyond it is refused in words; a template's default is lowered."""
    small = Tenant("acme", Tier(name="small", cpus=0.5, memory_mib=512))

    assert small.capped(None, DEFAULT) == {"cpus": 0.5, "memory_mib": 512, "disk_mib": 256}
    with pytest.raises(TierLimit, match="limits.memory_mib is 4096, and tier small allows 512"):
        small.capped({"memory_mib": 4096}, DEFAULT)
    assert Tenant("bob", Tier(name="pro")).capped(None, DEFAULT) is None


def test_a_tenant_is_one_whatever_key_it_comes_with() -> None:
    """Its limits count for all of them together, and a new tier takes effect at once."""
    tenants = Tenants()
    acme = tenants.get("acme", "demo")

    assert tenants.get("acme", "pro") is acme
    assert (acme.tier.name, acme.share.limit) == ("pro", 256)
    with pytest.raises(Forbidden, match="gold"):
        tenants.get("acme", "gold")
    assert list(tenants) == [acme]


def test_a_scope_is_asked_for_by_name() -> None:
    """`admin` has them all."""
    tenant = Tenant("acme", Tier(name="pro"))
    Caller(tenant=tenant, scopes=frozenset({"read"}), key_id="1").check_scope("read", "run")
    Caller(tenant=tenant, scopes=frozenset({"admin"}), key_id="1").check_scope("grade")

    with pytest.raises(Forbidden, match="run"):
        Caller(tenant=tenant, scopes=frozenset({"read"}), key_id="1").check_scope("run")


def test_scopes_that_do_not_exist_are_refused() -> None:
    """A key with none of them is no use either."""
    for scopes in ((), ("run", "root")):
        with pytest.raises(InvalidRequest):
            check_scopes(scopes)
