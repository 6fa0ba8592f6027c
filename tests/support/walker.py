"""One small environment twice: as gymnasium has it, and as a worker's env.py of the standard library has it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

OBSERVATIONS = spaces.Dict(position=spaces.Box(-100, 100, (2,), np.float64), count=spaces.Discrete(100))
ACTIONS = spaces.Discrete(2)
SOURCE = '''
class Walk:
    """Walks by +-seed, ends after a number of steps that depends on the seed, odd ones by truncation."""

    def __init__(self):
        self.seed = 1

    def reset(self, seed):
        self.seed = 1 + (seed or 0) % 7
        self.count = 0
        self.position = [float(self.seed), 0.0]
        return self.seen(), {"seed": self.seed, "nested": {"even": self.seed % 2 == 0}}

    def seen(self):
        return {"position": list(self.position), "count": self.count}

    def step(self, action):
        self.count += 1
        self.position[int(action)] += 0.5 * self.seed
        over = self.count >= 2 + self.seed
        info = {"sum": sum(self.position)} if self.count % 2 else {"label": "even"}
        return self.seen(), 0.25 * self.count, over and self.seed % 2 == 0, over and self.seed % 2 == 1, info
'''


class Walker(gymnasium.Env[Any, Any]):
    """The same under gymnasium's API."""

    observation_space = OBSERVATIONS
    action_space = ACTIONS

    def __init__(self) -> None:
        space: dict[str, Any] = {}
        exec(SOURCE, space)
        self._walk = space["Walk"]()
        self._seen = -1

    @staticmethod
    def source() -> str:
        """An env.py. Its first seed of each episode without one is its worker's last, as gymnasium's would be."""
        return SOURCE + (
            "\nfrom hotbed.env import serve\nwalk = Walk()\ngiven = []\n"
            "def reset(seed):\n"
            "    given.append(seed if not given or seed < 1000 else None)\n"
            "    return walk.reset(given[-1])\n"
            "def step(action):\n    return walk.step(action)\n"
            "serve(reset=reset, step=step)\n"
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin."""
        seen, info = self._walk.reset(seed)
        return self._arrays(seen), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Go on."""
        seen, *rest = self._walk.step(action)
        reward, terminated, truncated, info = rest
        return self._arrays(seen), reward, terminated, truncated, info

    def _arrays(self, seen: dict[str, Any]) -> dict[str, Any]:
        return {"position": np.array(seen["position"]), "count": np.int64(seen["count"])}
