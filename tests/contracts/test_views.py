"""A view is a branch and a moment: it shows what was there, and nothing else."""

from __future__ import annotations

from datetime import UTC

import pytest

from stratagem import limits
from stratagem.engine.lineage import OPEN_END
from stratagem.errors import StratagemError
from stratagem.storage.contract import Store, Transaction
from stratagem.storage.views import Views
from tests.contracts.samples import (
    MAIN,
    NOTE,
    SECOND,
    START,
    TESTER,
    Clock,
    a_happening,
    a_note,
    an_erasure,
    append,
    create,
    fork,
    happenings,
    live,
    notes,
    text_of,
    view,
)


def test_a_fork_shows_what_its_parent_showed(store: Store) -> None:
    append(store, a_note("a", "one"), a_note("b", "two"))

    fork(store, "trial")

    assert text_of(store, "a", "trial") == "one"
    assert text_of(store, "b", "trial") == "two"


def test_a_write_on_a_branch_is_invisible_to_its_parent_and_siblings(store: Store) -> None:
    append(store, a_note("a", "before"))
    fork(store, "trial")
    fork(store, "sibling")

    append(store, a_note("a", "after"), a_note("new", "only here"), branch="trial")

    assert text_of(store, "a", "trial") == "after"
    assert text_of(store, "a") == text_of(store, "a", "sibling") == "before"
    assert text_of(store, "new") is text_of(store, "new", "sibling") is None


def test_a_write_on_the_parent_after_the_fork_is_invisible_to_the_child(store: Store) -> None:
    append(store, a_note("a", "before"))
    fork(store, "trial")

    append(store, a_note("a", "after"), a_note("b", "later"))

    assert text_of(store, "a", "trial") == "before"
    assert text_of(store, "b", "trial") is None


def test_an_erasure_on_a_branch_hides_what_it_borrowed(store: Store) -> None:
    append(store, a_note("a", "here"))
    fork(store, "trial")

    append(store, an_erasure("a"), branch="trial")

    assert text_of(store, "a", "trial") is None
    assert text_of(store, "a") == "here"


def test_an_empty_branch_borrows_nothing(store: Store) -> None:
    append(store, a_note("a", "here"))

    branch = create(store, "fresh")

    assert (branch.parent, branch.fork_sequence) == (None, None)
    assert text_of(store, "a", "fresh") is None


def test_a_fork_from_the_past_shows_the_past(store: Store) -> None:
    then = append(store, a_note("a", "then"))
    append(store, a_note("a", "now"), a_note("b", "later"))

    fork(store, "old", at=then)

    assert text_of(store, "a", "old") == "then"
    assert text_of(store, "b", "old") is None


def test_a_fork_of_a_fork_reads_through_both(store: Store) -> None:
    append(store, a_note("a", "grandparent"), a_note("b", "grandparent"), a_note("c", "top"))
    fork(store, "parent")
    append(store, a_note("b", "parent"), branch="parent")
    fork(store, "child", parent="parent")
    append(store, a_note("c", "child"), branch="child")
    append(store, a_note("b", "too late"), branch="parent")

    assert [text_of(store, key, "child") for key in "abc"] == ["grandparent", "parent", "child"]


def test_a_fork_from_before_its_parents_own_fork_reads_the_grandparent(store: Store) -> None:
    early = append(store, a_note("a", "early"))
    append(store, a_note("a", "late"))
    fork(store, "parent")
    append(store, a_note("a", "parent"), branch="parent")

    fork(store, "child", parent="parent", at=early)

    assert text_of(store, "a", "child") == "early"


def test_a_view_of_the_past_shows_each_version_in_its_time(store: Store) -> None:
    first = append(store, a_note("a", "one"))
    second = append(store, a_note("a", "two"))
    third = append(store, an_erasure("a"))
    append(store, a_note("a", "four"))

    seen = [text_of(store, "a", limit=at) for at in (first - 1, first, second, third, OPEN_END)]

    assert seen == [None, "one", "two", None, "four"]


def test_a_view_of_the_past_of_a_fork_reaches_before_the_fork(store: Store) -> None:
    first = append(store, a_note("a", "one"))
    append(store, a_note("a", "two"))
    fork(store, "trial")
    last = append(store, a_note("a", "three"), branch="trial")

    seen = [text_of(store, "a", "trial", limit=at) for at in (first, last - 1, last)]

    assert seen == ["one", "two", "three"]


