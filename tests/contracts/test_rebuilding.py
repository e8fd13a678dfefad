"""Read models are functions of the log: a rebuild changes nothing that can be seen."""

from __future__ import annotations

from typing import Any

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
    examine,
    fork,
    happenings,
    live,
    matching,
    notes,
    rebuild,
    searching,
    view,
)


def a_history(store: Store) -> None:
    """Write a little of everything."""
    append(
        store, a_note("a", "red one", tags=["x"]), a_note("b", "blue", expires_at=START + SECOND)
    )
    append(store, a_happening("red dawn", session="s"), a_happening("blue dusk", session="s"))
    fork(store, "trial")
    append(store, a_note("a", "red two", tags=["x", "y"]), branch="trial")
    append(store, an_erasure("b"), a_note("c", "green", session="s"), branch="trial")
    create(store, "fresh")
    append(store, a_happening("red again", namespace="m", origin=4), branch="fresh")
    fork(store, "old", parent="trial", at=4)
    store.write(lambda t: t.branches.delete(live(t, "fresh")), TESTER)
    store.write(lambda t: t.branches.restore(_deleted(t)), TESTER)
    store.write(lambda t: t.branches.delete(live(t, "old")), TESTER)
    store.write(
        lambda t: [
            t.branches.record_merge(live(t, MAIN), live(t, "trial"), {5: 9}),
            t.append(live(t, MAIN), [a_note("a", "red three"), a_note("c", "green")])[0].sequence,
        ],
        TESTER,
    )
    append(store, a_note("a", "same"), a_note("a", "same transaction"), an_erasure("b"))


def _deleted(reader: Any) -> Any:
    return reader.branches.deleted_by_name("fresh")


def everything(store: Store) -> list[Any]:
    """Return all that the read models can be asked, in every view."""
    shown: list[Any] = []
    with searching(store) as reader:
        branches = reader.branches.all()
        shown += [
            branches,
            reader.branches.live_count(),
            reader.records.spaces(),
            reader.search.text_count(),
        ]
        moments = [*range(reader.log.head().sequence + 1), OPEN_END]
        for branch in (each for each in branches if each.deleted_sequence is None):
            for limit in moments:
                lineage = reader.branches.lineage(branch, limit)
                shown.append(reader.records.page(lineage, notes()))
                shown.append(reader.records.stream(lineage, happenings()))
                shown.append(
                    reader.records.history(lineage, notes(), "a", before=OPEN_END, limit=99)
                )
                shown.append(reader.branches.knowledge(branch.id, limit))
                for time in (START, START + SECOND):
                    seen = view(reader, branch.name, limit=limit, time=time)
                    shown.append([reader.records.count(seen, kind) for kind in (NOTE, HAPPENING)])
                    shown.append(sorted(reader.records.visible_among(seen, moments)))
        names = [branch.name for branch in branches if branch.deleted_sequence is None]
    for name in names:
        for word in ("red", "blue", "green", "dawn", "same", "a"):
            shown.append(matching(store, word, name))
            shown.append(matching(store, word, name, tags=["x"], time=START + SECOND))
    return shown


def test_a_rebuild_changes_nothing_that_can_be_seen(store: Store) -> None:
    a_history(store)
    before = everything(store)

    rebuild(store)

    assert everything(store) == before


def test_a_log_that_grew_is_found_whole(store: Store) -> None:
    a_history(store)

    assert examine(store) == []


def test_a_rebuilt_log_is_found_whole_and_can_grow(store: Store) -> None:
    a_history(store)
    rebuild(store)

    new = append(store, a_note("a", "after"), branch="trial")

    assert matching(store, "after", "trial") == [new]
    assert examine(store) == []


def test_a_rebuild_leaves_the_log_as_it_was(store: Store) -> None:
    a_history(store)
    before = list(store.log())

    rebuild(store)

    assert list(store.log()) == before


def test_a_transaction_of_many_pages_is_rebuilt_as_one(store: Store) -> None:
    append(store, a_note("first"))
    append(store, *(a_note(f"k{number:04}", "red") for number in range(1_700)), a_note("first"))
    append(store, *(a_happening(f"message {number}", session="s") for number in range(1_400)))

    found = examine(store)

    assert found == []


def test_progress_is_told(store: Store) -> None:
    a_history(store)
    told: list[tuple[int, int, str]] = []

    store.rebuild(lambda done, total, what: told.append((done, total, what)))

    head = store.reader().log.head().sequence
    assert told[-1][:2] == (head, head)


def test_the_expected_event_anchors_the_log(store: Store) -> None:
    a_history(store)
    head = store.reader().log.head()

    kept = examine(store, (head.sequence, head.hash.hex()))
    cut = examine(store, (head.sequence + 1, head.hash.hex()))
    rewritten = examine(store, (head.sequence, "00" * 32))

    assert kept == []
    assert [finding.repairable for finding in (*cut, *rewritten)] == [False, False]
    assert "cut short or rewritten" in cut[0].what
