"""A transaction is a hidden branch; committing writes what it changed to its origin, at once."""

from __future__ import annotations

import pytest

from stratagem.engine.events import Draft
from stratagem.engine.lineage import Branch
from stratagem.errors import BranchNotFound, TransactionConflict, TransactionEnded
from stratagem.storage import branch_merge, open_transactions
from stratagem.storage.contract import Store, Transaction
from stratagem.storage.open_transactions import Commit
from tests.contracts.samples import (
    MAIN,
    SECOND,
    TESTER,
    Clock,
    a_happening,
    a_note,
    an_erasure,
    append,
    events,
    examine,
    fork,
    happenings,
    live,
    matching,
    text_of,
)


def begin(store: Store, name: str = "one", *, seconds: int = 60) -> Branch:
    def work(transaction: Transaction) -> Branch:
        return open_transactions.begin(
            transaction,
            live(transaction, MAIN),
            token=name,
            ends_at=store.now() + seconds * SECOND,
        )

    return store.write(work, TESTER)


def commit(store: Store, branch: Branch) -> Commit:
    return store.write(lambda each: open_transactions.commit(each, branch), TESTER)


def happened(store: Store, branch: str = MAIN) -> list[str]:
    with store.snapshot() as reader:
        lineage = reader.branches.lineage(live(reader, branch))
        found = reader.records.stream(lineage, happenings())
    return [str(each.payload) for each in found]


def merge(store: Store, source: str, target: str) -> None:
    def work(transaction: Transaction) -> None:
        into, other = live(transaction, target), live(transaction, source)
        planned = branch_merge.plan(transaction, into, other)
        branch_merge.carry_out(transaction, into, other, planned)

    store.write(work, TESTER)


def test_what_a_transaction_wrote_appears_on_its_branch_when_it_is_committed(store: Store) -> None:
    append(store, a_note("a", "old"), a_note("gone", "soon"))
    opened = begin(store)
    append(store, a_note("a", "first"), branch=opened.name)
    append(store, a_note("a", "new"), an_erasure("gone"), branch=opened.name)
    append(store, a_note("b", "made"), a_happening("rain"), branch=opened.name)
    before = (text_of(store, "a"), text_of(store, "b"), happened(store))

    done = commit(store, opened)

    assert before == ("old", None, [])
    assert [text_of(store, key) for key in ("a", "b", "gone")] == ["new", "made", None]
    assert len(happened(store)) == 1
    assert (done.records, done.events) == (3, 1)
    assert matching(store, "made") != []
    assert examine(store) == []


def test_all_of_a_commit_has_one_time_and_each_record_one_version(store: Store) -> None:
    opened = begin(store)
    for text in ("1", "2", "3"):
        append(store, a_note("a", text), a_note("b", text), branch=opened.name)

    commit(store, opened)

    main = live(store.reader(), MAIN)
    written = [each for each in events(store) if each.branch == main.id and each.key]
    assert [each.key for each in written] == ["a", "b"]
    assert len({each.at for each in written}) == 1


def test_open_transactions_are_no_branches_that_anybody_sees(store: Store) -> None:
    opened = begin(store)
    reader = store.reader()

    assert [each.name for each in reader.branches.all()] == [MAIN]
    assert reader.branches.live_count() == 1
    assert reader.branches.transactions() == [opened]
    commit(store, opened)
    assert [each.name for each in reader.branches.all()] == [MAIN]
    assert reader.branches.transactions() == []


def test_a_record_that_both_changed_refuses_the_commit_even_where_they_agree(
    store: Store,
) -> None:
    append(store, a_note("count", "1"), a_note("other", "1"))
    opened = begin(store)
    append(store, a_note("count", "2"), a_note("mine", "2"), branch=opened.name)
    append(store, a_note("count", "2"), a_note("other", "2"))

    with pytest.raises(TransactionConflict) as refused:
        commit(store, opened)

    assert refused.value.details["records"] == [{"kind": "note", "namespace": "n", "key": "count"}]
    assert text_of(store, "mine") is None


def test_changes_to_other_records_do_not_refuse_it(store: Store) -> None:
    append(store, a_note("a", "1"))
    opened = begin(store)
    append(store, a_note("mine", "2"), branch=opened.name)
    append(store, a_note("a", "2"))

    commit(store, opened)

    assert (text_of(store, "a"), text_of(store, "mine")) == ("2", "2")


def test_a_commit_leaves_no_trace_in_what_its_branch_knows(store: Store) -> None:
    before = store.reader().branches.knowledge(live(store.reader(), MAIN).id, 10**6)
    opened = begin(store)
    append(store, a_note("a", "1"), a_happening("rain"), branch=opened.name)

    commit(store, opened)

    after = store.reader().branches.knowledge(live(store.reader(), MAIN).id, 10**6)
    assert before == after


def test_an_event_that_was_committed_is_merged_once_in_each_direction(store: Store) -> None:
    fork(store, "trial")
    opened = begin(store)
    append(store, a_happening("rain"), branch=opened.name)
    commit(store, opened)

    for _round in range(2):
        merge(store, MAIN, "trial")
        append(store, a_note("a", str(_round)), branch="trial")
        merge(store, "trial", MAIN)

    assert len(happened(store)) == len(happened(store, "trial")) == 1


def test_a_purge_of_a_copy_erases_what_the_transaction_wrote_too(store: Store) -> None:
    fork(store, "trial")
    opened = begin(store)
    append(store, a_happening("a secret word"), branch=opened.name)
    commit(store, opened)
    merge(store, MAIN, "trial")
    trial = live(store.reader(), "trial")
    copy = next(each for each in events(store) if each.branch == trial.id and each.space)

    store.purge(TESTER, space=happenings(), key=None, sequence=copy.sequence)

    assert not [each for each in events(store) if each.payload and b"secret" in each.payload]
    assert examine(store) == []


def test_what_is_over_its_time_ends_when_the_next_one_begins(store: Store, clock: Clock) -> None:
    late = begin(store, "late", seconds=10)
    append(store, a_note("a", "lost"), branch=late.name)
    clock.advance(11)

    early = begin(store, "early")

    assert store.reader().branches.transactions() == [early]
    with pytest.raises(TransactionEnded):
        open_transactions.find_transaction(store.reader().branches, late.name[1:])
    assert text_of(store, "a") is None


def test_nothing_is_committed_to_a_branch_that_is_gone(store: Store) -> None:
    fork(store, "trial")

    def work(transaction: Transaction) -> Branch:
        return open_transactions.begin(
            transaction,
            live(transaction, "trial"),
            token="one",
            ends_at=store.now() + 60 * SECOND,
        )

    opened = store.write(work, TESTER)
    append(store, Draft("NoteWritten", {"text": "x"}, a_note("a").space, "a"), branch=opened.name)
    store.write(lambda each: each.branches.delete(live(each, "trial")), TESTER)

    with pytest.raises(BranchNotFound):
        commit(store, opened)
