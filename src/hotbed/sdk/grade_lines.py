"""The lines of a group that is graded: each verdict as it comes, the group's end last."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hotbed.errors import Error, ProtocolError
from hotbed.grading.verdicts import GradeResult
from hotbed.sdk.bodies import read_json

OnProgress = Callable[[int, int], object]


class GradeLines:
    """A sink for the node's lines. `results` is complete when the answer has ended without an error."""

    def __init__(self, total: int, on_progress: OnProgress | None) -> None:
        self._total = total
        self._on_progress = on_progress
        self._partial: list[bytes] = []
        self._found: dict[int, GradeResult] = {}
        self._done = False

    def write(self, data: bytes, /) -> None:
        """Take the next bytes of the stream. Raises the error that the stream ends with."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = b"".join([*self._partial, line])
            self._partial.clear()
            if whole:
                self._line(read_json(whole))
        if rest:
            self._partial.append(rest)

    def results(self) -> list[GradeResult]:
        """Every verdict, in the candidates' order."""
        if not self._done or len(self._found) != self._total:
            raise ProtocolError(
                f"{len(self._found)} of {self._total} verdicts came before the answer ended",
                hint="the node went away while it graded; ask again, with a group_id nothing is graded twice",
            )
        return [self._found[index] for index in range(self._total)]

    def _line(self, data: object) -> None:
        event = data.get("event") if isinstance(data, Mapping) else None
        if event == "grade" and isinstance(data, Mapping):
            self._verdict(data)
        elif event == "done":
            self._done = True
        elif event == "error" and isinstance(data, Mapping) and isinstance(data.get("error"), Mapping):
            told = data["error"]
            raise Error.from_wire(str(told.get("code")), str(told.get("message")), hint=told.get("hint"))
        else:
            raise ProtocolError(f"a line of grading that is none of ours: {str(data)[:80]}")

    def _verdict(self, data: Mapping[str, object]) -> None:
        index, result = data.get("index"), data.get("result")
        if type(index) is not int or not 0 <= index < self._total or not isinstance(result, Mapping):
            raise ProtocolError(f"a verdict that is none of ours: {str(data)[:80]}")
        self._found[index] = GradeResult.from_wire({**result, "id": str(data.get("id", ""))})
        if self._on_progress is not None:
            self._on_progress(len(self._found), self._total)
