"""What read models elsewhere still have to be told waits in the outbox of the log itself."""

from __future__ import annotations

import pytest

from stratagem.engine.events import Draft
from stratagem.storage.branch_merge import carry_out, plan
from stratagem.storage.contract import Store, Transaction
from stratagem.storage.outbox import OutboxCount, Parcel, Postponed
from tests.contracts.samples import (
    HAPPENING,
    MAIN,
    NOTE,
    TESTER,
    a_happening,
    a_note,
    an_erasure,
    append,
    fork,
    live,
    notes,
    rebuild,
)

NAME = "elsewhere"
OTHER = "nowhere"


def register(store: Store, name: str = NAME, *kinds: str) -> None:
    store.write(lambda t: t.outbox.register(name, kinds or (NOTE,)), TESTER)


def due(store: Store, *, now: int = 0, limit: int = 100, name: str = NAME) -> list[Parcel]:
    return store.reader().outbox.due(name, now=now, limit=limit)


def tally(store: Store, name: str = NAME) -> OutboxCount:
    return store.reader().outbox.count(name)


def settle(store: Store, *subjects: int, upto: int, name: str = NAME) -> int:
    return store.write(lambda t: t.outbox.mark_delivered(name, subjects, upto=upto), TESTER)


def postpone(store: Store, *records: Postponed, upto: int) -> None:
    store.write(lambda t: t.outbox.postpone(NAME, records, upto=upto), TESTER)


def lease(store: Store, owner: str, *, now: int, until: int) -> bool:
    return store.write(lambda t: t.outbox.lease(NAME, owner, now=now, until=until), TESTER)


def subject_of(store: Store, key: str) -> int:
    return store.reader().records.subjects(notes(), [key])[key]


def test_a_log_has_no_projections_of_itself(store: Store) -> None:
    append(store, a_note("a"))

    assert store.reader().outbox.projections() == []
    assert due(store) == []
    assert not store.reader().outbox.is_behind(NAME)


def test_every_event_of_a_wanted_kind_waits_with_its_subject(store: Store) -> None:
    register(store)
    first = append(store, a_note("a"), a_happening("x"), a_note("b")) - 2
    last = append(store, an_erasure("a"))

    a, b = subject_of(store, "a"), subject_of(store, "b")

    assert due(store) == [Parcel(a, first, last, 0), Parcel(b, first + 2, first + 2, 0)]
    assert tally(store) == OutboxCount(3, 0)
    assert store.reader().outbox.is_behind(NAME)


def test_events_before_the_registration_do_not_wait(store: Store) -> None:
    append(store, a_note("a"))
    register(store)

    assert due(store) == []


def test_other_branches_do_not_concern_a_projection_until_they_are_merged(store: Store) -> None:
    register(store)
    append(store, a_note("a", "one"))
    settle(store, subject_of(store, "a"), upto=store.reader().log.head().sequence)
    fork(store, "trial")
    append(store, a_note("a", "two"), a_note("b"), branch="trial")
    before = tally(store)

    def work(transaction: Transaction) -> None:
        branches = live(transaction, MAIN), live(transaction, "trial")
        carry_out(transaction, *branches, plan(transaction, *branches))

    store.write(work, TESTER)

    assert before == OutboxCount(0, 0)
    assert {each.subject for each in due(store)} == {
        subject_of(store, "a"),
        subject_of(store, "b"),
    }


def test_a_transaction_that_fails_leaves_nothing_in_the_outbox(store: Store) -> None:
    register(store)

    def work(transaction: Transaction) -> None:
        transaction.append(live(transaction, MAIN), [a_note("a")])
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        store.write(work, TESTER)

    assert due(store) == []


def test_each_projection_has_rows_and_kinds_of_its_own(store: Store) -> None:
    register(store)
    register(store, OTHER, HAPPENING, NOTE)
    append(store, a_note("a"))
    head = store.reader().log.head().sequence

    settle(store, subject_of(store, "a"), upto=head)

    assert [each.kinds for each in store.reader().outbox.projections()] == [
        (NOTE,),
        (HAPPENING, NOTE),
    ]
    assert (tally(store), tally(store, OTHER)) == (OutboxCount(0, 0), OutboxCount(1, 0))
    assert [each.processed for each in store.reader().outbox.projections()] == [1, 0]


def test_what_was_registered_and_appended_in_one_transaction_waits(store: Store) -> None:
    def work(transaction: Transaction) -> None:
        transaction.append(live(transaction, MAIN), [a_note("a")])
        transaction.outbox.register(NAME, (NOTE,))
        transaction.append(live(transaction, MAIN), [a_note("b")])

    store.write(work, TESTER)

    assert [each.subject for each in due(store)] == [subject_of(store, "b")]


def test_settling_takes_all_rows_of_a_record_up_to_a_sequence(store: Store) -> None:
    register(store)
    append(store, a_note("a"), a_note("b"))
    upto = append(store, a_note("a"))
    later = append(store, a_note("a"))
    a, b = subject_of(store, "a"), subject_of(store, "b")

    taken = settle(store, a, upto=upto)

    assert taken == 2
    assert due(store) == [Parcel(b, upto - 1, upto - 1, 0), Parcel(a, later, later, 0)]
    assert store.reader().outbox.projections()[0].processed == 2


