"""What is remembered of a bake is there in the next run of the node."""

from __future__ import annotations

from pathlib import Path

from hotbed.node.bakes.journal import Entry, Journal
from hotbed.node.bakes.recipe import Recipe


def test_an_entry_is_read_as_it_was_written(tmp_path: Path) -> None:
    """The last one of each name; what a step did is not worth remembering."""
    journal = Journal(str(tmp_path))
    entry = Entry(recipe=Recipe(name="x", image="host"), phase="Converting", fails=1, log="l")

    journal.write(Entry(recipe=entry.recipe))
    journal.write(entry)

    assert Journal(str(tmp_path)).read() == [entry]
    journal.forget("x")
    journal.forget("x")
    assert journal.read() == []


def test_what_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    """It may be a newer version's."""
    (tmp_path / "templates").mkdir()
    for name, text in {"a": "{", "b": "{}", "c": '{"recipe": {}}'}.items():
        (tmp_path / f"templates/{name}.json").write_text(text)

    assert Journal(str(tmp_path)).read() == [] and len(list((tmp_path / "templates").iterdir())) == 3


def test_without_a_home_nothing_is_remembered() -> None:
    """Nor written anywhere."""
    journal = Journal("")
    journal.write(Entry(recipe=Recipe(name="x", image="host")))

    assert journal.read() == []
