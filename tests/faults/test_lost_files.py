"""A handle that no longer has its database refuses to write rather than write to nowhere."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem.errors import StorageUnavailable
from tests.faults.opening import examine, open_with
from tests.faults.processes import Voice, child


def test_nothing_is_acknowledged_once_the_file_was_deleted(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with stratagem.open(str(path), embedder="none") as db:
        db.memory.store("city", "Oslo")
        path.unlink()

        with pytest.raises(StorageUnavailable, match="deleted"):
            db.memory.store("city", "Bergen")

    assert not path.exists()


def test_nothing_is_acknowledged_once_another_file_took_the_place(tmp_path: Path) -> None:
    path, backup = tmp_path / "memory.db", tmp_path / "backup.db"
    with stratagem.open(str(path), embedder="none") as db:
        db.memory.store("city", "Oslo")
    shutil.copy(path, backup)
    with stratagem.open(str(path), embedder="none") as db:
        db.memory.store("city", "Bergen")
        backup.replace(path)

        with pytest.raises(StorageUnavailable, match="replaced"):
            db.memory.store("city", "Tromsø")
        for thread_reads in (lambda: db.memory.recall("city"), db.memory.status):
            assert raised_in_a_thread(thread_reads) is StorageUnavailable


def test_a_file_that_came_back_is_used_again(tmp_path: Path) -> None:
    path, aside = tmp_path / "memory.db", tmp_path / "aside.db"
    with stratagem.open(str(path), embedder="none") as db:
        db.memory.store("city", "Oslo")
        path.rename(aside)
        with pytest.raises(StorageUnavailable, match="moved"):
            db.memory.store("city", "Bergen")

        aside.rename(path)
        db.memory.store("city", "Bergen")

        assert examine(db) == []


def test_a_relative_path_means_the_same_file_after_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with stratagem.open("memory.db", embedder="none") as db:
        db.memory.store("city", "Oslo")
        monkeypatch.chdir(tmp_path / "elsewhere")

        # A thread opens its connection when it first reads.
        assert raised_in_a_thread(lambda: db.memory.recall("city")) is None
        db.memory.store("city", "Bergen")

    assert list((tmp_path / "elsewhere").iterdir()) == []


def raised_in_a_thread(work: Callable[[], Any]) -> type[BaseException] | None:
    raised: list[type[BaseException]] = []

    def run() -> None:
        try:
            work()
        except StorageUnavailable as error:
            raised.append(type(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0] if raised else None


def use_after_fork(tell: Voice, path: str) -> None:
    """Open a database, fork, and use it on both sides."""
    db = stratagem.open(path, embedder="none")
    db.memory.store("city", "Oslo")
    branch = os.fork()
    if not branch:
        signal.alarm(30)
        tell_of_forked_use(tell, db, path)
        os._exit(0)
    os.waitpid(branch, 0)
    tell(db.memory.store("city", "Bergen").version)
    tell(examine(db))


def tell_of_forked_use(tell: Voice, db: stratagem.Stratagem, path: str) -> None:
    for work in (
        lambda: db.memory.recall("city"),
        lambda: db.memory.search("Oslo"),
        lambda: db.memory.store("city", "Hamar"),
        lambda: db.memory.purge("city"),
        db.memory.status,
    ):
        try:
            work()
            tell("worked")
        except StorageUnavailable as error:
            tell(error.message)
    db.close()
    with stratagem.open(path, embedder="none") as own:
        tell(own.memory.store("mine", "own handle").version)


def test_a_handle_cannot_be_used_on_the_far_side_of_a_fork(tmp_path: Path) -> None:
    with child(use_after_fork, str(tmp_path / "memory.db")) as process:
        told = list(process.hear_rest())

    refused = ["The database was opened before this process was forked."] * 5
    assert told == [*refused, 3, 4, []]


def fork_during_a_write(tell: Voice, path: str) -> None:
    """Fork while a thread of this process writes, and write on while the fork lives."""
    db = open_with(Path(path), lock_wait_seconds=1)
    inside, leave = threading.Event(), threading.Event()

    def work(_connection: object) -> None:
        inside.set()
        leave.wait()

    store = db.runtime.foundation.store
    writer = threading.Thread(target=store.exclusive, args=[work])  # type: ignore[attr-defined]
    writer.start()
    inside.wait()
    end_read, end_write = os.pipe()
    branch = os.fork()
    if not branch:
        signal.alarm(30)
        os.close(end_write)
        try:
            db.memory.store("city", "Hamar")
        except StorageUnavailable as error:
            tell(error.message)
        os.read(end_read, 1)
        os._exit(0)
    leave.set()
    writer.join()
    tell(db.memory.store("city", "Bergen").status)
    os.close(end_write)
    os.waitpid(branch, 0)


def test_a_fork_does_not_keep_the_lock_of_a_write_it_was_forked_in(tmp_path: Path) -> None:
    with child(fork_during_a_write, str(tmp_path / "memory.db")) as process:
        told = {process.hear(), process.hear()}

    assert told == {"The database was opened before this process was forked.", "created"}
