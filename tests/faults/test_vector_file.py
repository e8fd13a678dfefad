"""The file of vectors is a cache: whatever becomes of it, searching is right.

What each damaged file answers is asked in a process of its own, since to touch a mapping of a
file that was truncated ends a process without a word.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw
import numpy as np
import pytest

import stratagem
from stratagem.errors import StratagemError
from stratagem.search.vector_columns import VectorColumns, VectorRows
from stratagem.search.vector_storage import FileStorage, VectorsDamagedError
from tests.faults.disk import Disk, in_place
from tests.faults.opening import examine, open_with
from tests.faults.processes import Voice, child
from tests.faults.test_full_disk import little_room
from tests.faults.workload import WORDS

QUESTIONS = (
    "river valley",
    "basalt stone",
    "a harbour by the water",
    "spruce trees",
    "a cold glacier",
)
HEADER = ("generation", "dimensions", "capacity", "count", "last_id", "position", "ascending")
HEADER_BYTES = 4096

Answers = list[list[tuple[str | None, float]]]


def ask(db: stratagem.Stratagem) -> Answers:
    return [
        [(hit.key, hit.score) for hit in db.memory.search(question, k=20)] for question in QUESTIONS
    ]


def write_texts(db: stratagem.Stratagem, begin: int, end: int) -> None:
    draw = random.Random(begin)
    items = [
        {"key": f"key {number % 200}", "value": " ".join(draw.choices(WORDS, k=8))}
        for number in range(begin, end)
    ]
    db.memory.store(items=items)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a database whose vectors have been searched."""
    path = tmp_path / "memory.db"
    with stratagem.open(str(path), embedder="static", durability="fast") as db:
        write_texts(db, 0, 150)
        write_texts(db, 150, 300)
        ask(db)
    return path


def vectors_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-vectors")


def ask_with_each(tell: Voice, path: str, files: list[tuple[str, bytes]]) -> None:
    """Put each file in the place of the vectors, and tell what is found then."""
    for what, content in files:
        vectors_of(Path(path)).write_bytes(content)
        try:
            with stratagem.open(path, embedder="static") as db:
                tell((what, ask(db)))
        except (StratagemError, ArithmeticError, MemoryError, ValueError) as error:
            tell((what, repr(error)))


def wrong_with(path: Path, files: list[tuple[str, bytes]]) -> list[str]:
    """Return with which files something else is found than without any."""
    kept = vectors_of(path).read_bytes()
    vectors_of(path).unlink()
    with stratagem.open(str(path), embedder="static") as db:
        right = ask(db)
    with child(ask_with_each, str(path), files) as process:
        told = dict(process.hear_rest())
    vectors_of(path).write_bytes(kept)
    assert all(right), "there is nothing to find"
    return [what for what, _ in files if told.get(what) != right]


def with_header(content: bytes, name: str, value: int) -> bytes:
    at = 8 + 8 * HEADER.index(name)
    return content[:at] + struct.pack("<q", value) + content[at + 8 :]


def header_of(content: bytes) -> dict[str, int]:
    return dict(zip(HEADER, struct.unpack_from("<7q", content, 8), strict=True))


def test_a_file_that_is_cut_or_overwritten_is_made_anew(path: Path, seed: int) -> None:
    content, draw = vectors_of(path).read_bytes(), random.Random(seed)
    sizes = [0, 8, 64, 4096, 5000, len(content) - 1]
    files = [(f"cut to {size}", content[:size]) for size in sizes]
    files += [
        ("longer", content + bytes(4096)),
        ("zeros", bytes(len(content))),
        ("garbage", draw.randbytes(len(content))),
        ("garbage in the header", draw.randbytes(HEADER_BYTES) + content[HEADER_BYTES:]),
    ]

    assert wrong_with(path, files) == []


def nonsense(content: bytes) -> Iterator[tuple[str, bytes]]:
    for name in HEADER:
        for value in (-1, 100, 2**62):
            yield f"{name} {value}", with_header(content, name, value)


def test_a_header_that_makes_no_sense_is_not_believed(path: Path) -> None:
    assert wrong_with(path, list(nonsense(vectors_of(path).read_bytes()))) == []


def test_a_writer_that_was_killed_between_two_words_of_the_header_does_no_harm(
    path: Path,
) -> None:
    before = vectors_of(path).read_bytes()
    with stratagem.open(str(path), embedder="static") as db:
        write_texts(db, 300, 350)
        ask(db)
    after = vectors_of(path).read_bytes()
    files = [
        (f"still the old {name}", with_header(after, name, header_of(before)[name]))
        for name in ("count", "last_id", "position")
    ]

    assert wrong_with(path, files) == []


