"""What branches know of each other: the facts a merge is worked out from."""

from __future__ import annotations

import pytest

from stratagem.engine.lineage import Cut
from stratagem.errors import DatabaseCorrupt
from stratagem.storage.contract import Store
from tests.contracts.samples import (
    MAIN,
    NOTE_ERASED,
    TESTER,
    a_happening,
    a_note,
    an_erasure,
    append,
    create,
    fork,
    happenings,
    live,
    notes,
    rebuild,
)


def subject(store: Store, key: str) -> int:
    """Return the number of a note's subject, as the changes of its branch give it."""
    reader = store.reader()
    changed = reader.changes.subjects(Cut(live(reader, MAIN).id, 10**9), 0)
    return next(each for each, (_, name) in reader.records.names(changed).items() if name == key)


def test_a_branch_knows_itself_and_its_ancestors_up_to_the_fork(store: Store) -> None:
    main = live(store.reader(), MAIN)
    first = append(store, a_note("a"))
    parent = fork(store, "parent")
    second = append(store, a_note("a"), branch="parent")
    child = fork(store, "child", parent="parent", at=second - 1)

    known = store.reader().branches.knowledge(child.id, 99)

    assert known == {main.id: first, parent.id: second - 1, child.id: 99}


def test_an_empty_branch_knows_itself_only(store: Store) -> None:
    fresh = create(store, "fresh")

    assert store.reader().branches.knowledge(fresh.id, 5) == {fresh.id: 5}


def test_a_merge_is_known_from_its_sequence_on(store: Store) -> None:
    main = live(store.reader(), MAIN)
    other = create(store, "other")

    sequence = store.write(lambda t: t.branches.record_merge(main, other, {other.id: 2}), TESTER)
    reader = store.reader()
    before, after = (reader.branches.knowledge(main.id, at) for at in (sequence - 1, sequence))

    assert before == {main.id: sequence - 1}
    assert after == {main.id: sequence, other.id: 2}


def test_a_fork_knows_what_its_parent_had_merged_by_then(store: Store) -> None:
    main = live(store.reader(), MAIN)
    other = create(store, "other")
    early = fork(store, "early")
    merged = store.write(lambda t: t.branches.record_merge(main, other, {other.id: 2}), TESTER)
    late = fork(store, "late")
    old = fork(store, "old", at=merged - 1)

    reader = store.reader()

    assert other.id not in reader.branches.knowledge(early.id, 99)
    assert other.id not in reader.branches.knowledge(old.id, 99)
    assert reader.branches.knowledge(late.id, 99) == {main.id: merged, other.id: 2, late.id: 99}


def test_knowledge_is_the_same_after_a_rebuild(store: Store) -> None:
    main = live(store.reader(), MAIN)
    other = create(store, "other")
    store.write(lambda t: t.branches.record_merge(main, other, {other.id: 2, 77: 3}), TESTER)
    before = store.reader().branches.knowledge(main.id, 99)

    rebuild(store)

    assert store.reader().branches.knowledge(main.id, 99) == before


def test_changed_subjects_are_those_of_one_branch_between_two_sequences(store: Store) -> None:
    append(store, a_note("a"))
    start = append(store, a_note("b"))
    end = append(store, a_note("c"), an_erasure("a"), a_note("c"), a_happening("x"))
    append(store, a_note("late"))
    fork(store, "trial")
    append(store, a_note("elsewhere"), branch="trial")

    reader = store.reader()
    changed = reader.changes.subjects(Cut(live(reader, MAIN).id, end), start)

    assert sorted(key for _, key in reader.records.names(changed).values()) == ["a", "c"]


def test_compared_subjects_are_at_their_latest_versions_beside_those_of_another_view(
    store: Store,
) -> None:
    first = append(store, a_note("a"), a_note("b"), a_note("gone"))
    trial = fork(store, "trial")
    theirs = append(store, a_note("a", expires_at=5), an_erasure("gone"), branch="trial")
    start = append(store, a_note("before"))
    append(store, a_note("a"), a_note("new", expires_at=9), a_happening("x"))
    end = append(store, a_note("a"), an_erasure("b"), a_note("gone"))
    append(store, a_note("late"), a_note("a"))

    reader = store.reader()
    main, lineage = live(reader, MAIN).id, reader.branches.lineage(trial)
    rows = reader.changes.compared_subjects(Cut(main, end), start, lineage)
    names = reader.records.names([row[0] for row in rows])
    shown = reader.changes.shown_versions(lineage, list(names))

    assert {names[row[0]][1]: row[2:] for row in rows} == {
        "a": (end - 2, False, None, theirs - 1, False, 5),
        "b": (end - 1, True, None, first - 1, False, None),
        "gone": (end, False, None, theirs, True, None),
        "new": (end - 4, False, 9, None, None, None),
    }
    assert {names[number][1]: version for number, (_space, version) in shown.items()} == {
        "a": (theirs - 1, False, 5),
        "b": (first - 1, False, None),
        "gone": (theirs, True, None),
    }
    assert {space for space, _version in shown.values()} == {row[1] for row in rows}


