"""Erasure takes content out of the log and of everything made of it, for good."""

from __future__ import annotations

import pytest

from stratagem.engine.lineage import OPEN_END
from stratagem.errors import RequestReused, ValidationFailed
from stratagem.storage.contract import Store, Transaction, WriteRequest
from tests.contracts.conftest import Opener
from tests.contracts.samples import (
    MAIN,
    NOTE,
    TESTER,
    Words,
    a_happening,
    a_note,
    append,
    events,
    examine,
    fork,
    happenings,
    live,
    matching,
    notes,
    rebuild,
    text_of,
    view,
)


def purge_note(store: Store, key: str) -> int:
    return store.purge(TESTER, space=notes(), key=key, sequence=None).events


def purge_happening(store: Store, sequence: int) -> int:
    return store.purge(TESTER, space=happenings(), key=None, sequence=sequence).events


def test_a_purged_record_is_gone_from_every_view(store: Store) -> None:
    first = append(store, a_note("k", "secret"))
    fork(store, "trial")
    append(store, a_note("k", "secret too"), branch="trial")

    erased = purge_note(store, "k")

    assert erased == 2
    assert text_of(store, "k") is text_of(store, "k", "trial") is None
    assert text_of(store, "k", limit=first) is None
    assert matching(store, "secret") == matching(store, "secret", "trial") == []
    reader = store.reader()
    assert (
        reader.records.history(
            reader.branches.lineage(live(reader, "trial")), notes(), "k", before=OPEN_END, limit=9
        )
        == []
    )


def test_many_events_are_purged_at_once(store: Store) -> None:
    sequences = [append(store, a_happening(f"secret {number}")) for number in range(3)]
    kept = append(store, a_happening("plain"))

    erased = store.purge(
        TESTER, space=happenings(), key=None, sequence=None, sequences=sequences[:2]
    )

    assert erased.events == 2
    assert [event.payload is None for event in store.log() if event.sequence in sequences] == [
        True,
        True,
        False,
    ]
    assert next(event for event in store.log() if event.sequence == kept).payload is not None
    assert examine(store) == []


def test_a_purge_leaves_other_records_alone(store: Store) -> None:
    append(store, a_note("k", "secret"), a_note("other", "kept"))
    append(store, a_note("k", "also kept", namespace="m"))

    purge_note(store, "k")

    assert text_of(store, "other") == "kept"
    assert text_of(store, "k", namespace="m") == "also kept"
    with store.snapshot() as reader:
        assert reader.records.count(view(reader), NOTE) == 2


def test_the_chain_still_verifies_and_keeps_both_hashes(store: Store) -> None:
    sequence = append(store, a_note("k", "secret"))
    before = events(store)[sequence - 1]

    purge_note(store, "k")

    after = events(store)[sequence - 1]
    assert (after.payload, after.salt) == (None, None)
    assert (after.hash, after.content_hash) == (before.hash, before.content_hash)
    assert examine(store) == []


def test_the_key_is_erased_with_the_record_and_can_be_written_anew(store: Store) -> None:
    append(store, a_note("k", "secret"))
    purge_note(store, "k")
    keys = {event.key for event in store.log()}

    new = append(store, a_note("k", "fresh"))

    assert "k" not in keys
    assert text_of(store, "k") == "fresh"
    reader = store.reader()
    history = reader.records.history(
        reader.branches.lineage(live(reader, MAIN)), notes(), "k", before=OPEN_END, limit=9
    )
    assert [version.sequence for version in history] == [new]
    assert examine(store) == []


def test_a_purge_is_itself_in_the_log(store: Store) -> None:
    sequence = append(store, a_note("k", "secret"))

    purge_note(store, "k")

    last = events(store)[-1]
    assert last.kind == "ContentPurged"
    assert last.payload is not None
    assert str(sequence).encode() in last.payload
    assert last.actor == "tester"


def test_purging_what_is_not_there_writes_nothing(store: Store) -> None:
    append(store, a_note("k", "kept"))
    head = store.reader().log.head()

    erased = purge_note(store, "never")

    assert erased == 0
    assert store.reader().log.head() == head


def test_a_happening_is_purged_with_every_copy_that_merges_made(store: Store) -> None:
    original = append(store, a_happening("secret"))
    fork(store, "trial", at=1)
    copy = append(store, a_happening("secret", origin=original), branch="trial")

    erased = purge_happening(store, copy)

    assert erased == 2
    assert matching(store, "secret") == matching(store, "secret", "trial") == []
    assert examine(store) == []


def test_a_purged_happening_leaves_the_context_of_its_neighbours(store: Store) -> None:
    secret = append(store, a_happening("secret", session="s"))
    append(store, a_happening("next", session="s"))
    append(store, a_note("k", "note", session="s"))
    before = matching(store, "secret")

    purge_happening(store, secret)

    assert len(before) == 3
    assert matching(store, "secret") == []


