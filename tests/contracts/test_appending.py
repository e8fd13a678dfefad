"""Events go in once, in order, at one time for each transaction, and never change."""

from __future__ import annotations

import orjson
import pytest

from stratagem.engine.events import GENESIS, Event, content_hash, event_hash
from stratagem.errors import StratagemError
from stratagem.storage.contract import Store, Transaction, WriteRequest
from tests.contracts.backends import Backend
from tests.contracts.conftest import Opener
from tests.contracts.samples import (
    MAIN,
    NOTE_WRITTEN,
    SECOND,
    START,
    TESTER,
    Clock,
    a_happening,
    a_note,
    an_erasure,
    append,
    events,
    live,
    notes,
    text_of,
)


def test_a_new_log_holds_the_default_branch_and_nothing_else(store: Store) -> None:
    reader = store.reader()

    assert [branch.name for branch in reader.branches.all()] == [MAIN]
    assert reader.log.head().sequence == 1
    assert [event.kind for event in store.log()] == ["BranchCreated"]


def test_what_is_appended_is_what_is_read(store: Store) -> None:
    content = {"text": "Grüße, 世界", "deep": {"a": [1, 2.5, None, True]}}

    sequence = append(store, a_note("k", **content))  # type: ignore[arg-type]

    reader = store.reader()
    version = reader.records.current(reader.branches.lineage(live(reader, MAIN)), notes(), "k")
    assert version is not None
    assert (version.sequence, version.at, version.kind) == (sequence, START + 1, NOTE_WRITTEN)
    assert orjson.loads(version.payload or b"") == content


def test_a_record_that_was_never_written_is_none(store: Store) -> None:
    append(store, a_note("k", "here"))

    assert text_of(store, "other") is None
    assert text_of(store, "k", namespace="other") is None


def test_an_erasure_hides_a_record_and_a_later_write_brings_it_back(store: Store) -> None:
    append(store, a_note("k", "one"))
    append(store, an_erasure("k"))
    hidden = text_of(store, "k")

    append(store, a_note("k", "two"))

    assert hidden is None
    assert text_of(store, "k") == "two"


def test_sequences_number_the_whole_log_without_gaps(store: Store) -> None:
    append(store, a_note("a"), a_note("b"))
    append(store, a_happening("c"))

    assert [event.sequence for event in store.log()] == [1, 2, 3, 4]


def test_appending_says_where_each_draft_landed_and_what_it_replaced(store: Store) -> None:
    first = append(store, a_note("a", "old"))

    appended = store.write(
        lambda t: t.append(live(t, MAIN), [a_note("a", "new"), a_note("b"), a_happening("c")]),
        TESTER,
    )

    assert [each.sequence for each in appended] == [first + 1, first + 2, first + 3]
    assert [each.before for each in appended] == [first, None, None]


def test_a_record_written_twice_in_one_call_replaces_itself(store: Store) -> None:
    appended = store.write(
        lambda t: t.append(live(t, MAIN), [a_note("a", "one"), a_note("a", "two")]), TESTER
    )

    assert [each.before for each in appended] == [None, appended[0].sequence]
    assert text_of(store, "a") == "two"


def test_replacing_an_erased_or_expired_record_replaces_nothing(store: Store, clock: Clock) -> None:
    append(store, a_note("erased"), a_note("expired", expires_at=START + SECOND))
    append(store, an_erasure("erased"))
    clock.advance(5)

    appended = store.write(
        lambda t: t.append(live(t, MAIN), [a_note("erased"), a_note("expired")]), TESTER
    )

    assert [each.before for each in appended] == [None, None]


def test_every_event_of_a_transaction_has_its_time(store: Store, clock: Clock) -> None:
    clock.advance(10)

    def work(transaction: Transaction) -> int:
        transaction.append(live(transaction, MAIN), [a_note("a"), a_note("b")])
        transaction.append(live(transaction, MAIN), [a_happening("c")])
        return transaction.at

    at = store.write(work, TESTER)

    assert at == START + 10 * SECOND
    assert [event.at for event in store.log(1)] == [at, at, at]


def test_a_time_finds_the_last_event_up_to_it(store: Store) -> None:
    for count in (1, 3, 1, 1, 2, 7, 1, 1, 1):
        append(store, *(a_note(f"{count}-{number}", "text") for number in range(count)))
    times = {event.sequence: event.at for event in store.log()}
    asked = {at + beside for at in times.values() for beside in (-1, 0, 1)}

    found = {at: store.reader().log.sequence_at(at) for at in asked}

    assert found == {
        at: max((sequence for sequence in times if times[sequence] <= at), default=0)
        for at in asked
    }


def test_time_never_goes_backwards_even_when_the_clock_does(store: Store, clock: Clock) -> None:
    clock.advance(60)
    append(store, a_note("a"))
    clock.advance(-3600)

    append(store, a_note("b"))
    append(store, a_note("c"))

    times = [event.at for event in store.log()]
    assert times == sorted(set(times))
    assert [event.wall for event in store.log()][-1] == START - 3540 * SECOND


