"""A process that is forked while threads use databases opens them again, and loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

import stratagem
from stratagem.deferred_modules import defer
from stratagem.search.vectors import VectorCache
from tests.faults.opening import open_with
from tests.faults.processes import Voice, child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no process can be forked here")

_SLOW_MODULE = """
import time
from pathlib import Path
Path(__file__).with_suffix(".began").touch()
time.sleep(0.5)
ended = True
"""


def fork(work: Callable[[], object]) -> int:
    """Do some work in a process that is forked; return its id."""
    forked = os.fork()
    if not forked:
        # Whoever hangs is killed.
        signal.alarm(30)
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return forked


def exit_code(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def store_and_search(path: str, name: str) -> None:
    with stratagem.open(path) as own:
        own.memory.store(name, f"{name} takes a ferry to the island")
        assert own.memory.search(name).results
        assert own.memory.search("a boat").results


def fork_after_opening(tell: Voice, path: str, seconds: float) -> None:
    db = stratagem.open(path)
    db.memory.store("city", "Oslo")
    time.sleep(seconds)
    forked = fork(lambda: store_and_search(path, "child"))
    tell([exit_code(forked), db.memory.search("child")[0].key])


def test_a_child_that_is_forked_while_the_model_is_read_stores_and_searches(tmp_path: Path) -> None:
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                child(fork_after_opening, str(tmp_path / f"{number}.db"), number / 50)
            )
            for number in range(4)
        ]
        told = [each.hear() for each in processes]

    assert told == [[0, "child"]] * 4


def fork_while_importing(tell: Voice, folder: str) -> None:
    sys.path.insert(0, folder)
    importing = threading.Thread(target=lambda: defer("slow_module").ended)
    importing.start()
    while not Path(folder, "slow_module.began").exists():
        time.sleep(0.01)
    tell(exit_code(fork(lambda: defer("slow_module").ended)))


def test_a_fork_waits_for_what_another_thread_imports(tmp_path: Path) -> None:
    (tmp_path / "slow_module.py").write_text(_SLOW_MODULE)

    with child(fork_while_importing, str(tmp_path)) as process:
        assert process.hear() == 0


def fork_among_busy_threads(tell: Voice, path: str) -> None:
    db = stratagem.open(path)
    for number in range(100):
        db.memory.store(f"k{number}", f"the ferry number {number} goes to an island")
    stopping = threading.Event()

    def search() -> None:
        while not stopping.is_set():
            db.memory.search("ferry island")

    def store() -> None:
        while not stopping.wait(0.002):
            db.memory.store("busy", "still writing")

    threads = [threading.Thread(target=each) for each in (search, search, search, store)]
    for each in threads:
        each.start()
    names = [f"child{number}" for number in range(8)]
    for name in names:
        tell(exit_code(fork(partial(store_and_search, path, name))))
    stopping.set()
    for each in threads:
        each.join()
    tell([name for name in names if db.memory.recall(name) is None])


def test_children_that_are_forked_among_busy_threads_store_and_search(tmp_path: Path) -> None:
    with child(fork_among_busy_threads, str(tmp_path / "memory.db")) as process:
        told = list(process.hear_rest())

    assert told == [*[0] * 8, []]


_READING_HOOK = """
import os, sys
os.register_at_fork(before=lambda: db.memory.recall("city"))
import stratagem
db = stratagem.open(sys.argv[1], embedder="none")
if not os.fork():
    os._exit(0)
os.wait()
"""


def test_who_forks_may_read_until_then(tmp_path: Path) -> None:
    # Its hook is called after ours, which are registered by the import.
    command = [sys.executable, "-c", _READING_HOOK, str(tmp_path / "memory.db")]

    assert subprocess.run(command, check=False, timeout=60).returncode == 0


def close_before_the_child(tell: Voice, path: str) -> None:
    """Store in a child before and after its parent closes the database."""
    db = stratagem.open(path, embedder="none")
    db.memory.store("city", "Oslo")
    stored, closed = os.pipe(), os.pipe()

    def store() -> None:
        with stratagem.open(path, embedder="none") as own:
            own.memory.store("before", 1)
            os.write(stored[1], b"x")
            os.read(closed[0], 1)
            own.memory.store("after", 2)

    forked = fork(store)
    os.read(stored[0], 1)
    db.close()
    os.write(closed[1], b"x")
    tell(exit_code(forked))


def test_what_a_child_stores_outlives_the_handle_of_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"

    with child(close_before_the_child, str(path)) as process:
        assert process.hear() == 0

    with open_with(path) as db:
        assert [db.memory[key] for key in ("city", "before", "after")] == ["Oslo", 1, 2]


def fork_with_the_file_of_vectors(tell: Voice, path: str) -> None:
    """Fork while the file of vectors is locked, and lock it again while the child lives."""
    vectors = VectorCache(Path(path), 64)
    end_read, end_write = os.pipe()
    with vectors._exclusive():  # noqa: SLF001 -- no other thread is caught in it for sure
        forked = fork(lambda: os.read(end_read, 1))
    with vectors._exclusive():  # noqa: SLF001
        tell("locked again")
    os.write(end_write, b"x")
    os.waitpid(forked, 0)


def test_a_child_does_not_keep_the_lock_of_the_file_of_vectors(tmp_path: Path) -> None:
    with child(fork_with_the_file_of_vectors, str(tmp_path / "vectors")) as process:
        assert process.hear() == "locked again"