def test_a_postponed_record_is_due_when_its_time_comes(store: Store) -> None:
    register(store)
    upto = append(store, a_note("a"), a_note("b"))
    a, b = subject_of(store, "a"), subject_of(store, "b")

    postpone(store, Postponed(a, 3, 500, failed=False, error="refused"), upto=upto)

    assert [each.subject for each in due(store, now=499)] == [b]
    assert due(store, now=500)[0] == Parcel(a, upto - 1, upto - 1, 3)
    assert store.reader().outbox.rows(NAME, limit=1)[0].error == "refused"
    assert tally(store) == OutboxCount(2, 0)


def test_a_failed_record_is_not_due_until_it_is_retried(store: Store) -> None:
    register(store)
    upto = append(store, a_note("a"), a_note("b"))
    a, b = subject_of(store, "a"), subject_of(store, "b")

    postpone(store, Postponed(b, 8, 0, failed=True, error="refused"), upto=upto)
    given_up = tally(store)
    shown = [(each.subject, each.status) for each in store.reader().outbox.rows(NAME, limit=9)]
    still = [each.subject for each in due(store, now=10**18)]
    retried = store.write(lambda t: t.outbox.retry_all(NAME), TESTER)

    assert given_up == OutboxCount(1, 1)
    assert shown == [(b, "failed"), (a, "pending")]
    assert still == [a]
    assert retried == 1
    assert [(each.subject, each.attempts) for each in due(store)] == [(a, 0), (b, 0)]


def test_a_new_event_gives_a_failed_record_new_attempts(store: Store) -> None:
    register(store)
    upto = append(store, a_note("a"))
    a = subject_of(store, "a")
    postpone(store, Postponed(a, 8, 0, failed=True, error="refused"), upto=upto)

    later = append(store, a_note("a"))

    assert due(store) == [Parcel(a, upto, later, 0)]
    assert store.reader().outbox.oldest_rows(NAME, [a, a + 1]) == {a: upto}


def test_the_longest_waiting_come_first_up_to_a_limit(store: Store) -> None:
    register(store)
    append(store, *(a_note(key) for key in "abcdef"))
    append(store, a_note("a"))

    found = due(store, limit=3)

    assert [each.subject for each in found] == [subject_of(store, key) for key in "abc"]


def test_a_lease_is_held_by_one_until_it_ends_or_is_given_back(store: Store) -> None:
    register(store)

    assert lease(store, "one", now=100, until=200)
    assert not lease(store, "two", now=150, until=250)
    assert lease(store, "one", now=150, until=300)
    assert not lease(store, "two", now=250, until=350)
    assert lease(store, "two", now=300, until=400)
    assert not lease(store, "one", now=301, until=400)
    assert lease(store, "two", now=310, until=0)
    assert lease(store, "one", now=311, until=400)


def test_a_projection_that_is_not_registered_cannot_be_leased(store: Store) -> None:
    assert not lease(store, "one", now=100, until=200)


def test_building_settles_what_was_there_when_it_began(store: Store) -> None:
    register(store)
    upto = append(store, a_note("a"), a_note("b"))
    append(store, a_note("c"))

    store.write(lambda t: t.outbox.set_built(NAME, "first", upto=upto), TESTER)

    assert [each.subject for each in due(store)] == [subject_of(store, "c")]
    assert store.reader().outbox.projections()[0].built == "first"
    assert store.reader().outbox.projections()[0].processed == 2


def test_registering_again_changes_nothing_unless_other_kinds_are_wanted(store: Store) -> None:
    register(store)
    append(store, a_note("a"))
    store.write(lambda t: t.outbox.set_built(NAME, "first"), TESTER)

    register(store)
    same = store.reader().outbox.projections()[0]
    register(store, NAME, NOTE, HAPPENING)
    other = store.reader().outbox.projections()[0]

    assert (same.built, other.built) == ("first", None)
    assert tally(store) == OutboxCount(1, 0)


def test_a_dropped_projection_leaves_nothing(store: Store) -> None:
    register(store)
    append(store, a_note("a"))

    store.write(lambda t: t.outbox.drop(NAME), TESTER)
    append(store, a_note("b"))

    assert store.reader().outbox.projections() == []
    assert tally(store) == OutboxCount(0, 0)


def test_the_outbox_outlives_a_rebuild_of_the_read_models(store: Store) -> None:
    register(store)
    append(store, a_note("a"))
    before = due(store)

    rebuild(store)

    assert due(store) == before


def test_a_purge_tells_the_projections_and_quotes_nothing_more(store: Store) -> None:
    register(store)
    upto = append(store, a_note("a", "xyzzy"), a_note("b"))
    a = subject_of(store, "a")
    settle(store, subject_of(store, "b"), upto=upto)
    postpone(store, Postponed(a, 1, 0, failed=False, error="xyzzy is refused"), upto=upto)

    store.purge(TESTER, space=notes(), key="a", sequence=None)

    rows = store.reader().outbox.rows(NAME, limit=9)
    assert [each.subject for each in rows] == [a, a]
    assert [each.error for each in rows] == [None, None]
    assert rows[-1].sequence == store.reader().log.head().sequence


def test_events_without_a_record_do_not_wait(store: Store) -> None:
    register(store, NAME, HAPPENING)

    append(store, a_happening("x"), Draft("Odd", {}))

    assert due(store) == []
