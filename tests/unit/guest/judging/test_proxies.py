"""Live objects of a candidate: what tests can do with them, and what they cannot claim."""

from __future__ import annotations

import operator
from typing import Any

import pytest

from hotbed.guest.judging import sealing
from tests.support.judging import asked

CODE = """
class Vector:
    kind = "plane"
    def __init__(self, x, y): self.x, self.y = x, y
    def __add__(self, o): return Vector(self.x + o.x, self.y + o.y)
    def __mul__(self, k): return Vector(self.x * k, self.y * k)
    def __eq__(self, o): return (self.x, self.y) == (o.x, o.y)
    def __hash__(self): return hash((self.x, self.y))
    def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5
    def __len__(self): return 2
    def __getitem__(self, i): return (self.x, self.y)[i]
    def __contains__(self, v): return v in (self.x, self.y)
    def __repr__(self): return "Vector(%r, %r)" % (self.x, self.y)
    def __enter__(self): return self
    def __exit__(self, *e): self.x = -1; return True
    @classmethod
    def zero(cls): return cls(0, 0)
class Unit(Vector): pass
class Agreeable:
    def __eq__(self, o): return True
    def __ne__(self, o): return False
    def __lt__(self, o): return True
    __le__ = __gt__ = __ge__ = __contains__ = __lt__
    def __sub__(self, o): return 0.0
    __rsub__ = __add__ = __radd__ = __sub__
    def __abs__(self): return 0.0
    def __float__(self): return 0.0
    def __bool__(self): return True
    def __hash__(self): return hash(5)
    def __len__(self): return 3
    def __getitem__(self, i): return self
def solve(x): return Agreeable()
def make(): return Vector(1, 2)
"""


def test_a_class_of_the_candidate_is_a_class() -> None:
    """Instances, attributes, methods, class methods, subclasses, context managers."""
    with asked(CODE) as peer:
        vector, unit = peer.export("Vector"), peer.export("Unit")
        v = vector(3, 4)
        v.x = 5
        assert (v.x, v[1], len(v), abs(vector(3, 4)), 4 in v, repr(v)) == (5, 4, 2, 5.0, True, "Vector(5, 4)")
        assert vector.kind == "plane" and vector.zero().x == 0
        assert isinstance(unit(1, 2), vector) and issubclass(unit, vector) and not isinstance(v, unit)
        assert isinstance(peer.question("run", "make", ()), vector)
        with v as inside:
            assert inside is v
            raise ValueError
        assert v.x == -1 and v.__dict__ == {"x": -1, "y": 4}
        assert peer.reasons == []


def test_comparing_two_of_its_objects_is_its_own_word() -> None:
    """The verdict says so."""
    with asked(CODE) as peer:
        vector = peer.export("Vector")
        assert vector(1, 2) + vector(3, 4) == vector(4, 6) and vector(1, 2) != vector(2, 1)
        assert len(peer.reasons) == 3


def agreeable(peer: sealing.JudgePeer) -> Any:
    return peer.question("run", "solve", (1,))


def test_an_object_equals_no_plain_data() -> None:
    """Whatever its class says, from either side, in any container."""
    with asked(CODE) as peer:
        out = agreeable(peer)
        assert not out == 5 and not 5 == out and out != 5 and [out] != [5]
        assert 5 not in [out] and out not in [5] and {out: 1} != {5: 1}
        assert peer.calls == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda out: abs(out - 1.5) < 1e-6, lambda out: 1.5 - out, lambda out: out > 3, lambda out: 3 <= out,
        lambda out: float(out), lambda out: round(out), lambda out: max(out, 2), lambda out: sum([out, 1]),
        lambda out: 5 in out, lambda out: sorted([out, 3]), lambda out: divmod(out, 2), lambda out: operator.index(out),
    ],
)  # fmt: skip
def test_an_anonymous_object_is_never_computed_with(use: Any) -> None:
    """`abs(out - expected) < 1e-6` would hand the expected value over and take the answer on trust."""
    with asked(CODE) as peer:
        with pytest.raises(TypeError):
            use(agreeable(peer))


def test_operators_with_plain_data_must_be_asked_for() -> None:
    """Then they work, for classes that the tests name, and the verdict is not sealed."""
    with asked(CODE) as peer:
        with pytest.raises(TypeError, match="live_operators"):
            peer.export("Vector")(1, 2) * 3
    with asked(CODE, live_operators=True) as peer:
        assert (peer.export("Vector")(1, 2) * 3).x == 3 and peer.reasons
        with pytest.raises(TypeError):
            agreeable(peer) - 1
