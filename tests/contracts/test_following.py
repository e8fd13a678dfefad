"""A store tells whoever follows it how far the log has grown, whichever process made it grow."""

from __future__ import annotations

import queue

from stratagem.storage.contract import Store
from tests.contracts.backends import Backend
from tests.contracts.conftest import Opener
from tests.contracts.samples import a_note, append

PATIENCE_SECONDS = 10


def heard_until(told: queue.Queue[int], sequence: int) -> list[int]:
    heard = [told.get(timeout=PATIENCE_SECONDS)]
    while heard[-1] < sequence:
        heard.append(told.get(timeout=PATIENCE_SECONDS))
    return heard


def test_commits_are_told_in_order(store: Store) -> None:
    told: queue.Queue[int] = queue.Queue()
    stop = store.follow(told.put)

    last = [append(store, a_note(f"k{number}")) for number in range(5)][-1]
    heard = heard_until(told, last)
    stop()

    assert heard == sorted(heard)
    assert heard[-1] == last


def test_commits_of_another_store_of_the_same_place_are_told(
    backend: Backend, opened: Opener
) -> None:
    if not backend.reopens:
        return
    told: queue.Queue[int] = queue.Queue()
    here, there = opened(), opened()
    stop = here.follow(told.put)

    last = append(there, a_note("k"))
    heard = heard_until(told, last)
    stop()

    assert heard[-1] == last


def test_nothing_is_told_after_the_end(store: Store) -> None:
    told: queue.Queue[int] = queue.Queue()
    stop = store.follow(told.put)
    append(store, a_note("a"))
    heard_until(told, store.reader().log.head().sequence)
    stop()
    while not told.empty():
        told.get()

    append(store, a_note("b"))
    store.close()

    assert told.empty()
