"""Kinds of record of several systems, loaded when one of theirs is met."""

from __future__ import annotations

from collections.abc import Iterable

from stratagem.engine.records import EventKind, Kinds, Projection, RecordKind


def kind(name: str, *, grouped: bool = False) -> RecordKind:
    """Return a kind of record that can be written and deleted."""
    return RecordKind(
        name,
        (
            EventKind(f"{name}.stored", lambda _content, _key: Projection(tags=(name,))),
            EventKind(f"{name}.deleted", lambda _content, _key: Projection(deleted=True), True),
        ),
        grouped=grouped,
    )


class Systems:
    """Two further systems, and which of them were asked for their kinds."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.kinds = Kinds([kind("entry")], self._load_incidents, self._load_concepts)

    def _load_incidents(self) -> Iterable[RecordKind]:
        self.loaded.append("incident")
        return [kind("incident")]

    def _load_concepts(self) -> Iterable[RecordKind]:
        self.loaded.append("concept")
        return [kind("concept", grouped=True)]


def test_no_other_system_is_asked_about_what_is_known() -> None:
    systems = Systems()

    assert systems.kinds.record("entry").name == "entry"
    assert systems.kinds.is_deletion("entry.deleted")
    assert not systems.kinds.is_deletion("entry.stored")
    assert systems.kinds.project("entry.stored", {}).tags == ("entry",)
    assert systems.loaded == []


def test_systems_are_asked_in_their_order_until_one_knows_a_name() -> None:
    systems = Systems()

    assert systems.kinds.is_deletion("incident.deleted")
    assert systems.loaded == ["incident"]
    assert systems.kinds.record("concept").grouped
    assert systems.loaded == ["incident", "concept"]


def test_a_kind_that_is_no_longer_known_means_nothing() -> None:
    systems = Systems()

    assert systems.kinds.project("gone.stored", {}) == Projection()
    assert not systems.kinds.is_deletion("gone.stored")
    assert systems.kinds.find_record("gone") is None
    assert systems.loaded == ["incident", "concept"]


def test_tables_of_all_kinds_have_those_of_every_system() -> None:
    assert list(Systems().kinds.records) == ["entry", "incident", "concept"]
    assert Systems().kinds.deletions == {"entry.deleted", "incident.deleted", "concept.deleted"}
