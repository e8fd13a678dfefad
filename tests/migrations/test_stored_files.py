"""A database file of each format opens today, whole and with all that was in it."""

from __future__ import annotations

import gzip
from pathlib import Path

import apsw
import pytest

import stratagem
from stratagem import limits
from stratagem.errors import DatabaseTooNew, StorageUnavailable
from stratagem.memory import kinds
from stratagem.search import analysis
from stratagem.storage.sqlite.connection import add_functions
from stratagem.storage.sqlite.format import VERSION
from stratagem.storage.sqlite.statements import SQL

FOLDER = Path(__file__).parent
FORMATS = list(range(1, VERSION + 1))


@pytest.fixture(params=FORMATS, ids=lambda number: f"format {number}")
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the stored file of one format."""
    stored = FOLDER / f"format_{request.param}.db.gz"
    unpacked = tmp_path / "stored.db"
    unpacked.write_bytes(gzip.decompress(stored.read_bytes()))
    return unpacked


def change(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


def make_read_models_older(path: Path) -> None:
    """Have a file say that its read models are of an older version, as a file of that one would."""
    connection = apsw.Connection(str(path))
    add_functions(connection)
    connection.execute("UPDATE settings SET value = 0 WHERE name = 'read_models_version'")
    if connection.execute(SQL["setting"], ("seal",)).fetchone() is not None:
        connection.execute(SQL["seal_settings"])
    connection.close()


def assert_all_is_there(db: stratagem.Stratagem) -> None:
    memory = db.memory
    city = memory.recall("city")
    assert city is not None
    assert city.value == {"name": "Stavanger", "by": "a fjord"}
    assert city.tags == ["norway", "rain"]
    old = memory.recall("city", as_of="@2")
    assert old is not None
    assert old.value["name"] == "Oslo"
    idea = memory.recall("idea", branch="trial")
    assert idea is not None
    assert idea.value == ["a", 1.5, None]
    assert memory.recall("brief") is None
    assert memory.recall("counter", namespace="other") is None
    assert memory.recall("secret") is None
    assert [hit.event for hit in memory.search("lighthouse")] == ["ask", "answer"]
    assert [each.name for each in memory.branches()] == ["default", "trial", "fresh"]
    assert len(list(memory.history("city"))) == 3
    status = memory.status()
    assert (status.keys, status.events) == (3, 3)


def test_a_stored_file_opens_with_all_that_was_in_it(path: Path) -> None:
    with stratagem.open(str(path), embedder="none") as db:
        assert_all_is_there(db)


def test_a_stored_file_loses_the_index_of_times_and_still_finds_moments(path: Path) -> None:
    with stratagem.open(str(path), embedder="none") as db:
        times = [version.timestamp for version in db.memory.history("city")]
        shown = [db.memory.recall("city", as_of=time) for time in times]

    connection = apsw.Connection(str(path))
    objects = {row[1] for row in connection.execute(SQL["objects"])}
    connection.close()
    assert [entry and entry.timestamp for entry in shown] == times
    assert "events_ahead" in objects
    assert "events_at" not in objects


def test_a_stored_file_without_the_index_of_times_is_opened(path: Path) -> None:
    change(path, "DROP INDEX IF EXISTS events_at")

    with stratagem.open(str(path), embedder="none") as db:
        assert_all_is_there(db)


def test_a_stored_file_is_whole(path: Path) -> None:
    with stratagem.open(str(path), embedder="none") as db:
        assert db.runtime.foundation.store.examine(lambda *_: None, None) == []


def test_a_stored_file_can_be_written_to_and_remembers_its_requests(path: Path) -> None:
    with stratagem.open(str(path), embedder="none", actor="maker") as db:
        head = db.memory.status().head
        again = db.memory.store("idea", ["a", 1.5, None], branch="trial", request_id="r1")
        unmoved = db.memory.status().head
        db.memory.store("new", 1)
        db.memory.restore("old")

        assert unmoved == head
        assert again.status == "created"
        assert db.runtime.foundation.store.examine(lambda *_: None, None) == []


def test_a_stored_file_opens_for_reading(path: Path) -> None:
    with stratagem.open(str(path), embedder="none"):
        pass

    with stratagem.open(str(path), embedder="none", read_only=True) as db:
        assert_all_is_there(db)


def test_read_models_of_an_older_version_are_made_anew(path: Path) -> None:
    make_read_models_older(path)
    change(path, "DELETE FROM tallies")

    with stratagem.open(str(path), embedder="none") as db:
        assert_all_is_there(db)
        assert db.runtime.foundation.store.examine(lambda *_: None, None) == []


def test_messages_of_an_older_version_get_their_vectors_anew(tmp_path: Path) -> None:
    path = tmp_path / "messages.db"
    with stratagem.open(str(path)) as db:
        db.memory.log("message", {"role": "user", "content": "I moved to Bergen"})
        db.memory.log("note", "The harbour is closed")
        db.memory.store("city", "Oslo")
        assert db.memory.search("harbour")
    make_read_models_older(path)

    with stratagem.open(str(path), embedder="none") as db:
        reader = db.runtime.foundation.store.reader()
        assert reader.vectors.pending(10) == [2]
        assert reader.vectors.count() == 2

    with stratagem.open(str(path)) as db:
        said = {"role": "user", "content": "I moved to Bergen"}
        assert said in [hit.value for hit in db.memory.search("where do I live?")]


def test_a_text_that_an_older_version_cut_is_found_by_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.db"
    with monkeypatch.context() as older:
        older.setattr(limits, "SEARCHED_CHARS_MAX", limits.INDEXED_CHARS_MAX)
        with stratagem.open(str(path), embedder="none") as db:
            db.memory.store("book", "page " * 40_000 + "lighthouse")
            assert not db.memory.search("lighthouse")
    make_read_models_older(path)

    with stratagem.open(str(path), embedder="none") as db:
        assert [hit.key for hit in db.memory.search("lighthouse")] == ["book"]
        assert db.runtime.foundation.store.examine(lambda *_: None, None) == []


def test_instructions_that_an_older_version_missed_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "orders.db"
    with monkeypatch.context() as older:
        older.setattr(kinds, "is_standing", lambda _text, _role=None: False)
        with stratagem.open(str(path), embedder="none") as db:
            db.memory.log("message", {"role": "user", "text": "Always squash commits"})
            assert db.memory.instructions() == []
    make_read_models_older(path)

    with stratagem.open(str(path), embedder="none") as db:
        assert [each.text for each in db.memory.instructions()] == ["Always squash commits"]


def test_a_number_in_groups_that_an_older_version_parted_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "numbers.db"
    with monkeypatch.context() as older:
        older.setattr(analysis, "may_have_spaced_code", lambda _text: False)
        with stratagem.open(str(path), embedder="none") as db:
            # The terms of a shorter text are remembered.
            db.memory.store("anna", f"+47 22 33 44 55 {'number ' * 100}")
            assert not db.memory.search("+4722334455")
    make_read_models_older(path)

    with stratagem.open(str(path), embedder="none") as db:
        assert db.memory.search("+4722334455")


def test_read_models_of_an_older_version_are_not_read(path: Path) -> None:
    make_read_models_older(path)

    with pytest.raises(StorageUnavailable) as refused:
        stratagem.open(str(path), embedder="none", read_only=True)

    assert "for writing" in refused.value.hint


def test_a_file_of_a_later_format_is_refused_and_left_alone(path: Path) -> None:
    change(path, f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()

    for read_only in (False, True):
        with pytest.raises(DatabaseTooNew) as refused:
            stratagem.open(str(path), embedder="none", read_only=read_only)
        assert refused.value.details["format"] == VERSION + 1
        assert refused.value.details["supported"] == VERSION

    assert path.read_bytes() == before


def test_every_format_has_its_stored_file_and_none_is_large() -> None:
    stored = sorted(FOLDER.glob("format_*.db.gz"))

    assert [path.name for path in stored] == [f"format_{number}.db.gz" for number in FORMATS]
    assert all(path.stat().st_size < 100_000 for path in stored)
