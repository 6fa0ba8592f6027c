"""Hotbed under the name `collimate_rl`: scripts written for it run unchanged on your own machine.

Every public name of `hotbed` is here, and means what it means there.
"""

import hotbed
from hotbed import *  # noqa: F403  an alias is exactly this

__all__ = hotbed.__all__
HOTBED_ALIAS = True  # so that the keys and URLs of this name's variables are taken for ours
