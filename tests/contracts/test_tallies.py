"""How much a view shows, at any moment, with what has expired left out."""

from __future__ import annotations

from stratagem.engine.lineage import OPEN_END
from stratagem.storage.contract import Store
from tests.contracts.samples import (
    HAPPENING,
    MAIN,
    NOTE,
    SECOND,
    START,
    TESTER,
    a_happening,
    a_note,
    an_erasure,
    append,
    create,
    fork,
    live,
    rebuild,
    view,
)


def tally(
    store: Store, branch: str = MAIN, kind: str = NOTE, *, limit: int = OPEN_END, time: int = START
) -> int:
    with store.snapshot() as reader:
        return reader.records.count(view(reader, branch, limit=limit, time=time), kind)


def test_an_empty_log_shows_nothing(store: Store) -> None:
    assert (tally(store), tally(store, kind=HAPPENING)) == (0, 0)


def test_records_count_once_however_often_they_were_written(store: Store) -> None:
    append(store, a_note("a"), a_note("b"), a_note("a"))
    append(store, a_note("a"), a_note("a", namespace="m"))

    assert tally(store) == 3


def test_erasing_uncounts_and_writing_again_counts(store: Store) -> None:
    append(store, a_note("a"), a_note("b"))
    append(store, an_erasure("a"))
    without = tally(store)

    append(store, a_note("a"))

    assert (without, tally(store)) == (1, 2)


def test_happenings_count_each_and_apart_from_notes(store: Store) -> None:
    append(store, a_happening("x"), a_happening("x"), a_note("a"))

    assert (tally(store), tally(store, kind=HAPPENING)) == (1, 2)


def test_a_tally_holds_for_every_moment(store: Store) -> None:
    one = append(store, a_note("a"))
    two = append(store, a_note("b"), a_note("c"))
    three = append(store, an_erasure("a"))

    tallies = [tally(store, limit=at) for at in (1, one, two, three)]

    assert tallies == [0, 1, 3, 2]


def test_a_fork_counts_what_it_borrows_and_its_own_changes(store: Store) -> None:
    append(store, a_note("a"), a_note("b"), a_happening("x"))
    fork(store, "trial")
    borrowed = tally(store, "trial")
    append(store, a_note("later"))

    append(store, an_erasure("a"), a_note("c"), a_note("b"), a_note("d"), branch="trial")

    assert (borrowed, tally(store, "trial"), tally(store)) == (2, 3, 3)
    assert tally(store, "trial", HAPPENING) == 1


def test_a_fork_from_the_past_counts_the_past(store: Store) -> None:
    then = append(store, a_note("a"))
    append(store, a_note("b"))

    fork(store, "old", at=then)
    borrowed = tally(store, "old")
    append(store, a_note("c"), branch="old")

    assert (borrowed, tally(store, "old")) == (1, 2)


def test_an_empty_branch_counts_its_own_only(store: Store) -> None:
    append(store, a_note("a"))
    create(store, "fresh")

    append(store, a_note("a"), branch="fresh")

    assert (tally(store, "fresh"), tally(store)) == (1, 1)


def test_expired_records_do_not_count_in_views_from_their_time_on(store: Store) -> None:
    append(store, a_note("a", expires_at=START + 10 * SECOND), a_note("b"))
    fork(store, "trial")

    times = (START, START + 10 * SECOND - 1, START + 10 * SECOND, START + 99 * SECOND)

    assert [tally(store, time=time) for time in times] == [2, 2, 1, 1]
    assert [tally(store, "trial", time=time) for time in times] == [2, 2, 1, 1]


def test_a_record_written_anew_after_it_expired_counts_again(store: Store) -> None:
    first = append(store, a_note("a", expires_at=START + SECOND))
    append(store, a_note("a"))

    late = START + 5 * SECOND

    assert tally(store, time=late) == 1
    assert tally(store, limit=first, time=late) == 0


def test_erasing_a_record_that_would_expire_counts_it_once(store: Store) -> None:
    append(store, a_note("a", expires_at=START + SECOND), a_note("b"))
    append(store, an_erasure("a"))

    assert [tally(store, time=time) for time in (START, START + 5 * SECOND)] == [1, 1]


def test_what_a_branch_hides_or_replaces_does_not_expire_on_it(store: Store) -> None:
    append(store, a_note("a", expires_at=START + SECOND), a_note("b", expires_at=START + SECOND))
    fork(store, "trial")
    append(store, an_erasure("a"), a_note("b"), branch="trial")

    assert tally(store, "trial", time=START + 5 * SECOND) == 1


def test_several_changes_in_one_transaction_are_one_step(store: Store) -> None:
    store.write(
        lambda t: [
            t.append(live(t, MAIN), [a_note("a")]),
            t.append(live(t, MAIN), [a_note("b"), an_erasure("a")]),
        ],
        TESTER,
    )

    assert tally(store) == 1


def test_tallies_are_the_same_after_a_rebuild(store: Store) -> None:
    moments = [
        append(store, a_note("a"), a_note("b", expires_at=START + SECOND)),
        append(store, an_erasure("a")),
        append(store, a_note("a"), a_note("b")),
    ]
    before = [tally(store, limit=at, time=START + at) for at in moments]

    rebuild(store)

    assert [tally(store, limit=at, time=START + at) for at in moments] == before
