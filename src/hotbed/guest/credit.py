"""How much of an exec's output may be under way: what the agent sends and the reader has not taken yet.

A reader that is slow must hold up the program that writes, and nothing else: not its deadline, not the other execs of
the sandbox, not the agent. So the agent stops reading a program's pipes when its credit is used up, and the node, which
never stops reading the agent, gives credit back as the reader takes. Small frames cost more than their bytes.
"""

from __future__ import annotations

WINDOW = 128 << 10
FRAME_COST = 256


def cost(count: int) -> int:
    """What a frame with so many bytes costs."""
    return count + FRAME_COST


class Credit:
    """The agent's side of one window."""

    def __init__(self, size: int) -> None:
        self._left = size

    def spend(self, count: int) -> None:
        """A frame with so many bytes was sent."""
        self._left -= cost(count)

    def give(self, amount: int) -> None:
        """So much was taken at the other end."""
        self._left += amount

    def is_spent(self) -> bool:
        """Whether to wait for more before another frame."""
        return self._left <= 0