def test_only_happenings_are_purged_by_sequence(store: Store) -> None:
    sequence = append(store, a_note("k", "kept"))

    for wrong in (sequence, 1, 999):
        with pytest.raises(ValidationFailed):
            purge_happening(store, wrong)

    assert text_of(store, "k") == "kept"


def test_remembered_results_that_may_quote_it_are_gone(store: Store) -> None:
    request = WriteRequest("ada", "r1", b"f")

    def work(transaction: Transaction) -> str:
        transaction.append(live(transaction, MAIN), [a_note("k", "secret")])
        return "secret"

    store.write(work, request)
    purge_note(store, "k")
    head = store.reader().log.head()

    with pytest.raises(RequestReused):
        store.write(work, request)

    assert store.reader().log.head() == head


def test_vectors_of_what_was_purged_are_gone(opened: Opener) -> None:
    store = opened(indexer=Words("hash-1"))
    store.write(lambda t: t.vectors.change_embedder("hash-1"), TESTER)
    append(store, a_note("k", "secret"), a_note("other", "kept"))
    generation = store.reader().settings.number("vector_generation")

    purge_note(store, "k")

    reader = store.reader()
    assert [row.sequence for row in reader.vectors.after(0, 9)] == [3]
    assert reader.settings.number("vector_generation") != generation
    assert examine(store) == []


def test_what_was_purged_stays_purged_after_a_rebuild(store: Store) -> None:
    append(store, a_note("k", "secret", tags=["t"]), a_happening("kept", session="s"))
    purge_note(store, "k")

    rebuild(store)

    assert matching(store, "secret") == []
    assert store.reader().search.tagged_versions(["t"]).tolist() == []
    assert text_of(store, "k") is None
    assert examine(store) == []


def test_the_log_can_grow_and_be_purged_again_after_a_purge(store: Store) -> None:
    append(store, a_note("a", "first secret"))
    purge_note(store, "a")
    append(store, a_note("b", "second secret"), a_note("a", "kept"))
    fork(store, "trial")

    purge_note(store, "b")

    assert matching(store, "secret") == []
    assert text_of(store, "a", "trial") == "kept"
    assert examine(store) == []


def test_what_records_of_calls_quote_is_purged_with_it(store: Store) -> None:
    secret = "the treasure lies under the old oak"
    append(store, a_note("map", secret))
    quoting = append(store, a_happening("call", quoted={"result": [f"it says: {secret}!"]}))
    naming = append(store, a_happening("call", quoted={"arguments": {"key": "map"}}))
    silent = append(store, a_happening("call", quoted={"result": "nothing"}))
    append(store, a_note("other", f"I know that {secret}"))

    erased = store.purge(TESTER, space=notes(), key="map", sequence=None)

    gone = {event.sequence for event in store.log() if event.payload is None}
    assert erased.events == 1
    assert erased.copies == {"happening": 2}
    assert erased.elsewhere == {"note": 1}
    assert {quoting, naming} <= gone
    assert silent not in gone
    assert text_of(store, "other") is not None
    assert examine(store) == []


def test_a_kept_result_that_quotes_it_is_purged_with_it(store: Store) -> None:
    append(store, a_note("map", "the treasure lies under the old oak"))
    asked = WriteRequest("tester", "r1", b"f")
    store.write(lambda _transaction: {"said": "the oak is old"}, WriteRequest("t", "r0", b"f"))
    store.write(lambda _transaction: {"said": "the treasure lies under the old oak"}, asked)

    erased = store.purge(TESTER, space=notes(), key="map", sequence=None)

    assert erased.results == 1
    with pytest.raises(RequestReused, match="purged since"):
        store.write(lambda _transaction: {}, asked)
    assert store.write(lambda _transaction: {}, WriteRequest("t", "r0", b"f")) == {
        "said": "the oak is old"
    }


def test_several_records_and_events_are_purged_at_once_with_what_quotes_them(store: Store) -> None:
    secret = "the treasure lies under the old oak"
    append(store, a_note("map", secret), a_note("key", "the key hangs behind the third door"))
    append(store, a_note("map", "a second version of the map"))
    told = append(store, a_happening("told"))
    quoting = append(store, a_happening("call", quoted={"result": f"it says: {secret}!"}))
    append(store, a_note("other", "something else"))

    erased = store.purge_records(TESTER, [(notes(), "map"), (notes(), "key")], [told])
    again = store.purge_records(TESTER, [(notes(), "map"), (notes(), "key")])

    gone = {event.sequence for event in store.log() if event.payload is None}
    assert erased.events == 4
    assert erased.copies == {"happening": 1}
    assert {told, quoting} <= gone
    assert again.events == 0
    assert text_of(store, "map") is None
    assert text_of(store, "other") == "something else"
    assert examine(store) == []
