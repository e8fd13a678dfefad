"""A damaged database: nothing wrong is read, doctor names the damage, and all but it is saved."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import stratagem
from stratagem.bootstrap import rescue
from stratagem.errors import DatabaseCorrupt, RequestReused, StratagemError
from stratagem.storage.contract import Finding
from tests.faults.bitflips import (
    Row,
    campaign,
    contents,
    examine,
    make_database,
    read_values,
    repair,
    try_flip,
    used_bytes,
)
from tests.faults.processes import Voice, child

ENTRIES = 40


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_database(tmp_path_factory.mktemp("pristine"), ENTRIES)


@pytest.fixture
def path(pristine: Path, tmp_path: Path) -> Path:
    """Return a database that a test may harm."""
    return Path(shutil.copy(pristine, tmp_path / "memory.db"))


def tamper(path: Path, statement: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(statement)


def page_of(path: Path, name: str, kind: str = "leaf") -> int:
    """Return a page of a table or an index."""
    with closing(apsw.Connection(str(path))) as connection:
        query = "SELECT min(pageno) FROM dbstat WHERE name = ? AND pagetype = ?"
        return int(connection.execute(query, (name, kind)).fetchone()[0])  # type: ignore[index]


def overwrite_page(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(os.urandom(4096))


READS: dict[str, Callable[[stratagem.Stratagem], object]] = {
    "recall": lambda db: db.memory.recall("key 3"),
    "history": lambda db: db.memory.history("key 3"),
    "search": lambda db: db.memory.search("key 3", k=50),
    "rebuild": lambda db: db.runtime.foundation.store.rebuild(lambda *_: None),
}
# A value that was never written, one without its field, and one that is not JSON.
PAYLOADS = ('{"value":"forged"}', "{}", "{")


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_an_altered_value_is_never_read_as_if_it_were_right(
    path: Path, read: Callable[[stratagem.Stratagem], object], payload: str
) -> None:
    where = "WHERE subject = (SELECT id FROM subjects WHERE key = 'key 3')"
    tamper(path, f"UPDATE events SET payload = CAST('{payload}' AS BLOB) {where}")  # noqa: S608

    with (
        stratagem.open(str(path), embedder="none") as db,
        pytest.raises(DatabaseCorrupt) as refused,
    ):
        read(db)

    assert refused.value.details["sequence"]
    assert "stratagem doctor" in refused.value.hint


@pytest.mark.parametrize("column", ["payload", "salt", "content_hash"])
def test_a_value_that_is_altered_after_diffs_is_not_shown_by_the_next(
    path: Path, column: str
) -> None:
    with stratagem.open(str(path), embedder="none") as db:
        db.memory.fork("edited")
        db.memory.store("key 3", "another", branch="edited")
        shown = [db.memory.diff("edited").results for _ in range(3)][-1]
        tamper(path, f"UPDATE events SET {column} = CAST({column} || ' ' AS BLOB) WHERE seq > 1")  # noqa: S608

        with pytest.raises(DatabaseCorrupt) as refused:
            db.memory.diff("edited")

    assert [change.after for change in shown] == ["another"]
    assert "was altered" in str(refused.value)


def test_an_altered_result_is_not_given_to_whoever_repeats_the_request(path: Path) -> None:
    tamper(path, "UPDATE requests SET result = CAST('{}' AS BLOB) WHERE request = 'r3'")

    with stratagem.open(str(path), embedder="none") as db, pytest.raises(StratagemError) as said:
        db.memory.store("key 3", "whatever it was", request_id="r3")

    assert isinstance(said.value, DatabaseCorrupt | RequestReused)
    assert [each.part for each in examine(path)] == ["derived"]


FLIPPED = (
    "sqlite_autoindex_subjects_1",
    "vectors",
    "texts_docsize",
    "settings",
    "spaces",
    "subjects",
)


@pytest.mark.parametrize("name", FLIPPED)
def test_a_flipped_bit_outside_of_the_log_is_found_and_mended(path: Path, name: str) -> None:
    right, whole = read_values(path, ENTRIES), contents(path)
    places = used_bytes(path)[name]
    data = bytearray(path.read_bytes())
    # In the middle of a page: not in its header.
    data[sorted(places)[-5]] ^= 1
    path.write_bytes(data)
    row = Row(name)

    try_flip(path, row, right, whole, name)

    assert row.wrong == []
    assert row.counts["mended"] == 1


def test_a_key_that_a_damaged_index_hides_is_found_and_brought_back(path: Path) -> None:
    overwrite_page(path, page_of(path, "sqlite_autoindex_subjects_1"))

    found = examine(path)
    repair(path)

    assert all(each.repairable for each in found)
    assert any("index sqlite_autoindex_subjects_1 of subjects" in each.where for each in found)
    assert len(read_values(path, ENTRIES)) == ENTRIES
    assert examine(path) == []


def test_a_database_without_readable_settings_is_mended(path: Path) -> None:
    overwrite_page(path, page_of(path, "settings"))

    found = examine(path)
    repair(path)

    assert all(each.repairable for each in found)
    assert len(read_values(path, ENTRIES)) == ENTRIES
    assert examine(path) == []


def test_events_below_a_bad_page_of_the_tree_are_all_there(path: Path) -> None:
    overwrite_page(path, page_of(path, "events", "internal"))

    found = examine(path)
    repair(path)

    assert all(each.repairable for each in found)
    assert any(each.part == "file" for each in found)
    assert len(read_values(path, ENTRIES)) == ENTRIES


@pytest.mark.parametrize("name", ["events", "sqlite_schema"])
def test_around_a_bad_page_everything_else_is_rescued(
    path: Path, tmp_path: Path, name: str
) -> None:
    right = read_values(path, ENTRIES)
    kind = "leaf" if name == "events" else "internal"
    overwrite_page(path, 1 if name == "sqlite_schema" else page_of(path, name, kind))

    rescued = rescue(str(path), str(tmp_path / "new.db"), lambda *_: None)
    saved = read_values(tmp_path / "new.db", ENTRIES)

    assert examine(tmp_path / "new.db") == []
    assert all(right[key] == value for key, value in saved.items())
    missing = {loss.key for loss in rescued.losses if loss.key}
    assert set(right) - set(saved) <= missing
    assert len(saved) >= ENTRIES - len(missing)
    if name == "sqlite_schema":
        assert len(saved) == ENTRIES


def test_what_is_lost_is_named_by_doctor(path: Path) -> None:
    overwrite_page(path, page_of(path, "events"))

    found: list[Finding] = [each for each in examine(path) if each.part == "log"]

    assert found
    assert not any(each.repairable for each in found)
    assert "key" in found[0].what
    assert found[0].where.startswith("event")


def cut_while_mapped(tell: Voice, path: str) -> None:
    with stratagem.open(path) as db:
        before = [hit.key for hit in db.memory.search("river valley")]
        for size in (0, 5_000):
            os.truncate(f"{path}-vectors", size)
            tell(before == [hit.key for hit in db.memory.search("river valley")])


def test_a_file_of_vectors_that_is_cut_while_it_is_mapped_does_not_end_the_process(
    path: Path,
) -> None:
    with child(cut_while_mapped, str(path)) as process:
        assert list(process.hear_rest()) == [True, True]
        process.process.join()
        assert process.process.exitcode != -signal.SIGBUS


READING = """
import sys, stratagem
with stratagem.open(sys.argv[1], read_only=True) as db:
    assert db.memory.recall("key 3") is not None
    assert db.memory.search("river valley")
    assert db.runtime.foundation.store.examine(lambda *_: None, None) == []