def test_a_power_failure_in_the_midst_of_writing_does_no_harm(path: Path, seed: int) -> None:
    """Pages of a file reach the disk in any order."""
    before, draw = vectors_of(path).read_bytes(), random.Random(seed)
    with stratagem.open(str(path), embedder="static") as db:
        write_texts(db, 300, 350)
        ask(db)
    after = vectors_of(path).read_bytes()
    files = []
    for number in range(5):
        pages = [
            (after if draw.random() < 0.5 else before)[at : at + 4096]
            for at in range(0, len(after), 4096)
        ]
        files.append((f"mixture {number}", b"".join(pages)))

    assert wrong_with(path, files) == []


def test_damage_in_the_midst_of_the_file_is_found(path: Path, seed: int) -> None:
    content, draw, files = vectors_of(path).read_bytes(), random.Random(seed), []
    # The columns of this small file, and the vectors, which lie behind those of its capacity.
    used = [*range(HEADER_BYTES, HEADER_BYTES + 8 * 300), *range(70_000, 370_000, 999)]
    for number in range(15):
        damaged, at = bytearray(content), draw.choice(used)
        size = draw.choice([1, 100, 4096])
        damaged[at : at + size] = draw.choice([draw.randbytes(size), bytes(size)])
        files.append((f"{number}: {size} at {at}", bytes(damaged)))

    assert wrong_with(path, files) == []


def test_the_vectors_of_another_database_are_not_taken_for_ones_own(path: Path) -> None:
    """As after a backup was put in the place of the database."""
    other = path.with_name("other.db")
    with stratagem.open(str(other), embedder="static", durability="fast") as db:
        write_texts(db, 1000, 1150)
        write_texts(db, 1150, 1300)
        ask(db)

    assert wrong_with(path, [("another's", vectors_of(other).read_bytes())]) == []


def test_an_older_database_beside_newer_vectors_is_searched_rightly(path: Path) -> None:
    older = path.with_name("older.db")
    shutil.copy(path, older)
    with stratagem.open(str(path), embedder="static") as db:
        write_texts(db, 300, 350)
        ask(db)
    newer = vectors_of(path).read_bytes()
    vectors_of(older).write_bytes(newer)

    assert wrong_with(older, [("newer", newer)]) == []


@pytest.mark.parametrize("suffix", ["-vectors", "-vectors.lock"])
def test_a_place_where_no_vector_file_can_be_is_done_without(path: Path, suffix: str) -> None:
    with stratagem.open(str(path), embedder="static") as db:
        right = ask(db)
    place = path.with_name(path.name + suffix)
    place.unlink()
    place.mkdir()

    with stratagem.open(str(path), embedder="static") as db:
        assert ask(db) == right


