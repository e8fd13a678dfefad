"""Lists: the records of a space one after the other, in every view."""

from __future__ import annotations

import pytest

from stratagem.engine.lineage import OPEN_END
from stratagem.engine.records import FACET_MARK
from stratagem.storage.contract import Reader, Store
from stratagem.storage.relational import listing
from tests.contracts.samples import (
    MAIN,
    NOTE,
    SECOND,
    START,
    a_happening,
    a_note,
    an_erasure,
    append,
    fork,
    happenings,
    notes,
    view,
)


@pytest.fixture(params=["gathered", "in order"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go both ways to a page: gather what is wanted, or go through everything in order."""
    if request.param == "in order":
        monkeypatch.setattr(listing, "_FEW", 0)


def keys(store: Store, branch: str = MAIN, *, limit: int = OPEN_END, **wanted: object) -> list[str]:
    with store.snapshot() as reader:
        shown = view(reader, branch, limit=limit)
        found = reader.listing.by_key(shown, notes(), **{"limit": 10, **wanted})  # type: ignore[arg-type]
    return [each.key for each in found]


def newest(
    store: Store, branch: str = MAIN, *, limit: int = OPEN_END, time: int = START, **wanted: object
) -> list[str]:
    with store.snapshot() as reader:
        shown = view(reader, branch, limit=limit, time=time)
        found = reader.listing.newest(shown, notes(), **{"limit": 10, **wanted})  # type: ignore[arg-type]
        return _names(reader, found)


def _names(reader: Reader, sequences: list[int]) -> list[str]:
    contents = reader.log.contents(sequences)
    return [contents[sequence].key or "" for sequence in sequences]


def test_records_are_listed_by_key_and_by_time(store: Store) -> None:
    append(store, a_note("b"), a_note("c"))
    append(store, a_note("a"))
    append(store, a_note("b", "again"))

    assert keys(store) == ["a", "b", "c"]
    assert newest(store) == ["b", "a", "c"]


def test_a_page_begins_where_the_last_one_ended(store: Store) -> None:
    last = [append(store, a_note(key)) for key in "abcd"]

    assert keys(store, limit=OPEN_END, after="b") == ["c", "d"]
    assert newest(store, before=last[2]) == ["b", "a"]
    with store.snapshot() as reader:
        page = reader.listing.by_key(view(reader), notes(), after="a", limit=2)
    assert [each.key for each in page] == ["b", "c"]


def test_only_keys_with_the_prefix_are_listed(store: Store) -> None:
    append(store, *(a_note(key) for key in ("a", "a/", "a/x", "a/y\U0010ffff", "ab", "b", "A/x")))

    assert keys(store, prefix="a/") == ["a/", "a/x", "a/y\U0010ffff"]
    assert newest(store, prefix="a/") == ["a/y\U0010ffff", "a/x", "a/"]
    assert keys(store, prefix="a/", after="a/x") == ["a/y\U0010ffff"]
    assert keys(store, prefix="z") == newest(store, prefix="z") == []


def test_only_records_with_every_tag_are_listed(store: Store) -> None:
    append(store, a_note("a", tags=["x", "y"]), a_note("b", tags=["x"]), a_note("c", tags=["y"]))
    append(store, a_note("d", tags=["x", "y"]))
    append(store, a_note("a", tags=["y"]))

    assert keys(store, names=["x"]) == ["b", "d"]
    assert keys(store, names=["x", "y"]) == ["d"]
    assert newest(store, names=["y"]) == ["a", "d", "c"]
    assert newest(store, names=["y"], prefix="c") == ["c"]
    assert keys(store, names=["z"]) == []


def test_a_branch_lists_what_it_shows(store: Store) -> None:
    append(store, a_note("a"), a_note("b"), a_note("c"))
    fork(store, "trial")
    append(store, a_note("a", "changed"), an_erasure("b"), a_note("d"), branch="trial")
    append(store, a_note("e"), an_erasure("c"))

    assert keys(store, "trial") == ["a", "c", "d"]
    assert newest(store, "trial") == ["d", "a", "c"]
    assert keys(store) == ["a", "b", "e"]
    assert newest(store) == ["e", "b", "a"]


def test_the_past_is_listed_as_it_was(store: Store) -> None:
    then = append(store, a_note("a"), a_note("b"))
    append(store, an_erasure("a"), a_note("b", "changed"), a_note("c"))

    assert keys(store, limit=then) == ["a", "b"]
    assert newest(store, limit=then) == ["b", "a"]


def test_what_has_expired_is_not_listed(store: Store) -> None:
    append(store, a_note("a", expires_at=START + SECOND), a_note("b"))

    assert newest(store) == ["b", "a"]
    assert newest(store, time=START + SECOND) == ["b"]


def test_events_are_read_in_either_order(store: Store) -> None:
    first = append(store, a_happening("one", tags=["x"]))
    fork(store, "trial")
    append(store, a_note("a"), a_happening("elsewhere", namespace="m"))
    second = append(store, a_happening("two", tags=["x", "y"]), branch="trial")
    third = append(store, a_happening("three"), branch="trial")

    def read(**wanted: object) -> list[int]:
        with store.snapshot() as reader:
            options = {"limit": 10, **wanted}
            return reader.listing.stream(view(reader, "trial"), happenings(), **options)  # type: ignore[arg-type]

    assert read() == [first, second, third]
    assert read(newest_first=True) == [third, second, first]
    assert read(after=first, limit=1) == [second]
    assert read(before=third, newest_first=True) == [second, first]
    assert read(names=["x"]) == [first, second]
    assert read(names=["x", "y"]) == [second]
    assert read(names=["x"], newest_first=True, limit=1) == [second]


def test_spaces_and_tags_are_counted(store: Store) -> None:
    append(store, a_note("a", tags=["x"], facets=["hidden"]), a_note("b", tags=["x", "y"]))
    last = append(store, a_note("c", namespace="m"), an_erasure("b"))

    with store.snapshot() as reader:
        names = reader.records.spaces(NOTE)
        counts = {
            names[each.space].namespace: (each.live, each.newest)
            for each in reader.listing.space_counts(view(reader), (NOTE,))
        }
        tags = reader.listing.tag_counts(view(reader), list(names), limit=5)

    assert counts == {"n": (1, last - 3), "m": (1, last - 1)}
    assert [tuple(each) for each in tags] == [("x", 1)]
    assert all(FACET_MARK not in each.tag for each in tags)


def test_namespaces_that_have_a_key_are_found(store: Store) -> None:
    append(store, a_note("a"), a_note("a", namespace="m"), a_note("a", namespace="gone"))
    append(store, an_erasure("a", namespace="gone"))

    with store.snapshot() as reader:
        found = reader.listing.namespaces_with(view(reader), NOTE, "a", limit=5)
        none = reader.listing.namespaces_with(view(reader), NOTE, "b", limit=5)

    assert sorted(found) == ["m", "n"]
    assert none == []


def test_a_space_that_is_not_there_lists_nothing(store: Store) -> None:
    with store.snapshot() as reader:
        assert reader.listing.by_key(view(reader), notes("none"), limit=5) == []
        assert reader.listing.newest(view(reader), notes("none"), limit=5) == []
        assert reader.listing.stream(view(reader), happenings("none"), limit=5) == []
