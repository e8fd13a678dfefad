"""Whatever is altered in a database file behind Stratagem's back, `examine` finds."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from stratagem.errors import DatabaseCorrupt
from stratagem.storage.contract import Finding
from tests.contracts.backends import open_sqlite_file
from tests.contracts.samples import (
    MAIN,
    TESTER,
    Clock,
    Words,
    a_happening,
    a_note,
    an_erasure,
    append,
    create,
    examine,
    fork,
    live,
    notes,
    rebuild,
)
from tests.properties.seeding import seeded

FLIPS = 60


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a closed database file that has a little of everything in it."""
    folder = tmp_path_factory.mktemp("pristine")
    store = open_sqlite_file(folder, Clock(), indexer=Words("hash-1"))
    store.write(lambda t: t.vectors.change_embedder("hash-1"), TESTER)
    append(store, a_note("a", "red one", tags=["x"]), a_note("b", "blue two"))
    append(store, a_note("gone", "to be purged"), a_happening("three", session="s"))
    fork(store, "trial")
    append(store, a_note("a", "red four"), an_erasure("b"), branch="trial")
    append(store, a_happening("five", session="s"), branch="trial")
    create(store, "fresh")
    store.write(
        lambda t: t.branches.record_merge(
            live(t, MAIN), live(t, "trial"), {live(t, "trial").id: 9}
        ),
        TESTER,
    )
    append(store, a_note("a", "red six"))
    store.purge(TESTER, space=notes(), key="gone", sequence=None)
    append(store, a_note("c", "seven"))
    store.close()
    return folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    """A copy of the file that a test may harm."""
    shutil.copy(pristine / "log.db", tmp_path / "log.db")
    return tmp_path


def tamper(folder: Path, *statements: str) -> None:
    connection = apsw.Connection(str(folder / "log.db"))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def findings(folder: Path, expect: tuple[int, str] | None = None) -> list[Finding]:
    store = open_sqlite_file(folder, Clock(), indexer=Words("hash-1"))
    try:
        return examine(store, expect)
    finally:
        store.close()


def test_an_untouched_file_is_found_whole(folder: Path) -> None:
    assert findings(folder) == []


LOG_HARM = {
    "an altered payload": 'UPDATE events SET payload = CAST(\'{"text":"x"}\' AS BLOB) WHERE seq = 2',
    "an altered payload of the last event": "UPDATE events SET payload = x'7b7d' WHERE seq = "
    "(SELECT max(seq) FROM events)",
    "a payload taken away": "UPDATE events SET payload = NULL, salt = NULL WHERE seq = 2",
    "a payload put back": "UPDATE events SET payload = CAST('{}' AS BLOB) WHERE seq = 4",
    "an altered salt": "UPDATE events SET salt = zeroblob(16) WHERE seq = 2",
    "a salt taken away": "UPDATE events SET salt = NULL WHERE seq = 2",
    "an altered key": "UPDATE subjects SET key = 'forged' WHERE key = 'a'",
    "an altered namespace": "UPDATE spaces SET namespace = 'forged' WHERE kind = 'note'",
    "an altered kind of record": "UPDATE spaces SET kind = 'forged' WHERE kind = 'note'",
    "another subject": "UPDATE events SET subject = (SELECT id FROM subjects WHERE key = 'b') "
    "WHERE seq = 2",
    "no subject": "UPDATE events SET subject = NULL WHERE seq = 2",
    "another space": "UPDATE events SET space = 2 WHERE seq = 2",
    "another branch": "UPDATE events SET branch = 6 WHERE seq = 2",
    "another kind of event": "UPDATE events SET kind = 'NoteErased' WHERE seq = 2",
    "another actor": "UPDATE events SET actor = 'mallory' WHERE seq = 2",
    "another request": "UPDATE events SET request = 'r' WHERE seq = 2",
    "another origin": "UPDATE events SET origin = 1 WHERE seq = 5",
    "another time": "UPDATE events SET at = at + 1 WHERE seq = 2",
    "another wall clock": "UPDATE events SET wall = wall + 1 WHERE seq = 2",
    "an altered content hash": "UPDATE events SET content_hash = zeroblob(32) WHERE seq = 2",
    "an altered hash": "UPDATE events SET hash = zeroblob(32) WHERE seq = 2",
    "a hash of another length": "UPDATE events SET hash = x'' WHERE seq = 2",
    "an altered purge": "UPDATE events SET payload = CAST('{\"sequences\":[]}' AS BLOB) "
    "WHERE kind = 'ContentPurged'",
    "a purge that is not JSON": "UPDATE events SET payload = x'78' WHERE kind = 'ContentPurged'",
    "a purge without its list": "UPDATE events SET payload = x'5b5d' WHERE kind = 'ContentPurged'",
    "a removed event": "DELETE FROM events WHERE seq = 5",
    "a removed first event": "DELETE FROM events WHERE seq = 1",
    "an inserted event": "INSERT INTO events SELECT seq + 1000, at, wall, branch, kind, space, "
    "subject, actor, request, origin, payload, salt, content_hash, hash FROM events WHERE seq = 2",
}


