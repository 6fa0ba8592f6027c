"""What a request for a page asks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from starlette.requests import Request

from hotbed.dashboard.look import Look
from hotbed.dashboard.visitors import OPERATOR
from hotbed.errors import InvalidRequest
from tests.unit.dashboard.looking import looking


@pytest.mark.parametrize("kept", [True, False])
def test_a_look_reads_its_query_and_the_ledger(kept: bool, tmp_path: Path) -> None:
    """A node without a ledger has nothing to read, which is no error."""

    async def scenario() -> None:
        async with looking(tmp_path, ledger=kept) as here:
            scope = {"type": "http", "query_string": b"a=+x+&n=7&bad=-1&long=1111111111111111111&span=24h&odd=%C2%B2"}
            look = Look(house=here.house, viewer=OPERATOR, request=Request({**scope, "headers": []}))

            assert (look.query("a"), look.query("b", "c"), look.number("n"), look.number("b")) == ("x", "c", 7, None)
            assert look.choice("span", {"24h": 1, "15m": 1}, "15m") == "24h"
            assert look.choice("a", {"24h": 1}, "15m") == "15m"
            for name in ("bad", "long", "odd"):
                with pytest.raises(InvalidRequest, match="whole number"):
                    look.number(name)
            assert await look.read(lambda store: store.count()) == (0 if kept else None)

    asyncio.run(scenario())
