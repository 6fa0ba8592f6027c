"""The table of docs/reference/http.md, made of the route table. `make docs` puts it there."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from hotbed.wire.reference import JSON, NOTES, Note
from hotbed.wire.routes import ROUTES, Route
from tests.docs.pages import ROOT

PAGE = ROOT / "docs/reference/http.md"
BEGIN, END = "<!-- made by `make docs` from the route table -->\n", "<!-- end of what is made -->\n"


def rewritten(page: str) -> str:
    """The page with the table as it must be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


def table() -> str:
    """One row per operation."""
    rows = [("method and path", "what it does", "asks", "answers"), ("---",) * 4, *map(row, ROUTES)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def row(route: Route) -> tuple[str, ...]:
    """One operation; what it must be given is in bold."""
    note = NOTES[route.name]
    return f"`{route.method} {route.path}`", note.summary, asks(route, note), answers(route, note)


def asks(route: Route, note: Note) -> str:
    """The query and the body."""
    query = ", ".join(marked(parameter.name, parameter.required) for parameter in note.query)
    parts = [f"query {query}"] if query else []
    if route.request is not None:
        parts.append(names(route.request))
    elif note.takes != JSON:
        parts.append(f"a body of `{note.takes}`")
    return "; ".join(parts)


def answers(route: Route, note: Note) -> str:
    """The status, unless it is 200, and what comes with it."""
    status = f"{route.status}; " if route.status != 200 else ""
    if route.reply is not None:
        return status + ", ".join(f"`{item.name}`" for item in dataclasses.fields(route.reply))
    lines = " or ".join(kind.__name__ for kind in note.lines)
    return f"{status}lines of JSON: {lines}" if lines else f"{status}`{note.gives}`"


def names(kind: type[Any]) -> str:
    """The fields of a wire type."""
    return ", ".join(marked(item.name, is_required(item)) for item in dataclasses.fields(kind))


def is_required(item: dataclasses.Field[Any]) -> bool:
    """Whether there is no default."""
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


def marked(name: str, required: bool) -> str:
    """A name, in bold when it must be given."""
    return f"**`{name}`**" if required else f"`{name}`"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
    sys.exit(0)