@pytest.mark.parametrize("harm", LOG_HARM.values(), ids=LOG_HARM)
def test_harm_to_the_log_is_found_and_cannot_be_mended(folder: Path, harm: str) -> None:
    tamper(folder, harm)

    found = findings(folder)

    assert found
    assert not any(finding.repairable for finding in found)


def test_reordered_events_are_found(folder: Path) -> None:
    tamper(
        folder,
        "UPDATE events SET seq = -2 WHERE seq = 2",
        "UPDATE events SET seq = 2 WHERE seq = 3",
        "UPDATE events SET seq = 3 WHERE seq = -2",
    )

    assert findings(folder)


def test_events_that_changed_their_places_and_times_are_found(folder: Path) -> None:
    tamper(
        folder,
        "CREATE TEMP TABLE kept AS SELECT seq, at FROM events",
        "UPDATE events SET seq = -seq WHERE seq IN (2, 7)",
        "UPDATE events SET seq = 9 + seq WHERE seq IN (-2, -7)",
        "UPDATE events SET at = (SELECT at FROM kept WHERE kept.seq = events.seq)",
    )

    assert findings(folder)


def test_a_cut_tail_is_found_by_what_is_left_of_it_or_by_the_expected_event(folder: Path) -> None:
    store = open_sqlite_file(folder, Clock())
    head = store.reader().log.head()
    store.close()
    tamper(folder, "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)")

    left = findings(folder)
    store = open_sqlite_file(folder, Clock(), indexer=Words("hash-1"))
    rebuild(store)
    store.close()
    mended = findings(folder)
    anchored = findings(folder, (head.sequence, head.hash.hex()))

    assert left
    assert mended == []
    assert [finding.repairable for finding in anchored] == [False]


READ_MODEL_HARM = {
    "a branch renamed": "UPDATE branches SET name = 'forged' WHERE name = 'trial'",
    "a branch forked elsewhere": "UPDATE branches SET fork_seq = 1 WHERE name = 'trial'",
    "a branch removed": "DELETE FROM branches WHERE name = 'fresh'",
    "a branch deleted": "UPDATE branches SET deleted_seq = 3 WHERE name = 'fresh'",
    "a version hidden": "UPDATE versions SET deleted = 1 WHERE seq = 2",
    "a version superseded": "UPDATE versions SET seq_to = 5 WHERE seq = 3",
    "a version removed": "DELETE FROM versions WHERE seq = 2",
    "a version of another branch": "UPDATE versions SET branch = 1 WHERE seq = 7",
    "a version that expires": "UPDATE versions SET expires_at = 1 WHERE seq = 2",
    "a tally altered": "UPDATE tallies SET live = live + 1 WHERE seq = 3",
    "a tally removed": "DELETE FROM tallies WHERE seq = 3",
    "knowledge altered": "UPDATE knows SET vector = '{}'",
    "a tag added": "INSERT INTO tags VALUES ('forged', 3)",
    "a tag removed": "DELETE FROM tags",
    "a turn removed": "DELETE FROM turns WHERE seq = (SELECT min(seq) FROM turns)",
    "a text removed": "DELETE FROM texts WHERE rowid >> 8 = 2",
    "a text added": "INSERT INTO texts (rowid, title, body, context) VALUES (256, '', 'forged', "
    "'')",
    "a vector removed": "DELETE FROM vectors WHERE seq = 2",
    "a vector of nothing": "INSERT INTO vectors (seq, vector) VALUES (1, zeroblob(32))",
}