def test_expired_subjects_are_those_that_end_between_two_times(store: Store) -> None:
    append(store, a_note("a", expires_at=5), a_note("b", expires_at=6), a_note("c"))
    append(store, a_note("a", expires_at=9), a_note("d", expires_at=10))

    reader = store.reader()
    found = [reader.changes.expired_subjects(*times) for times in ((5, 9), (4, 5), (9, 9))]

    keys = [[key for _space, key in reader.records.names(each).values()] for each in found]
    assert [sorted(each) for each in keys] == [["a", "b"], ["a"], []]
    last = [reader.changes.last_expiry(time) for time in (4, 5, 8, 9, 99)]
    assert last == [None, 5, 6, 9, 10]


def test_changed_events_carry_their_origin_and_what_they_say(store: Store) -> None:
    start = append(store, a_happening("before"), a_note("a"))
    one = append(store, a_happening("one"))
    two = append(store, a_happening("two", namespace="m", origin=2))

    reader = store.reader()
    main = live(reader, MAIN).id
    changed = reader.changes.stream_events(Cut(main, two), start)

    assert [each.sequence for each in changed] == [one, two]
    assert [each.origin for each in changed] == [None, 2]
    assert [each.space for each in changed] == [happenings(), happenings("m")]
    assert [each.payload for each in changed] == [b'{"text":"one"}', b'{"text":"two"}']
    assert {each.branch for each in changed} == {main}
    assert reader.log.branch_of(one) == main


def test_known_versions_are_the_newest_of_each_branch_that_is_known(store: Store) -> None:
    main = live(store.reader(), MAIN)
    first = append(store, a_note("a", "1"))
    second = append(store, an_erasure("a"))
    trial = fork(store, "trial")
    third = append(store, a_note("a", "3"), branch="trial")

    reader = store.reader()
    a = subject(store, "a")
    known = [
        reader.changes.known_versions([a], vector).get(a, [])
        for vector in (
            {main.id: 99, trial.id: 99},
            {main.id: first, trial.id: third - 1},
            {trial.id: 99},
            {},
        )
    ]

    assert [sorted(each) for each in known] == [
        [Cut(main.id, second), Cut(trial.id, third)],
        [Cut(main.id, first)],
        [Cut(trial.id, third)],
        [],
    ]


def test_the_newest_records_of_some_subjects_in_a_view(store: Store) -> None:
    append(store, a_note("a", "old"), a_note("b", "kept"), a_note("c", "gone"))
    numbers = [subject(store, key) for key in "abc"]
    fork(store, "trial")
    append(store, a_note("a", "new"), an_erasure("c"), branch="trial")

    reader = store.reader()
    records = reader.records.current_many(reader.branches.lineage(live(reader, "trial")), numbers)

    found = {record.key: record.version.payload for record in records.values()}
    assert found == {"a": b'{"text":"new"}', "b": b'{"text":"kept"}'}
    assert {record.space for record in records.values()} == {notes()}


def test_versions_are_read_by_their_sequence(store: Store) -> None:
    one = append(store, a_note("a", "1"))
    two = append(store, an_erasure("a"))

    versions = store.reader().log.versions([one, two])

    assert set(versions) == {one, two}
    assert versions[one].payload == b'{"text":"1"}'
    assert versions[two].kind == NOTE_ERASED
    with pytest.raises(DatabaseCorrupt, match="no event 99"):
        store.reader().log.versions([one, 99])


def test_payloads_are_read_by_sequence_for_the_records_they_are_about(store: Store) -> None:
    one = append(store, a_note("a", "1"), a_note("b", "2")) - 1
    names = {one: (notes(), "a"), one + 1: (notes(), "b")}

    assert store.reader().log.payloads(names) == {one: b'{"text":"1"}', one + 1: b'{"text":"2"}'}
    store.purge(TESTER, space=notes(), key="b", sequence=None)
    renamed = store.reader().records.keys([subject(store, "a") + 1])
    names[one + 1] = (notes(), next(iter(renamed.values())))
    assert store.reader().log.payloads(names)[one + 1] is None
    with pytest.raises(DatabaseCorrupt, match="no event 99"):
        store.reader().log.payloads({99: (notes(), "a")})


def test_a_payload_is_no_other_records(store: Store) -> None:
    one = append(store, a_note("a", "1"))

    with pytest.raises(DatabaseCorrupt, match="was altered"):
        store.reader().log.payloads({one: (notes(), "b")})


def test_the_keys_of_some_subjects(store: Store) -> None:
    append(store, a_note("a"), a_note("b", namespace="m"), a_note("c"))
    numbers = [subject(store, key) for key in "ab"]

    assert store.reader().records.keys(numbers) == dict(zip(numbers, "ab", strict=True))


def test_a_version_is_in_doubt_where_a_later_one_is_known_or_its_branch_does_not_count(
    store: Store,
) -> None:
    main = live(store.reader(), MAIN)
    first = append(store, a_note("a", "1"))
    trial = fork(store, "trial")
    second = append(store, a_note("a", "2"), branch="trial")

    changes = store.reader().changes
    everything = {main.id: 99, trial.id: 99}
    doubtful = [
        changes.doubtful_versions([first, second], known, covering)
        for known, covering in (
            (everything, everything),
            ({main.id: 99, trial.id: second - 1}, everything),
            (everything, {main.id: 99}),
            ({main.id: 99}, {main.id: 99, trial.id: second - 1}),
            ({}, {main.id: first - 1}),
        )
    ]

    assert doubtful == [{first}, set(), {first, second}, {second}, {first, second}]