def search_on_a_full_disk(tell: Voice, folder: str, searched_before: bool) -> None:
    room, path = little_room(Path(folder), 6 * 1024 * 1024), Path(folder) / "full.db"
    with stratagem.open(str(path), embedder="static", durability="fast") as db:
        write_texts(db, 0, 5)
        if searched_before:
            ask(db)
        write_texts(db, 5, 900)
        db.runtime.foundation.index.embed_waiting(lambda *_: None)
        ballast = os.open(path.with_name("ballast"), os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(ballast, bytes(4096))
        except OSError:
            tell("full")
        tell(all(ask(db)))
        tell([each.name for each in path.parent.glob("full.db-vectors.*[!k]")])
        room.enlarge()
        tell(db.memory.store("city", "Oslo").status)
        tell(examine(db))


@pytest.mark.parametrize("searched_before", [True, False])
def test_a_search_on_a_full_disk_does_not_end_the_process(
    tmp_path: Path, *, searched_before: bool
) -> None:
    with child(search_on_a_full_disk, str(tmp_path), searched_before) as process:
        told = list(process.hear_rest())

    assert told == ["full", True, [], "created", []]


def search_again_and_again(tell: Voice, path: str, databases: int, right: Answers) -> None:
    for number in range(databases):
        # Whoever finds the file damaged too often in one search does without it from then on.
        with stratagem.open(path, embedder="static") as db:
            for _ in range(8):
                if ask(db) != right:
                    tell(f"wrong answers from database {number}")
    tell("done")


def test_a_file_that_is_truncated_while_it_is_searched_does_not_end_the_process(
    path: Path, seed: int
) -> None:
    with stratagem.open(str(path), embedder="static") as db:
        right = ask(db)
    size, draw = vectors_of(path).stat().st_size, random.Random(seed)

    with child(search_again_and_again, str(path), 12, right) as process:
        truncations = 0
        while not process.pipe.poll(draw.random() * 0.01):
            with suppress(FileNotFoundError):
                os.truncate(vectors_of(path), draw.choice([0, 4096, draw.randrange(size)]))
                truncations += 1
        told = list(process.hear_rest())
        process.join()

    assert truncations > 20
    assert told == ["done"]


@pytest.mark.parametrize("places", [[0, 5, 9], list(range(3000))])
def test_rows_that_a_truncated_file_no_longer_has_are_reported(
    tmp_path: Path, places: list[int]
) -> None:
    path = tmp_path / "rows"
    content = np.arange(3000 * 512, dtype=np.float32).reshape(3000, 512)
    path.write_bytes(content.tobytes())
    storage, offsets = FileStorage(path, content.nbytes), 2048 * np.array(places)
    rows = np.zeros((len(places), 512), np.float32)
    storage.gather(offsets, rows)
    assert (rows == content[places]).all()

    os.truncate(path, 4096)

    with pytest.raises(VectorsDamagedError):
        storage.gather(offsets, rows)
    with pytest.raises(VectorsDamagedError):
        storage.read(2048, rows)
    with pytest.raises(VectorsDamagedError):
        storage.check_size()


@pytest.mark.parametrize("places", [[0, 5, 9], list(range(3000))])
def test_zeros_in_a_file_that_was_truncated_and_lengthened_again_are_reported(
    tmp_path: Path, places: list[int]
) -> None:
    path = tmp_path / "rows"
    content = np.arange(3000 * 512, dtype=np.float32).reshape(3000, 512)
    path.write_bytes(content.tobytes() + bytes(64))
    storage, offsets = FileStorage(path, content.nbytes + 64), 2048 * np.array(places)
    rows = np.zeros((len(places), 512), np.float32)

    os.truncate(path, 4096)
    os.truncate(path, content.nbytes)

    with pytest.raises(VectorsDamagedError):
        storage.gather(offsets, rows)
    with pytest.raises(VectorsDamagedError):
        storage.read(0, rows)


def test_rows_written_to_a_truncated_file_do_not_make_it_look_whole(tmp_path: Path) -> None:
    path, capacity = tmp_path / "rows", 4
    size = VectorColumns.size(8, 1, capacity)
    path.write_bytes(bytes(size))
    columns = VectorColumns(FileStorage(path, size), 8, 1, capacity)
    columns.format(1)
    numbers = np.arange(capacity, dtype=np.int64)

    os.truncate(path, 0)
    columns.extend(
        VectorRows(
            numbers,
            numbers,
            numbers,
            numbers,
            numbers,
            numbers,
            codes=np.ones((1, capacity), np.uint64),
            vectors=np.ones((capacity, 8), np.float32),
            quantized=np.ones((capacity, 8), np.int8),
        )
    )

    with pytest.raises(VectorsDamagedError):
        columns.seal()


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    """Return a database with texts that wait for their vectors."""
    path = tmp_path / "waiting.db"
    with stratagem.open(str(path), embedder="static") as db:
        write_texts(db, 0, 50)
        ask(db)
    with stratagem.open(str(path), embedder="none") as db:
        write_texts(db, 50, 100)
    return path


def test_a_search_that_finds_the_disk_full_answers_without_the_latest_vectors(
    waiting: Path,
) -> None:
    with (
        in_place(Disk(waiting.parent)) as disk,
        stratagem.open(str(waiting), embedder="static") as db,
    ):
        disk.quota = 0
        assert all(ask(db))

        disk.heal()
        assert all(ask(db))
        assert db.memory.status().unembedded == 0


def test_a_search_that_finds_the_database_held_answers_without_the_latest_vectors(
    waiting: Path,
) -> None:
    holder = apsw.Connection(str(waiting))
    with open_with(waiting, embedder="static", lock_wait_seconds=0.1) as db:
        holder.execute("BEGIN IMMEDIATE")
        assert all(ask(db))

        holder.execute("COMMIT")
        assert all(ask(db))
        assert db.memory.status().unembedded == 0
    holder.close()


def search_once(tell: Voice, path: str) -> None:
    with stratagem.open(path, embedder="static") as db:
        tell(all(ask(db)))


@pytest.mark.slow
def test_a_stopped_process_that_holds_the_vector_file_keeps_nobody_from_searching(
    path: Path,
) -> None:
    vectors_of(path).unlink()
    holder = os.open(path.with_name(f"{path.name}-vectors.lock"), os.O_RDWR | os.O_CREAT)
    fcntl.flock(holder, fcntl.LOCK_EX)
    try:
        with child(search_once, str(path)) as process:
            assert process.hear(20) is True
    finally:
        os.close(holder)
