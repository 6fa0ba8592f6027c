"""Agents for the tests of what runs in a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.guest.agent_process import AgentProcess

MakeAgent = Callable[..., AgentProcess]


@pytest.fixture
def make_agent(tmp_path: Path) -> Iterator[MakeAgent]:
    """Start agents that work in `tmp_path`; all are hung up at the end."""
    made: list[AgentProcess] = []

    def make(**config: Any) -> AgentProcess:
        made.append(AgentProcess(str(tmp_path), **config))
        return made[-1]

    yield make
    for agent in made:
        agent.close()


@pytest.fixture
def agent(make_agent: MakeAgent) -> AgentProcess:
    """An agent with no limits to watch."""
    return make_agent()


@pytest.fixture
def pid_1(make_agent: MakeAgent) -> AgentProcess:
    """An agent that is pid 1 of its pid namespace."""
    return make_agent(as_pid_1=True)