def test_a_time_means_the_last_event_at_or_before_it(store: Store, clock: Clock) -> None:
    clock.advance(10)
    first = append(store, a_note("a"), a_note("b"))
    clock.advance(10)
    second = append(store, a_note("c"))

    reader = store.reader()
    found = [
        reader.log.sequence_at(START + seconds * SECOND + micros)
        for seconds, micros in ((-5, 0), (0, 0), (10, -1), (10, 0), (15, 0), (20, 0), (99, 0))
    ]

    assert found == [0, 1, 1, first, first, second, second]


def test_a_sequence_means_the_end_of_its_transaction(store: Store) -> None:
    last = append(store, a_note("a"), a_note("b"), a_note("c"))
    append(store, a_note("d"))

    reader = store.reader()
    ends = [reader.log.end_of(at) for at in (last - 2, last - 1, last, last + 1, last + 2, 0)]

    assert ends == [last, last, last, last + 1, None, None]


def test_every_event_has_a_time_and_no_other_sequence_has(store: Store, clock: Clock) -> None:
    clock.advance(3)
    sequence = append(store, a_note("a"))

    assert store.reader().log.time_of(sequence) == START + 3 * SECOND
    assert store.reader().log.time_of(sequence + 1) is None


def test_history_is_newest_first_with_erasures_and_through_forks(store: Store) -> None:
    one = append(store, a_note("a", "1"))
    two = append(store, an_erasure("a"))
    fork(store, "trial")
    append(store, a_note("a", "unseen"))
    three = append(store, a_note("a", "3"), branch="trial")

    assert _history(store, "trial", before=OPEN_END, limit=10) == [three, two, one]


def test_history_pages_give_every_version_once(store: Store) -> None:
    written = [append(store, a_note("a", str(number))) for number in range(5)]
    fork(store, "trial")
    written += [append(store, a_note("a", "x"), branch="trial") for _ in range(5)]

    pages, before = [], OPEN_END
    while page := _history(store, "trial", before=before, limit=3):
        pages.append(page)
        before = page[-1]

    assert [len(page) for page in pages] == [3, 3, 3, 1]
    assert [at for page in pages for at in page] == sorted(written, reverse=True)


def test_history_of_a_past_view_ends_there(store: Store) -> None:
    one = append(store, a_note("a", "1"))
    two = append(store, a_note("a", "2"))
    append(store, a_note("a", "3"))

    with store.snapshot() as reader:
        lineage = reader.branches.lineage(live(reader, MAIN), two)
        found = reader.records.history(lineage, notes(), "a", before=OPEN_END, limit=10)

    assert [version.sequence for version in found] == [two, one]


def _history(store: Store, branch: str, *, before: int, limit: int) -> list[int]:
    with store.snapshot() as reader:
        lineage = reader.branches.lineage(live(reader, branch))
        found = reader.records.history(lineage, notes(), "a", before=before, limit=limit)
    return [version.sequence for version in found]


def test_records_come_in_pages_by_key_without_the_deleted(store: Store) -> None:
    append(store, *(a_note(f"k{number:02}", str(number)) for number in range(10)))
    fork(store, "trial")
    append(store, an_erasure("k03"), a_note("k05", "changed"), branch="trial")
    append(store, a_note("k99", "later"))

    seen: dict[str, bytes | None] = {}
    after: str | None = ""
    with store.snapshot() as reader:
        lineage = reader.branches.lineage(live(reader, "trial"))
        while after is not None:
            page, after = reader.records.page(lineage, notes(), after=after, limit=4)
            seen |= {key: version.payload for key, version in page}

    assert list(seen) == [f"k{number:02}" for number in range(10) if number != 3]
    assert seen["k05"] == b'{"text":"changed"}'


def test_events_that_stand_for_themselves_come_oldest_first_through_forks(store: Store) -> None:
    one = append(store, a_happening("1"))
    fork(store, "trial")
    append(store, a_happening("unseen"))
    two = append(store, a_happening("2"), branch="trial")
    append(store, a_happening("elsewhere", namespace="m"), branch="trial")
    three = append(store, a_happening("3"), branch="trial")

    with store.snapshot() as reader:
        lineage = reader.branches.lineage(live(reader, "trial"))
        everything = reader.records.stream(lineage, happenings())
        first = reader.records.stream(lineage, happenings(), limit=2)
        rest = reader.records.stream(lineage, happenings(), after=first[-1].sequence)

    assert [each.sequence for each in everything] == [one, two, three]
    assert [each.sequence for each in (*first, *rest)] == [one, two, three]