print("all was read")
"""


def test_a_database_on_a_read_only_medium_is_recalled_searched_and_examined(path: Path) -> None:
    folder, before = path.parent, path.read_bytes()
    mount = f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}"
    script = f'{mount} && ! touch {folder}/x 2>/dev/null && exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", sys.executable, "-c", READING, str(path)]
    allowed = ["unshare", "-rm", "sh", "-c", mount]
    if not shutil.which("unshare") or subprocess.run(allowed, check=False).returncode:
        pytest.skip("this machine lets nobody mount anything in a namespace of their own")

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.stdout == "all was read\n", done.stderr
    assert path.read_bytes() == before
    assert [each.name for each in folder.iterdir()] == [path.name]


def test_a_frozen_database_that_somebody_writes_to_is_read_no_further(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda _path, mode: mode == os.R_OK)
    with stratagem.open(str(path), read_only=True, embedder="none") as db:
        assert db.memory.recall("key 3") is not None

        os.utime(path, ns=(1, 1))

        with pytest.raises(StratagemError, match="wrote to the database"):
            db.memory.recall("key 3")


@pytest.mark.slow
def test_every_flip_of_a_bit_in_use_is_found_and_mended_or_rescued(
    tmp_path: Path, seed: int
) -> None:
    rows = campaign(tmp_path, 3, seed)

    assert [line for row in rows for line in row.wrong] == []
    assert all(row.saved_least >= 300 for row in rows)
