"""What crosses a lane as JSON text, exactly: for whoever keeps it and may want it back.

Most actions and observations are JSON. What JSON cannot hold stands under a tag, as it does on a lane (see
`guest/environments/values.py`), with its bytes in base64:

    {"$": ["bytes", "..."]}                       bytes, bytearray, memoryview
    {"$": ["array", dtype, shape, "..."]}         a numpy array, C order
    {"$": ["float", "nan"]}                       a float that is not finite
    {"$": ["dict", {...}]}                        a dict of the user's that has the key "$" itself
"""

from __future__ import annotations

import json
import math
from base64 import b64decode, b64encode
from typing import Any


def text_of(value: Any) -> str:
    """One line of JSON."""
    return json.dumps(_plain(value), separators=(",", ":"))


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _tagged("float", repr(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _tagged("bytes", b64encode(value).decode())
    if isinstance(value, dict):
        found = {str(key): _plain(item) for key, item in value.items()}
        return _tagged("dict", found) if "$" in found else found
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if getattr(value, "shape", ()):
        return _tagged("array", value.dtype.str, list(value.shape), b64encode(value.tobytes()).decode())
    return _plain(value.item())


def _tagged(kind: str, *parts: Any) -> dict[str, Any]:
    return {"$": [kind, *parts]}


def value_of(data: Any) -> Any:
    """The value that parsed JSON stands for. Raises ValueError, TypeError or LookupError for a tag that is none."""
    if isinstance(data, list):
        return [value_of(item) for item in data]
    if not isinstance(data, dict):
        return data
    if "$" not in data:
        return {name: value_of(item) for name, item in data.items()}
    kind, *parts = data["$"]
    if kind == "bytes":
        return b64decode(parts[0])
    if kind == "float":
        return float(parts[0])
    if kind == "dict":
        return {name: value_of(item) for name, item in parts[0].items()}
    if kind == "array":
        return _array(*parts)
    raise ValueError(f"{kind!r} is no tag")


def _array(dtype: str, shape: list[int], data: str) -> Any:
    try:
        import numpy
    except ImportError:
        raise ValueError("it holds an array, and there is no numpy here") from None
    return numpy.frombuffer(b64decode(data), dtype).reshape(shape)