def test_a_span_is_the_first_and_last_change_a_view_shows(store: Store, clock: Clock) -> None:
    fresh = create(store, "fresh")
    clock.advance(10)
    first = append(store, a_note("a"))
    fork(store, "trial")
    append(store, a_note("b"))
    clock.advance(10)
    last = append(store, a_note("c"), branch="trial")

    reader = store.reader()
    span = reader.log.span(reader.branches.lineage(live(reader, "trial")))

    assert span == ((first, START + 10 * SECOND), (last, START + 20 * SECOND))
    assert reader.log.span(reader.branches.lineage(fresh)) is None


def test_a_reader_in_a_snapshot_sees_one_state_and_afterwards_the_newest(store: Store) -> None:
    append(store, a_note("a", "one"))

    with store.snapshot() as reader:
        before = reader.log.head()
        with store.snapshot() as inner:
            assert inner.log.head() == before
        assert reader.log.head() == before
    append(store, a_note("a", "two"))

    assert store.reader().log.head().sequence == before.sequence + 1


def test_a_lineage_has_a_limit_that_the_error_names(store: Store) -> None:
    name = MAIN
    for number in range(limits.LINEAGE_DEPTH_MAX - 1):
        fork(store, f"b{number}", parent=name)
        name = f"b{number}"
    reader = store.reader()
    deepest = reader.branches.lineage(live(reader, name))

    def work(transaction: Transaction) -> None:
        parent = live(transaction, name)
        made = transaction.branches.create("deeper", parent=parent, fork_sequence=99)
        transaction.branches.lineage(made)

    with pytest.raises(StratagemError) as refused:
        store.write(work, TESTER)

    assert len(deepest) == limits.LINEAGE_DEPTH_MAX
    assert refused.value.details["limit"] == limits.LINEAGE_DEPTH_MAX
    assert store.reader().branches.by_name("deeper") is None


def shown(store: Store, as_of: str | int | None = None) -> tuple[set[int], int]:
    """Return the notes that a view shows, among all of them, and how many it counts."""
    with store.snapshot() as reader:
        view = Views(store, lambda: UTC).view(reader, MAIN, as_of)
        everything = list(range(1, reader.log.head().sequence + 1))
        return reader.records.visible_among(view, everything), reader.records.count(view, NOTE)


def test_expiry_goes_by_the_clock_where_the_log_ran_ahead_of_it(store: Store, clock: Clock) -> None:
    first = append(store, a_note("first"))
    clock.advance(1_000_000)
    ahead = append(store, a_note("ahead"))
    clock.advance(-1_000_000)

    def work(transaction: Transaction) -> tuple[int, int]:
        draft = a_note("brief", expires_at=transaction.wall + 10 * SECOND)
        written = transaction.append(live(transaction, MAIN), [draft])[0]
        return written.sequence, written.at

    brief, at = store.write(work, TESTER)
    present = shown(store)
    clock.advance(20)
    last = append(store, a_note("last"))
    clock.advance(10)

    assert present == ({first, ahead, brief}, 3)
    assert shown(store) == ({first, ahead, last}, 3)
    for moment in (f"@{brief}", at, "25s ago"):
        assert shown(store, moment) == ({first, ahead, brief}, 3)
    assert shown(store, f"@{last}") == ({first, ahead, last}, 3)
    assert shown(store, "15s ago") == ({first, ahead}, 2)
    assert shown(store, "5s ago") == ({first, ahead, last}, 3)


def test_the_versions_in_a_space_are_those_of_deleted_records_too(store: Store) -> None:
    first = append(store, a_note("a"), a_note("b"))
    append(store, an_erasure("a"))
    fork(store, "side")
    append(store, a_note("b", "later"))
    append(store, a_note("c"), branch="side")

    with store.snapshot() as reader:
        lineage = view(reader, "side").lineage
        every = reader.records.versions_in(lineage, notes(), before=OPEN_END, limit=10)
        older = reader.records.versions_in(lineage, notes(), before=first + 1, limit=1)

    assert [(key, version.kind) for key, version in every] == [
        ("c", "NoteWritten"),
        ("a", "NoteErased"),
        ("b", "NoteWritten"),
        ("a", "NoteWritten"),
    ]
    assert [(key, version.sequence) for key, version in older] == [("b", first)]
