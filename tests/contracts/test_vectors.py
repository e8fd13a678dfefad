"""Vectors are kept beside texts, in the order of commits, and wait their turn where need be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from stratagem.engine.lineage import Branch
from stratagem.engine.records import Text
from stratagem.storage import open_transactions
from stratagem.storage.branch_merge import carry_out, plan
from stratagem.storage.contract import IndexedText, Store, Transaction
from tests.contracts.conftest import Opener
from tests.contracts.samples import (
    MAIN,
    TESTER,
    Words,
    a_happening,
    a_note,
    an_erasure,
    append,
    examine,
    fork,
    live,
    rebuild,
    vector_of,
)


@pytest.fixture
def store(opened: Opener) -> Store:
    store = opened(indexer=Words("hash-1"))
    store.write(lambda t: t.vectors.change_embedder("hash-1"), TESTER)
    return store


@pytest.fixture
def unready(opened: Opener) -> Store:
    """A store whose embedder makes no vectors yet."""
    return opened()


def test_a_text_is_embedded_in_the_transaction_that_writes_it(store: Store) -> None:
    note = append(store, a_note("k", "red"))
    happening = append(store, a_happening("blue"), a_note("empty"))

    reader = store.reader()
    rows = reader.vectors.after(0, 10)

    assert [row.sequence for row in rows] == [note, happening - 1]
    assert [row.vector for row in rows] == [vector_of("red"), vector_of("blue")]
    assert reader.vectors.count() == 2
    assert reader.vectors.last() == rows[-1].id
    assert reader.vectors.pending_count() == 0


def test_a_transaction_reads_vectors_as_others_do(store: Store) -> None:
    append(store, a_note("k", "red"))

    within = store.write(lambda transaction: transaction.vectors.after(0, 10), TESTER)

    assert within == store.reader().vectors.after(0, 10)
    assert within[0].vector == vector_of("red")


def test_vectors_come_in_pages(store: Store) -> None:
    append(store, *(a_note(f"k{number}", str(number)) for number in range(7)))

    reader = store.reader()
    seen, last = [], 0
    while page := reader.vectors.after(last, 3):
        seen += [row.sequence for row in page]
        last = page[-1].id

    assert seen == list(range(seen[0], seen[0] + 7))


def test_a_vector_says_what_decides_whether_it_is_seen(store: Store) -> None:
    old = append(store, a_note("k", "red"))
    new = append(store, a_note("k", "blue"))

    reader = store.reader()
    main = live(reader, MAIN)
    rows = {row.sequence: row for row in reader.vectors.after(0, 10)}

    assert rows[old].sequence_to == new
    assert rows[new].sequence_to is None
    assert rows[old].branch == main.id
    assert reader.records.spaces()[rows[old].space].namespace == "n"


def test_superseded_versions_are_listed_after_a_sequence(store: Store) -> None:
    one = append(store, a_note("k", "red"))
    two = append(store, a_note("k", "blue"))
    three = append(store, an_erasure("k"))

    reader = store.reader()

    assert sorted(reader.vectors.superseded_after(0)) == [(one, two), (two, three)]
    assert reader.vectors.superseded_after(two) == [(two, three)]


def test_texts_without_a_vector_wait_newest_first(unready: Store) -> None:
    written = [append(unready, a_note(f"k{number}", "red")) for number in range(3)]

    reader = unready.reader()

    assert reader.vectors.pending(10) == written[::-1]
    assert reader.vectors.pending(2) == written[:0:-1]
    assert reader.vectors.pending_count() == 3


def test_a_vector_made_later_is_kept_and_the_text_waits_no_more(unready: Store) -> None:
    one = append(unready, a_note("a", "red"))
    two = append(unready, a_note("b", "blue"))

    unready.write(lambda t: t.vectors.add({two: b"2" * 32}), TESTER)
    unready.write(lambda t: t.vectors.add({one: b"1" * 32}), TESTER)

    reader = unready.reader()
    assert [row.sequence for row in reader.vectors.after(0, 10)] == [two, one]
    assert reader.vectors.pending(10) == []
    assert examine(unready) == []


def test_a_vector_for_a_text_that_does_not_wait_is_dropped(unready: Store) -> None:
    note = append(unready, a_note("a", "red"), a_note("empty"))
    unready.write(lambda t: t.vectors.add({note - 1: b"1" * 32}), TESTER)

    unready.write(lambda t: t.vectors.add({note - 1: b"2" * 32, note: b"3" * 32}), TESTER)

    assert [row.vector for row in unready.reader().vectors.after(0, 10)] == [b"1" * 32]


def test_another_embedder_makes_every_text_wait_again(store: Store) -> None:
    written = [append(store, a_note(f"k{number}", "red")) for number in range(3)]

    store.write(lambda t: t.vectors.change_embedder("hash-2"), TESTER)

    reader = store.reader()
    assert reader.vectors.count() == 0
    assert sorted(reader.vectors.pending(10)) == written
    assert reader.settings.text("embedder") == "hash-2"


def test_an_embedder_that_is_not_the_databases_keeps_no_vectors(store: Store) -> None:
    store.write(lambda t: t.vectors.change_embedder("hash-2"), TESTER)

    note = append(store, a_note("k", "red"))

    assert store.reader().vectors.count() == 0
    assert store.reader().vectors.pending(10) == [note]


def test_a_rebuild_keeps_vectors_and_tells_every_process(store: Store) -> None:
    append(store, a_note("a", "red"), a_note("b", "blue"))
    before = [(row.sequence, row.vector) for row in store.reader().vectors.after(0, 10)]
    generation = store.reader().settings.number("vector_generation")

    rebuild(store)

    reader = store.reader()
    assert [(row.sequence, row.vector) for row in reader.vectors.after(0, 10)] == before
    assert reader.settings.number("vector_generation") != generation
    assert reader.vectors.pending_count() == 0
    assert examine(store) == []


def test_work_that_fails_keeps_no_vectors(store: Store) -> None:
    def work(transaction: Transaction) -> Branch:
        transaction.append(live(transaction, MAIN), [a_note("k", "red")])
        raise LookupError

    with pytest.raises(LookupError):
        store.write(work, TESTER)

    assert store.reader().vectors.count() == 0


class CountingWords(Words):
    """Remembers which texts vectors were made for."""

    def __init__(self) -> None:
        super().__init__("hash-1")
        self.embedded: list[str] = []

    def documents(
        self, texts: Sequence[tuple[Text, Sequence[str]]], *, embed: bool
    ) -> list[IndexedText]:
        if embed:
            self.embedded += [text.body for text, _ in texts]
        return super().documents(texts, embed=embed)


def test_an_event_that_repeats_another_has_its_vector(store: Store) -> None:
    first = append(store, a_note("k", "red"))
    # It says something else, so that a vector of its own would be another one.
    copy = append(store, replace(a_note("k", "blue"), repeats=first), a_note("l", "green"))

    rows = {row.sequence: row.vector for row in store.reader().vectors.after(0, 10)}

    assert rows == {
        first: vector_of("red"),
        copy - 1: vector_of("red"),
        copy: vector_of("green"),
    }
    assert store.reader().vectors.pending(10) == []
    assert examine(store) == []


def test_an_event_that_repeats_one_of_another_kind_or_without_a_vector_is_embedded(
    opened: Opener,
) -> None:
    store = opened(indexer=Words("hash-1"))
    waiting = append(store, a_note("k", "red"))
    store.write(lambda t: t.settings.set("embedder", "hash-1"), TESTER)
    other = append(store, a_happening("yellow"))
    drafts = (
        replace(a_note("k", "red"), repeats=waiting),
        replace(a_note("m", "pink"), repeats=other),
    )
    last = append(store, *drafts)

    rows = {row.sequence: row.vector for row in store.reader().vectors.after(0, 10)}

    assert rows == {
        other: vector_of("yellow"),
        last - 1: vector_of("red"),
        last: vector_of("pink"),
    }
    assert store.reader().vectors.pending(10) == [waiting]


def test_a_merge_and_a_commit_embed_nothing_that_has_a_vector(opened: Opener) -> None:
    words = CountingWords()
    store = opened(indexer=words)
    store.write(lambda t: t.vectors.change_embedder("hash-1"), TESTER)
    fork(store, "trial")
    append(store, a_note("k", "red"), a_happening("blue"), branch="trial")
    assert words.embedded == ["red", "blue"]

    def merge(transaction: Transaction) -> None:
        into, other = live(transaction, MAIN), live(transaction, "trial")
        carry_out(transaction, into, other, plan(transaction, into, other))

    store.write(merge, TESTER)
    begun = store.write(
        lambda t: open_transactions.begin(t, live(t, MAIN), token="a", ends_at=10**18), TESTER
    )
    append(store, a_note("m", "green"), branch=begun.name)
    store.write(lambda t: open_transactions.commit(t, begun), TESTER)

    vectors = sorted(row.vector for row in store.reader().vectors.after(0, 10))
    assert words.embedded == ["red", "blue", "green"]
    assert vectors == sorted(2 * [vector_of(text) for text in words.embedded])
    assert examine(store) == []