@pytest.mark.parametrize("harm", READ_MODEL_HARM.values(), ids=READ_MODEL_HARM)
def test_harm_to_a_read_model_is_found_and_a_rebuild_mends_it(folder: Path, harm: str) -> None:
    tamper(folder, harm)

    found = findings(folder)
    store = open_sqlite_file(folder, Clock(), indexer=Words("hash-1"))
    rebuild(store)
    store.close()

    assert found
    assert all(finding.repairable for finding in found)
    assert all(finding.what and finding.where for finding in found)
    assert findings(folder) == []


def test_a_text_whose_words_were_altered_is_found(folder: Path) -> None:
    tamper(
        folder,
        "DELETE FROM texts WHERE rowid >> 8 = 2",
        "INSERT INTO texts (rowid, title, body, context) VALUES (2, 'a', 'forged', '')",
    )

    assert {finding.repairable for finding in findings(folder)} == {True}


def _places(file: bytes, connection: apsw.Connection) -> list[int]:
    """Return where in the file the bytes of every payload, salt and hash of an event lie."""
    places: list[int] = []
    for columns in connection.execute("SELECT payload, salt, content_hash, hash FROM events"):
        row = b"".join(bytes(column) for column in columns if column is not None)
        begin = file.find(row)
        assert begin >= 0, "an event's columns lie one after the other"
        places += range(begin, begin + len(row))
    return places


def test_every_one_byte_flip_in_an_events_content_or_hashes_is_found(pristine: Path) -> None:
    path = pristine / "log.db"
    whole = path.read_bytes()
    connection = apsw.Connection(str(path))
    places = _places(whole, connection)
    connection.close()
    missed: list[tuple[int, int]] = []

    with seeded() as seed:
        generator = random.Random(seed)
        try:
            for _ in range(FLIPS):
                place, bit = generator.choice(places), 1 << generator.randrange(8)
                harmed = bytearray(whole)
                harmed[place] ^= bit
                path.write_bytes(harmed)
                if not findings(pristine):
                    missed.append((place, bit))
        finally:
            path.write_bytes(whole)

        assert missed == []


def test_examining_a_file_does_not_change_it(folder: Path) -> None:
    store = open_sqlite_file(folder, Clock(), indexer=Words("hash-1"))
    before = list(store.log())

    examine(store)

    assert list(store.log()) == before
    store.close()


HARM_TO_REFUSE: dict[str, Callable[[Path], object]] = {
    "an empty header": lambda path: path.write_bytes(bytes(100) + path.read_bytes()[100:]),
    "no database at all": lambda path: path.write_text("Dear diary, " * 100),
}


@pytest.mark.parametrize("harm", HARM_TO_REFUSE.values(), ids=HARM_TO_REFUSE)
def test_a_file_that_is_no_database_is_refused_in_words(
    folder: Path, harm: Callable[[Path], object]
) -> None:
    harm(folder / "log.db")

    with pytest.raises(DatabaseCorrupt) as refused:
        open_sqlite_file(folder, Clock())

    assert refused.value.details["path"] == str(folder / "log.db")
