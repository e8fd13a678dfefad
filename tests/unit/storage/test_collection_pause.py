"""Whether garbage is collected again, whatever became of a transaction."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

import stratagem
from stratagem.storage import branch_merge
from stratagem.storage.collection_pause import CollectionPause
from stratagem.storage.contract import Store, Transaction, WriteRequest

ME = WriteRequest("tester")
T = TypeVar("T")


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


@pytest.fixture
def db() -> Iterator[stratagem.Stratagem]:
    with stratagem.open(":memory:", embedder="none", durability="fast") as opened:
        yield opened


@pytest.fixture
def store(db: stratagem.Stratagem) -> Store:
    return db.runtime.foundation.store


def test_no_garbage_is_collected_in_a_transaction(store: Store) -> None:
    assert not store.write(lambda _transaction: gc.isenabled(), ME)
    assert gc.isenabled()


def test_no_garbage_is_collected_while_branches_are_compared(
    db: stratagem.Stratagem, monkeypatch: pytest.MonkeyPatch
) -> None:
    collecting: list[bool] = []
    compare, plan = branch_merge.compare, branch_merge.plan

    def watch(work: Callable[..., T]) -> Callable[..., T]:
        def run(*given: Any, **options: Any) -> T:
            collecting.append(gc.isenabled())
            return work(*given, **options)

        return run

    # Where the operations find them: they keep what they were once given of a deferred module.
    used = "stratagem.memory.branch_operations.branch_merge"
    monkeypatch.setattr(f"{used}.compare", watch(compare))
    monkeypatch.setattr(f"{used}.plan", watch(plan))
    db.memory.fork("trial")

    db.memory.diff("trial")
    db.memory.merge("trial", preview=True)

    assert collecting == [False, False]
    assert gc.isenabled()


def test_garbage_is_collected_after_work_that_failed(store: Store) -> None:
    def fail(_transaction: Transaction) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.write(fail, ME)

    assert gc.isenabled()


def test_a_program_that_collects_no_garbage_is_left_with_that(store: Store) -> None:
    gc.disable()

    store.write(lambda _transaction: None, ME)

    assert not gc.isenabled()


def test_a_pause_that_was_left_behind_ends_with_the_next() -> None:
    CollectionPause().__enter__()

    with CollectionPause():
        assert not gc.isenabled()

    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_that_is_forked_meanwhile_collects_garbage() -> None:
    # In a process of its own: this one may have threads, which do not survive a fork.
    script = """
import gc, os
from stratagem.storage.collection_pause import CollectionPause
with CollectionPause():
    child = os.fork()
    if not child:
        os._exit(0 if gc.isenabled() else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
