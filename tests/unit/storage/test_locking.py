from __future__ import annotations

import threading
from pathlib import Path

import pytest

from stratagem.errors import StorageBusy
from stratagem.storage.sqlite.writer_lock import WriterLock


def test_a_lock_keeps_others_out_until_it_is_released(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    one, other = WriterLock(path), WriterLock(path)
    one.acquire(60)

    with pytest.raises(StorageBusy) as refused:
        other.acquire(0.01)
    one.release()
    other.acquire(60)
    other.release()

    assert refused.value.retryable


def test_who_waits_gets_the_lock_when_it_is_released(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    one, other = WriterLock(path), WriterLock(path)
    order: list[str] = []

    def wait() -> None:
        other.acquire(30)
        order.append("other")

    one.acquire(60)
    waiting = threading.Thread(target=wait)
    waiting.start()

    order.append("one")
    one.release()
    waiting.join(60)
    other.release()

    assert order == ["one", "other"]


def test_who_gave_up_waiting_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    one, other, third = WriterLock(path), WriterLock(path), WriterLock(path)
    one.acquire(60)
    with pytest.raises(StorageBusy):
        other.acquire(0.01)
    one.release()

    third.acquire(30)
    third.release()


def test_without_a_path_there_is_nothing_to_wait_for() -> None:
    one, other = WriterLock(None), WriterLock(None)

    one.acquire(0)
    other.acquire(0)
    one.release()
    other.release()


def test_releasing_twice_does_no_harm(tmp_path: Path) -> None:
    lock = WriterLock(str(tmp_path / "lock"))
    lock.acquire(60)

    lock.release()
    lock.release()
    lock.acquire(60)
    lock.release()


def test_who_gave_up_waiting_can_have_the_lock_later(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    one, other = WriterLock(path), WriterLock(path)
    one.acquire(60)
    with pytest.raises(StorageBusy):
        other.acquire(0.01)
    one.release()

    other.acquire(30)
    with pytest.raises(StorageBusy):
        one.acquire(0.01)
    other.release()


def test_closing_a_lock_lets_others_in(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    one, other = WriterLock(path), WriterLock(path)
    one.acquire(60)

    one.close()
    other.acquire(60)
    other.release()
    one.acquire(60)
    one.release()


def test_who_is_interrupted_while_waiting_does_not_keep_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = threading.Event.wait

    def interrupt(event: threading.Event, timeout: float | None = None) -> bool:
        if timeout is None:
            # A thread waits so for another one to start.
            return wait(event)
        raise KeyboardInterrupt

    path = str(tmp_path / "lock")
    one, other, third = WriterLock(path), WriterLock(path), WriterLock(path)
    one.acquire(60)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Event, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            other.acquire(60)
    one.release()

    third.acquire(10)
    third.release()
    other.acquire(10)
    other.release()


def test_the_lock_is_waited_for_where_no_thread_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    path = str(tmp_path / "lock")
    one, other = WriterLock(path), WriterLock(path)
    one.acquire(60)
    later = threading.Timer(0.05, one.release)
    later.start()
    monkeypatch.setattr(threading.Thread, "start", refuse)

    other.acquire(60)

    other.release()
