"""What is said for every fork on a template's control channel, in a few bytes; everything else there is JSON.

A message's first byte tells them apart: no JSON text begins with NUL.
"""

from __future__ import annotations

import struct

#: Node to template: NUL, and the box to kill.
KILL = struct.Struct("=BQ")
#: Template to node, when it has reaped a box's pid 1: NUL, the box, its wait status, its greatest size in KiB, and its
#: CPU time in microseconds.
EXIT = struct.Struct("=BQiQQ")
