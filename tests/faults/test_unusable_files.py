"""Files that are no database, are damaged, or may not be touched: a clear error, and no harm."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw
import orjson
import pytest

import stratagem
from stratagem.errors import (
    DatabaseCorrupt,
    DatabaseTooNew,
    ReadOnly,
    StorageUnavailable,
    StratagemError,
)
from tests.faults.opening import examine
from tests.faults.processes import Voice, child
from tests.faults.workload import Ledger, Worker

NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a sound database with something in it."""
    with stratagem.open(str(tmp_path / "memory.db"), embedder="none") as db:
        db.memory.store("city", "Oslo")
    return tmp_path / "memory.db"


def use(path: Path, *, read_only: bool = False) -> None:
    with stratagem.open(str(path), embedder="none", read_only=read_only) as db:
        db.memory.recall("city")
        if not read_only:
            db.memory.store("country", "Norway")


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("size", [6, 50, 100, 512, 4096, 5000, 60_000])
def test_a_truncated_file_is_called_damaged(path: Path, size: int, *, read_only: bool) -> None:
    path.write_bytes(path.read_bytes()[:size])

    with pytest.raises(DatabaseCorrupt):
        use(path, read_only=read_only)

    assert path.stat().st_size == size


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_of_something_else_is_refused_and_left_alone(
    tmp_path: Path, *, read_only: bool
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Remember the milk. " * 1000)

    with pytest.raises(DatabaseCorrupt, match="not a Stratagem database"):
        use(path, read_only=read_only)

    assert path.read_text() == "Remember the milk. " * 1000


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with apsw.Connection(str(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(DatabaseCorrupt, match="not one of Stratagem's"):
        use(path)

    assert path.read_bytes() == before


def test_a_database_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    with apsw.Connection(str(path)) as connection:
        connection.pragma("user_version", 99)
    connection.close()
    before = path.read_bytes()

    with pytest.raises(DatabaseTooNew):
        use(path)

    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()

    use(tmp_path / "empty.db")


def test_an_empty_file_cannot_be_opened_for_reading_only(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()

    with pytest.raises(StorageUnavailable, match="empty"):
        use(tmp_path / "empty.db", read_only=True)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_path_that_is_no_file_is_refused(tmp_path: Path, *, read_only: bool) -> None:
    os.mkfifo(tmp_path / "pipe")

    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(StorageUnavailable, match="not a file"):
            use(path, read_only=read_only)


@pytest.mark.parametrize("name", ["nul\0in-the-middle", "x" * 300, "surrogate\ud800"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StorageUnavailable):
        use(tmp_path / name)


def test_a_name_that_looks_like_a_uri_is_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    use(Path("file:memory.db?mode=ro"))

    assert (tmp_path / "file:memory.db?mode=ro").is_file()


def test_a_missing_file_cannot_be_opened_for_reading_only(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match="no database"):
        use(tmp_path / "missing.db", read_only=True)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_garbage_in_the_files_beside_the_database_is_not_believed(
    path: Path, suffix: str, seed: int
) -> None:
    path.with_name(path.name + suffix).write_bytes(random.Random(seed).randbytes(50_000))

    with stratagem.open(str(path), embedder="none") as db:
        entry = db.memory.recall("city")
        assert entry is not None
        assert entry.value == "Oslo"
        assert examine(db) == []


def run_as_nobody(tell: Voice, folder: str) -> None:
    """Try a file and a folder that may not be written; nothing stops root from writing."""
    # Everything is imported by then: Python itself may lie where nobody may look.
    with stratagem.open(":memory:", embedder="none") as db:
        db.memory.store("city", "Oslo")
        # What puts a refusal in words is imported by the first one.
        with suppress(StratagemError):
            db.memory.store("", "Oslo")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    path = Path(folder) / "memory.db"
    for mode_of_file, mode_of_folder in ((0o444, 0o755), (0o644, 0o555), (0, 0o755), (0o644, 0)):
        Path(folder).chmod(0o755)
        for stale in ("memory.db-wal", "memory.db-shm"):
            (Path(folder) / stale).unlink(missing_ok=True)
        path.chmod(mode_of_file)
        Path(folder).chmod(mode_of_folder)
        for read_only in (False, True):
            try:
                use(path, read_only=read_only)
                tell("used")
            except StratagemError as error:
                tell(error.code)
    Path(folder).chmod(0o755)
    path.chmod(0o644)
    use(path)
    tell("used")


@pytest.fixture
def nobodys_folder(path: Path) -> Iterator[Path]:
    """Return a folder with a sound database, all of it owned by somebody who is not root."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, folder)
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            os.chown(Path(folder) / path.name, NOBODY, NOBODY)
        yield Path(folder)


def test_what_may_not_be_touched_is_said_to_be_so(nobodys_folder: Path) -> None:
    with child(run_as_nobody, str(nobodys_folder)) as process:
        told = list(process.hear_rest())

    file_read_only = [ReadOnly.code, "used"]
    folder_read_only = [ReadOnly.code, "used"]
    no_file = no_folder = [StorageUnavailable.code] * 2
    assert told == [*file_read_only, *folder_read_only, *no_file, *no_folder, "used"]


def damaged(sound: bytes, draw: random.Random) -> Iterator[tuple[str, bytes]]:
    """Yield a database with damage of many kinds."""
    for number in range(1000):
        content = bytearray(sound)
        place = draw.randrange(100 if number % 5 == 0 else len(sound))
        kind = draw.choice(["byte", "run", "page", "zeros", "cut"])
        if kind == "byte":
            content[place] ^= draw.randrange(1, 256)
        elif kind == "run":
            content[place : place + 200] = draw.randbytes(len(content[place : place + 200]))
        elif kind == "page":
            begin = place // 4096 * 4096
            content[begin : begin + 4096] = draw.randbytes(4096)
        elif kind == "zeros":
            begin = place // 4096 * 4096
            content[begin : begin + 4096] = bytes(4096)
        else:
            del content[max(place, 2) :]
        yield f"{kind} at {place}", bytes(content)


def survive(folder: Path, seed: int, rounds: int) -> tuple[int, int]:
    """Damage a database in many ways; return how often it was found out, and how often not."""
    sound, ledger = folder / "sound.db", Ledger()
    with stratagem.open(str(sound), embedder="none") as db:
        worker = Worker(db, "w", seed, ledger.note)
        for _ in range(60):
            worker.step()
        log = list(db.runtime.foundation.store.log())
    noticed = unnoticed = 0
    for number, (what, content) in enumerate(damaged(sound.read_bytes(), random.Random(seed))):
        if number == rounds:
            break
        path = folder / f"damaged{number}.db"
        path.write_bytes(content)
        try:
            with stratagem.open(str(path), embedder="none") as db:
                found = examine(db)
                if not found:
                    # Whatever was damaged, it was nothing that the log says.
                    assert list(db.runtime.foundation.store.log()) == log, what
                db.memory.search("river")
                db.memory.store("after", "the damage")
        except (StratagemError, orjson.JSONDecodeError):
            # Outside of storage a payload that is not JSON is still the parser's error.
            found = ["refused"]
        noticed += bool(found)
        unnoticed += not found
        shutil.rmtree(path, ignore_errors=True)
    return noticed, unnoticed


def test_damage_is_found_or_does_not_matter(tmp_path: Path, seed: int) -> None:
    noticed, _ = survive(tmp_path, seed, 60)

    assert noticed > 20


def test_where_no_folder_can_be_made_another_place_is_offered(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")

    with pytest.raises(StorageUnavailable, match="folder of the database") as refused:
        stratagem.open(tmp_path / "home" / "stratagem" / "memory.db")

    assert "STRATAGEM_DB" in refused.value.hint