def test_a_write_warns_once_of_a_log_that_is_ahead_of_the_clock(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    append(store, a_note("a"))
    clock.advance(-86_400)

    append(store, a_note("b"))
    append(store, a_note("c"))

    said = [each.message for each in caplog.records]
    assert sum("24 hours ahead of this machine's clock" in each for each in said) == 1


def test_each_event_is_chained_to_the_one_before(store: Store) -> None:
    append(store, a_note("a", "x", tags=["t"]), an_erasure("b"))
    append(store, a_happening("c", origin=2))

    previous = GENESIS
    for event in store.log():
        assert event.salt is not None
        assert event.payload is not None
        content = content_hash(event.salt, event.space, event.key, event.payload)
        assert event.content_hash == content
        assert event.hash == chained(previous, event)
        previous = event.hash


def chained(previous: bytes, event: Event) -> bytes:
    return event_hash(
        previous,
        sequence=event.sequence,
        at=event.at,
        wall=event.wall,
        branch=event.branch,
        kind=event.kind,
        actor=event.actor,
        request=event.request,
        origin=event.origin,
        content=event.content_hash,
    )


def test_the_head_is_the_newest_event(store: Store) -> None:
    append(store, a_note("a"))

    newest = events(store)[-1]

    assert store.reader().log.head() == (newest.sequence, newest.at, newest.hash)


def test_every_event_has_a_hash_and_no_other_sequence_has(store: Store) -> None:
    sequence = append(store, a_note("a"))

    reader = store.reader()

    assert reader.log.hash_of(sequence) == reader.log.head().hash
    assert reader.log.hash_of(1) == events(store)[0].hash
    assert reader.log.hash_of(sequence + 1) is None


def test_events_say_who_wrote_them_and_for_which_request(store: Store) -> None:
    store.write(
        lambda t: [t.append(live(t, MAIN), [a_note("a")])[0].sequence],
        WriteRequest("ada", "request-1", b"f"),
    )

    event = events(store)[-1]

    assert (event.actor, event.request) == ("ada", "request-1")


def test_work_that_fails_leaves_nothing_behind(store: Store) -> None:
    append(store, a_note("a", "before"))
    head = store.reader().log.head()

    def work(transaction: Transaction) -> None:
        branch = transaction.branches.create("doomed", parent=None, fork_sequence=0)
        transaction.append(branch, [a_note("a", "after", namespace="unheard of")])
        transaction.settings.set("colour", "red")
        raise LookupError("changed my mind")

    with pytest.raises(LookupError):
        store.write(work, TESTER)

    reader = store.reader()
    assert reader.log.head() == head
    assert reader.branches.by_name("doomed") is None
    assert reader.settings.text("colour") is None
    assert [space.namespace for space in reader.records.spaces().values()] == ["n"]


def test_after_failed_work_a_namespace_it_first_named_can_be_written(store: Store) -> None:
    def work(transaction: Transaction) -> None:
        transaction.append(live(transaction, MAIN), [a_note("a", "lost", namespace="new")])
        raise LookupError

    with pytest.raises(LookupError):
        store.write(work, TESTER)
    append(store, a_note("a", "kept", namespace="new"))

    assert text_of(store, "a", namespace="new") == "kept"


def test_a_transaction_sees_what_it_has_written_so_far(store: Store) -> None:
    def work(transaction: Transaction) -> list[object]:
        main = live(transaction, MAIN)
        transaction.append(main, [a_note("a", "mine")])
        version = transaction.records.current(transaction.branches.lineage(main), notes(), "a")
        branch = transaction.branches.create(
            "b", parent=main, fork_sequence=transaction.log.head()[0]
        )
        inherited = transaction.records.current(transaction.branches.lineage(branch), notes(), "a")
        return [version and version.payload, inherited and inherited.payload]

    seen = store.write(work, TESTER)

    assert seen == [b'{"text":"mine"}', b'{"text":"mine"}']


def test_the_log_can_be_read_from_any_sequence_on(store: Store) -> None:
    append(store, *(a_note(f"k{number}") for number in range(2_500)))

    assert len(events(store)) == 2_501
    assert [event.sequence for event in store.log(2_499)] == [2_500, 2_501]
    assert list(store.log(2_501)) == []


def test_the_log_can_be_written_to_while_it_is_read(store: Store) -> None:
    append(store, *(a_note(f"k{number}") for number in range(1_500)))

    read = 0
    for event in store.log():
        if event.sequence == 10:
            append(store, a_note("meanwhile"))
        read += 1

    assert read == 1_502


def test_settings_are_kept(store: Store) -> None:
    store.write(lambda t: t.settings.set("colour", "red"), TESTER)
    store.write(lambda t: t.settings.set("colour", "blue"), TESTER)

    assert store.reader().settings.text("colour") == "blue"
    assert store.reader().settings.text("size") is None


def test_what_was_written_is_there_when_the_store_is_opened_again(
    backend: Backend, opened: Opener
) -> None:
    if not backend.reopens:
        pytest.skip("this store is gone when it is closed")
    store = opened()
    append(store, a_note("a", "kept"))
    head = store.reader().log.head()
    store.close()

    again = opened()

    assert text_of(again, "a") == "kept"
    assert again.reader().log.head() == head


def test_a_closed_store_says_so(store: Store) -> None:
    append(store, a_note("a"))
    store.close()

    with pytest.raises(StratagemError) as reading:
        store.reader().log.head()
    with pytest.raises(StratagemError) as writing:
        append(store, a_note("b"))

    assert {reading.value.code, writing.value.code} == {"storage_unavailable"}


def test_two_stores_in_one_process_are_two_logs(backend: Backend, opened: Opener) -> None:
    if backend.reopens:
        pytest.skip("the same place is the same log")
    one, other = opened(), opened()

    append(one, a_note("a", "one"))

    assert text_of(other, "a") is None
