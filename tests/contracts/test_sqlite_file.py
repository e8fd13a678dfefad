"""The SQLite file itself: which ones are opened, what is left in them, and how many hold them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import stratagem
from stratagem.errors import (
    BranchNotFound,
    DatabaseCorrupt,
    DatabaseTooNew,
    ReadOnly,
    StorageBusy,
    StorageUnavailable,
)
from stratagem.storage.contract import WriteRequest
from stratagem.storage.sqlite import maintenance
from tests.contracts.backends import open_sqlite_file
from tests.contracts.samples import (
    MAIN,
    TESTER,
    Clock,
    a_happening,
    a_note,
    an_erasure,
    append,
    examine,
    fork,
    happenings,
    live,
    matching,
    notes,
    text_of,
)

SECRET = "xyzzyplugh"


def raw_bytes(folder: Path) -> bytes:
    """Return every byte of every file in a folder."""
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file())


def test_a_file_of_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    open_sqlite_file(tmp_path, Clock()).close()
    _pragma(tmp_path / "log.db", "user_version", 999)
    before = (tmp_path / "log.db").read_bytes()

    with pytest.raises(DatabaseTooNew) as refused:
        open_sqlite_file(tmp_path, Clock())

    assert refused.value.details["format"] == 999
    assert refused.value.hint
    assert (tmp_path / "log.db").read_bytes() == before


def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "log.db"))
    connection.execute("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")
    connection.close()
    before = (tmp_path / "log.db").read_bytes()

    with pytest.raises(DatabaseCorrupt) as refused:
        open_sqlite_file(tmp_path, Clock())

    assert "not one of Stratagem's" in refused.value.message
    assert (tmp_path / "log.db").read_bytes() == before


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "log.db").touch()

    with closing(open_sqlite_file(tmp_path, Clock())) as store:
        append(store, a_note("a", "here"))

        assert text_of(store, "a") == "here"


def test_a_file_can_be_opened_again_and_again(tmp_path: Path) -> None:
    for number in range(5):
        with closing(open_sqlite_file(tmp_path, Clock())) as store:
            append(store, a_note("a", str(number)))

    with closing(open_sqlite_file(tmp_path, Clock())) as store:
        assert text_of(store, "a") == "4"
        assert store.reader().log.head().sequence == 6
        assert examine(store) == []


def test_a_store_opened_for_reading_reads_everything_and_writes_nothing(tmp_path: Path) -> None:
    with closing(open_sqlite_file(tmp_path, Clock())) as store:
        append(store, a_note("a", "here"))

    with closing(open_sqlite_file(tmp_path, Clock(), read_only=True)) as store:
        assert store.read_only
        assert text_of(store, "a") == "here"
        assert matching(store, "here") == [2]
        assert examine(store) == []
        for write in (
            lambda: append(store, a_note("a", "changed")),
            lambda: store.rebuild(lambda *_: None),
            lambda: store.purge(TESTER, space=notes(), key="a", sequence=None),
        ):
            with pytest.raises(ReadOnly):
                write()

    with closing(open_sqlite_file(tmp_path, Clock())) as store:
        assert text_of(store, "a") == "here"


def test_a_reader_sees_what_a_writer_beside_it_writes(tmp_path: Path) -> None:
    with (
        closing(open_sqlite_file(tmp_path, Clock())) as writer,
        closing(open_sqlite_file(tmp_path, Clock(), read_only=True)) as reader,
    ):
        append(writer, a_note("a", "one"))
        first = text_of(reader, "a")
        append(writer, a_note("a", "two"))

        assert (first, text_of(reader, "a")) == ("one", "two")


def test_reading_a_file_that_is_not_there_is_refused_and_makes_none(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable):
        open_sqlite_file(tmp_path, Clock(), read_only=True)

    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_place_of_the_file_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "log.db").mkdir()

    with pytest.raises(StorageUnavailable) as refused:
        open_sqlite_file(tmp_path, Clock())

    assert refused.value.details["path"] == str(tmp_path / "log.db")


def test_two_stores_on_one_file_lose_nothing_and_see_each_other(tmp_path: Path) -> None:
    clock = Clock()
    with (
        closing(open_sqlite_file(tmp_path, clock)) as one,
        closing(open_sqlite_file(tmp_path, clock)) as other,
    ):
        for number in range(10):
            append(one, a_note(f"one{number}", "x", namespace=f"n{number}"))
            append(other, a_note(f"other{number}", "x", namespace=f"n{number}"))
            fork(one, f"b{number}")
            append(other, a_note("k", str(number)), branch=f"b{number}")

        assert [text_of(one, "k", f"b{number}") for number in range(10)] == list(
            map(str, range(10))
        )
        assert one.reader().log.head() == other.reader().log.head()
        assert examine(one) == examine(other) == []


def test_a_branch_deleted_by_one_store_is_gone_for_the_other(tmp_path: Path) -> None:
    with (
        closing(open_sqlite_file(tmp_path, Clock())) as one,
        closing(open_sqlite_file(tmp_path, Clock())) as other,
    ):
        fork(one, "trial")
        append(other, a_note("a", "x"), branch="trial")

        one.write(lambda t: t.branches.delete(live(t, "trial")), TESTER)

        assert other.reader().branches.by_name("trial") is None


HOLDING = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_file_held_by_another_process_for_too_long_is_said_to_be_busy(tmp_path: Path) -> None:
    with closing(open_sqlite_file(tmp_path, Clock(), lock_wait_seconds=0.1)) as store:
        append(store, a_note("a", "before"))
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDING, str(tmp_path / "log.db.lock")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with holder:
            assert holder.stdout is not None
            holder.stdout.readline()
            with pytest.raises(StorageBusy) as refused:
                append(store, a_note("a", "during"))
            during = text_of(store, "a")
            holder.communicate()

        append(store, a_note("a", "after"))

        assert refused.value.retryable
        assert (during, text_of(store, "a")) == ("before", "after")
        assert store.reader().log.head().sequence == 3


def test_the_lock_beside_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    with closing(open_sqlite_file(tmp_path, Clock())) as store:
        append(store, a_note("a"))

    assert stat.S_IMODE((tmp_path / "log.db.lock").stat().st_mode) == 0o600


def test_threads_that_end_leave_no_open_files_behind(tmp_path: Path) -> None:
    with closing(open_sqlite_file(tmp_path, Clock())) as store:
        append(store, a_note("a", "here"))

        def read() -> None:
            assert text_of(store, "a") == "here"

        for _ in range(5):
            _run(read)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(50):
            _run(read)

        assert len(os.listdir("/proc/self/fd")) <= before + 5


def _run(work: object) -> None:
    thread = threading.Thread(target=work)  # type: ignore[arg-type]
    thread.start()
    thread.join()


def test_a_purged_text_is_in_no_byte_of_the_files(tmp_path: Path) -> None:
    with closing(open_sqlite_file(tmp_path, Clock())) as store:
        append(store, *(a_note(f"k{number}", f"filler {number}") for number in range(50)))
        store.write(
            lambda t: (
                [t.append(live(t, MAIN), [a_note("k", f"a {SECRET}", tags=[SECRET])])[0][0]]
                and SECRET
            ),
            WriteRequest("ada", "r1", b"f"),
        )
        append(store, a_note("k", f"{SECRET} again"))
        fork(store, "trial")
        append(store, an_erasure("k"), branch="trial")
        written = raw_bytes(tmp_path)

        store.purge(TESTER, space=notes(), key="k", sequence=None)

        assert SECRET.encode() in written
        assert SECRET.encode() not in raw_bytes(tmp_path)
        assert examine(store) == []
    assert SECRET.encode() not in raw_bytes(tmp_path)


def test_a_purged_key_is_in_no_byte_of_the_files(tmp_path: Path) -> None:
    with closing(open_sqlite_file(tmp_path, Clock())) as store:
        append(store, a_note(SECRET, "plain"))
        append(store, a_note(SECRET, "changed"), a_note("other", "kept"))

        store.purge(TESTER, space=notes(), key=SECRET, sequence=None)

        assert SECRET.encode() not in raw_bytes(tmp_path)


def test_a_purged_happening_is_in_no_byte_of_the_files(tmp_path: Path) -> None:
    with closing(open_sqlite_file(tmp_path, Clock())) as store:
        sequence = append(store, a_happening(f"said {SECRET}", session="s"))
        append(store, a_happening("and then", session="s"), a_note("k", "note", session="s"))
        fork(store, "trial", at=1)
        append(store, a_happening(f"said {SECRET}", origin=sequence), branch="trial")

        store.purge(TESTER, space=happenings(), key=None, sequence=sequence)

        assert SECRET.encode() not in raw_bytes(tmp_path)


@pytest.mark.parametrize("embedder", ["none", "static"])
def test_what_memory_purges_is_in_no_byte_of_the_files(tmp_path: Path, embedder: str) -> None:
    with stratagem.open(str(tmp_path / "m.db"), embedder=embedder) as db:
        memory = db.memory
        memory.store("diary", f"the {SECRET} of the matter", tags=[SECRET], request_id="r1")
        logged = memory.log("said", f"hush, {SECRET}", session="s", request_id="r2")
        memory.log("said", "what was that?", session="s")
        memory.fork("trial")
        memory.store("diary", f"{SECRET} rewritten", branch="trial")
        memory.merge("trial", request_id="r3")
        memory.create("apart")
        memory.merge("default", branch="apart", request_id="r4")
        memory.search(SECRET)

        memory.purge("diary")
        memory.purge(sequence=logged.sequence)

        assert SECRET.encode() not in raw_bytes(tmp_path)
        assert memory.search(SECRET, branch="apart").results == [] or embedder == "static"
        assert all(SECRET not in str(hit) for hit in memory.search(SECRET, branch="apart"))
        assert db.runtime.foundation.store.examine(lambda *_: None, None) == []
    assert SECRET.encode() not in raw_bytes(tmp_path)


def test_a_purge_that_somebody_reads_beside_says_how_the_rest_is_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "_READERS_WAIT_MS", 10)
    with closing(open_sqlite_file(tmp_path, Clock(), lock_wait_seconds=600)) as store:
        append(store, a_note("k", f"the word {SECRET}"))
        with closing(open_sqlite_file(tmp_path, Clock())) as other, other.snapshot() as reader:
            reader.log.head()
            begun = time.monotonic()
            erased = store.purge(TESTER, space=notes(), key="k", sequence=None)
            is_compact = store.compact()
            # Every writer waits meanwhile, but not for as long as that one reads.
            assert time.monotonic() - begun < 60

        assert (erased.events, erased.pending, is_compact) == (1, True, False)
        assert "strata_db_compact" in erased.note
        assert store.compact()
        assert SECRET.encode() not in raw_bytes(tmp_path)


def test_a_purge_is_done_where_there_is_no_room_to_write_the_file_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_connection: apsw.Connection) -> bool:
        raise apsw.FullError

    with closing(open_sqlite_file(tmp_path, Clock())) as store:
        append(store, a_note("k", f"the word {SECRET}"))
        with monkeypatch.context() as patch:
            patch.setattr(maintenance, "compact", refuse)
            erased = store.purge(TESTER, space=notes(), key="k", sequence=None)

        assert (erased.events, erased.pending) == (1, True)
        assert text_of(store, "k") is None
        store.compact()
        assert SECRET.encode() not in raw_bytes(tmp_path)


def test_a_purge_does_not_take_as_much_memory_as_the_file_is_large(tmp_path: Path) -> None:
    with closing(open_sqlite_file(tmp_path, Clock())) as store:
        append(store, a_note("k", SECRET))
        for part in range(32):
            append(store, a_note(f"{part}", filler="x" * 1_000_000))
        apsw.memory_high_water(reset=True)
        before = apsw.memory_used()

        store.purge(TESTER, space=notes(), key="k", sequence=None)

        assert apsw.memory_high_water() - before < 20_000_000


def test_a_purge_keeps_no_hash_that_the_content_could_be_guessed_from(tmp_path: Path) -> None:
    with stratagem.open(str(tmp_path / "m.db"), embedder="none") as db:
        db.memory.store("pin", "1234", request_id="r1")

        db.memory.purge("pin")

    connection = apsw.Connection(str(tmp_path / "m.db"))
    rows = connection.execute("SELECT fingerprint, result FROM requests").fetchall()
    connection.close()
    assert rows == [(b"", None)]


def _pragma(path: Path, name: str, value: int) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma(name, value)
    connection.close()


def test_a_writer_knows_what_others_have_written_since_its_last_commit(tmp_path: Path) -> None:
    path = str(tmp_path / "shared.db")
    with (
        stratagem.open(path, embedder="none") as ours,
        stratagem.open(path, embedder="none") as theirs,
    ):
        ours.memory.store("a", "one")
        ours.call("strata_branch", {"action": "create", "name": "trial"})
        ours.memory.store("a", "two", branch="trial")
        theirs.memory.store("b", "one", namespace="new")
        theirs.call("strata_branch", {"action": "delete", "name": "trial"})

        with pytest.raises(BranchNotFound):
            ours.memory.store("a", "three", branch="trial")
        ours.memory.store("c", "one", namespace="new")
        theirs.memory.store("d", "one")

        assert [each.memory.status().keys for each in (ours, theirs)] == [4, 4]
        assert examine(ours.runtime.foundation.store) == []
