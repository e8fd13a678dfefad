"""Branches are named lines of events; deleting one hides it and breaks nothing."""

from __future__ import annotations

from stratagem.engine.lineage import Branch
from stratagem.storage.contract import Reader, Store
from tests.contracts.samples import (
    MAIN,
    TESTER,
    a_happening,
    a_note,
    append,
    create,
    fork,
    live,
    notes,
    text_of,
)


def test_a_branch_is_found_by_its_name_and_by_its_id(store: Store) -> None:
    made = fork(store, "trial")

    reader = store.reader()

    assert reader.branches.by_name("trial") == reader.branches.by_id(made.id) == made
    assert reader.branches.by_name("Trial") is None
    assert (made.parent, made.fork_sequence) == (live(reader, MAIN).id, made.id - 1)


def test_branches_are_listed_oldest_first_with_the_deleted(store: Store) -> None:
    fork(store, "b")
    create(store, "a")
    _delete(store, "b")

    reader = store.reader()

    assert [branch.name for branch in reader.branches.all()] == [MAIN, "b", "a"]
    assert [branch.deleted_sequence is None for branch in reader.branches.all()] == [
        True,
        False,
        True,
    ]
    assert reader.branches.live_count() == 2


def test_a_deleted_branch_has_no_name_until_it_is_restored(store: Store) -> None:
    append(store, a_note("a", "kept"))
    fork(store, "trial")
    append(store, a_note("a", "changed"), branch="trial")

    _delete(store, "trial")
    gone = store.reader().branches.by_name("trial")
    _restore(store, "trial")

    assert gone is None
    assert text_of(store, "a", "trial") == "changed"


def test_children_of_a_deleted_branch_keep_what_they_borrowed(store: Store) -> None:
    fork(store, "parent")
    append(store, a_note("a", "borrowed"), branch="parent")
    fork(store, "child", parent="parent")

    _delete(store, "parent")

    assert text_of(store, "a", "child") == "borrowed"


def test_the_name_of_a_deleted_branch_is_free_and_the_last_one_is_found(store: Store) -> None:
    first = create(store, "trial")
    _delete(store, "trial")
    second = create(store, "trial")
    append(store, a_note("a", "second"), branch="trial")
    _delete(store, "trial")

    reader = store.reader()
    last = reader.branches.deleted_by_name("trial")
    never = reader.branches.deleted_by_name("never")

    assert first.id != second.id
    assert last is not None
    assert last.id == second.id
    assert never is None


def test_a_record_of_a_branch_that_is_not_live_is_not_recalled(store: Store) -> None:
    append(store, a_note("a", "here"))
    fork(store, "trial")
    lineage = store.reader().branches.lineage(live(store.reader(), "trial"))

    before = store.reader().records.current(lineage, notes(), "a")
    _delete(store, "trial")
    after = store.reader().records.current(lineage, notes(), "a")

    assert before is not None
    assert after is None


def test_a_branch_can_be_made_and_written_in_one_transaction(store: Store) -> None:
    append(store, a_note("a", "old"))

    store.write(
        lambda t: t.append(
            t.branches.create("trial", parent=live(t, MAIN), fork_sequence=t.log.head().sequence),
            [a_note("a", "new"), a_happening("then")],
        ),
        TESTER,
    )

    assert (text_of(store, "a"), text_of(store, "a", "trial")) == ("old", "new")


def _delete(store: Store, name: str) -> None:
    store.write(lambda t: t.branches.delete(live(t, name)), TESTER)


def _restore(store: Store, name: str) -> None:
    store.write(lambda t: t.branches.restore(_deleted(t, name)), TESTER)


def _deleted(reader: Reader, name: str) -> Branch:
    branch = reader.branches.deleted_by_name(name)
    assert branch is not None
    return branch
