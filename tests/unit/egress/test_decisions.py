"""Yes or no, and why."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from hotbed.egress import presets
from hotbed.egress.decisions import Target, is_leak, judge_address, judge_method, judge_name, settle
from hotbed.egress.policy import parse

PUBLIC = ip_address("93.184.215.14")
PRIVATE = ip_address("10.1.2.3")


@pytest.mark.parametrize(
    ("policy", "name", "port", "allowed"),
    [
        ({"allow": ["a.org"]}, "a.org", 443, True),
        ({"allow": ["a.org"]}, "b.a.org", 443, False),
        ({"allow": ["a.org:443"]}, "a.org", 80, False),
        ({"allow": ["a.org:443"]}, "a.org", None, True),
        ({"allow": ["a.org", "*.b.org"], "deny": ["x.b.org"]}, "y.x.b.org", 443, False),
        ({"deny": ["a.org"]}, "b.a.org", 443, False),
        ({"deny": ["a.org:80"]}, "a.org", 443, True),
        ({"deny": ["a.org:80"]}, "a.org", None, True),
        ({"deny": ["a.org"]}, "c.org", 443, True),
        ("open", "a.org", 443, True),
        ("none", "a.org", 443, False),
    ],
)
def test_names(policy: object, name: str, port: int | None, allowed: bool) -> None:
    """By list and port; deny wins."""
    assert judge_name(parse(policy), name, port).allowed is allowed


@pytest.mark.parametrize(
    ("policy", "address", "allowed", "reason"),
    [
        ("open", PUBLIC, True, "open"),
        ("open", PRIVATE, False, "private address"),
        ({"allow": ["10.0.0.0/8"]}, PRIVATE, True, "allowed by 10.0.0.0/8"),
        ({"allow": ["10.0.0.0/8:5432"]}, PRIVATE, False, "private address"),
        ({"allow": ["a.org"]}, PUBLIC, False, "not in the allow list"),
        ({"deny": ["93.184.0.0/16"]}, PUBLIC, False, "denied by 93.184.0.0/16"),
        ({"deny": ["10.0.0.0/8"]}, PUBLIC, True, "denylist"),
        ({"deny": ["a.org"]}, PUBLIC, False, "an address without a name, where names are denied"),
        ("none", PUBLIC, False, "no network"),
    ],
)
def test_addresses(policy: object, address: object, allowed: bool, reason: str) -> None:
    """What is none of the public Internet has to be listed itself."""
    verdict = judge_address(parse(policy), address, 443)  # type: ignore[arg-type]  # parametrized

    assert (verdict.allowed, verdict.reason) == (allowed, reason)


def test_a_name_does_not_make_a_private_address_good() -> None:
    """Unless its entry says so: that is what DNS rebinding is."""
    plain, told = parse({"allow": ["a.org"]}), parse({"allow": [{"host": "a.org", "addresses": ["10.0.0.0/8"]}]})

    for policy, allowed in ((plain, False), (told, True)):
        by = judge_name(policy, "a.org", 443)
        assert judge_address(policy, PRIVATE, 443, by=by).allowed is allowed


def test_the_nodes_own_address_has_to_be_listed() -> None:
    """It may be a public one."""
    policy = parse("open")

    assert judge_address(policy, PUBLIC, 443, own=True).reason == "node address"
    assert judge_address(parse({"allow": ["93.184.215.14"]}), PUBLIC, 443, own=True).allowed


@pytest.mark.parametrize(
    ("policy", "target", "speech", "said", "allowed"),
    [
        ({"allow": ["a.org"]}, Target(port=443, name="a.org"), "tls", "a.org", True),
        ({"allow": ["a.org", "b.org"]}, Target(port=443, name="a.org"), "tls", "b.org", False),
        ({"allow": ["a.org"]}, Target(port=443, name="a.org"), "opaque", "", False),
        ({"allow": ["a.org"]}, Target(port=80, name="a.org"), "opaque", "", False),
        ({"allow": ["a.org"]}, Target(port=22, name="a.org"), "opaque", "", True),
        ({"allow": ["a.org"]}, Target(port=80, name="a.org"), "http", "b.org", False),
        ({"allow": ["a.org"]}, Target(port=443, address=PUBLIC), "tls", "", False),
        ({"allow": ["93.184.215.14"]}, Target(port=443, address=PUBLIC), "tls", "", True),
        ("open", Target(port=443, address=PUBLIC), "opaque", "", True),
    ],
)
def test_what_a_connection_says_must_agree(
    policy: object, target: Target, speech: str, said: str, allowed: bool
) -> None:
    """The name it asked for, the address it dialled, the name it says itself."""
    way = settle(parse(policy), target, speech, said)  # type: ignore[arg-type]  # parametrized

    assert way.verdict.allowed is allowed


@pytest.mark.parametrize("policy", [{"allow": ["a.org"]}, {"deny": ["evil.org"]}])
def test_a_name_said_to_an_address_must_lead_there(policy: object) -> None:
    """Or any server could be reached by saying a good name to it: whoever resolves checks."""
    way = settle(parse(policy), Target(port=443, address=PUBLIC), "tls", "a.org")

    assert way.verdict.allowed and (way.name, way.address) == ("a.org", PUBLIC)


def test_a_denied_name_is_denied_at_an_address_too() -> None:
    """Looking it up elsewhere does not help."""
    way = settle(parse({"deny": ["evil.org"]}), Target(port=443, address=PUBLIC), "tls", "evil.org")

    assert not way.verdict.allowed


def test_methods_are_held_against_every_entry_of_the_host() -> None:
    """One that fits is enough to allow; one that fits is enough to deny."""
    policy = parse(
        {"allow": [{"host": "a.org", "methods": ["GET"]}, {"host": "a.org", "methods": ["PUT"]}, "b.org"],
         "deny": [{"host": "b.org", "methods": ["DELETE"]}]}
    )  # fmt: skip

    def allowed(name: str, method: str) -> bool:
        return judge_method(policy, judge_name(policy, name, 80), name, 80, method).allowed

    assert allowed("a.org", "GET") and allowed("a.org", "PUT") and not allowed("a.org", "POST")
    assert allowed("b.org", "POST") and not allowed("b.org", "DELETE")


def test_going_for_answers_is_told_from_other_refusals() -> None:
    """Also under a list that is about something else."""
    policy = parse({"allow": ["a.org"]})
    watched = presets.load()[presets.LEAKAGE].deny

    assert is_leak(watched, judge_name(policy, "raw.githubusercontent.com"), "raw.githubusercontent.com", policy)
    assert not is_leak(watched, judge_name(policy, "telemetry.example"), "telemetry.example", policy)
    assert not is_leak(watched, judge_name(policy, "a.org"), "a.org", policy)


def test_what_only_some_methods_are_allowed_for_is_refused_inside_tls() -> None:
    """Nobody could see which it is."""
    target = Target(port=443, name="a.org")
    some = parse({"allow": [{"host": "a.org", "methods": ["GET"]}]})
    also = parse({"allow": [{"host": "a.org", "methods": ["GET"]}, "a.org:443"]})
    denied = parse({"deny": [{"host": "a.org", "methods": ["POST"]}]})

    assert [settle(policy, target, "tls", "a.org").verdict.allowed for policy in (some, also, denied)] == [
        False,
        True,
        False,
    ]
    assert settle(some, Target(port=80, name="a.org"), "http", "a.org").verdict.allowed
