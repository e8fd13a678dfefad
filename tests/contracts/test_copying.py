"""A copy is the same log, whichever stores it is copied between, even if it was interrupted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem import backups
from stratagem.errors import DatabaseCorrupt, ImportRefused
from stratagem.memory.entries import Item
from stratagem.storage.contract import Store, Transaction, WriteRequest
from stratagem.storage.log_copy import copy
from tests import forkserver
from tests.contracts.backends import open_postgres, open_sqlite_file
from tests.contracts.samples import (
    MAIN,
    TESTER,
    Clock,
    Words,
    a_note,
    append,
    events,
    examine,
    live,
    matching,
    notes,
    rebuild,
    text_of,
)
from tests.contracts.test_rebuilding import a_history, everything
from tests.postgres import a_workspace

FILE, SERVER = "sqlite", "postgres"
Openers = dict[str, Callable[..., Store]]


@pytest.fixture
def openers(tmp_path: Path, postgres_address: str) -> Iterator[Openers]:
    """Open stores by name; each begins a second after the one before, as another log."""
    clock = Clock()
    with ExitStack() as stack:

        def file(name: str, **settings: Any) -> Store:
            (tmp_path / name).mkdir(exist_ok=True)
            clock.advance(1)
            store = open_sqlite_file(tmp_path / name, clock, **settings)
            return stack.enter_context(closing(store))

        def server(name: str, **settings: Any) -> Store:
            clock.advance(1)
            store = open_postgres(tmp_path / name, clock, address=postgres_address, **settings)
            return stack.enter_context(closing(store))

        yield {FILE: file, SERVER: server}


def quiet(_done: int, _total: int, _what: str) -> None:
    pass


@pytest.mark.parametrize(
    ("source", "target"), [(FILE, SERVER), (SERVER, FILE), (FILE, FILE), (SERVER, SERVER)]
)
def test_a_copy_shows_and_remembers_what_the_source_does(
    openers: Openers, source: str, target: str
) -> None:
    here = openers[source]("here", indexer=Words("hash-1"))
    here.write(lambda t: t.vectors.change_embedder("hash-1"), TESTER)
    a_history(here)
    append(here, a_note("gone", "secret"))
    here.purge(TESTER, space=notes(), key="gone", sequence=None)
    append(here, a_note("gone", "written anew"))
    request = WriteRequest("ada", "r1", b"f")
    here.write(lambda t: work(t, "once"), request)
    # What waits to be indexed has no vector to be copied yet.
    here.index_backlog(5.0)
    there = openers[target]("there")

    copied = copy(here, there, quiet)

    assert events(there) == events(here)
    assert everything(there) == everything(here)
    assert copied.events == copied.head.sequence == here.reader().log.head().sequence
    assert (copied.requests, copied.vectors) == (1, here.reader().vectors.count())
    assert copy(here, there, quiet) == (0, 0, 0, copied.head)
    assert there.write(lambda t: work(t, "twice"), request) == "once"
    vectors = [
        [(row.sequence, row.vector) for row in store.reader().vectors.after(0, 99)]
        for store in (here, there)
    ]
    assert vectors[0] == vectors[1] != []
    assert matching(there, "secret") == []
    assert examine(there) == []


def work(transaction: Transaction, text: str) -> str:
    transaction.append(live(transaction, MAIN), [a_note("k", text)])
    return text


@pytest.mark.parametrize(("source", "target"), [(FILE, SERVER), (SERVER, FILE)])
def test_a_copy_goes_on_where_it_ended(openers: Openers, source: str, target: str) -> None:
    here, there = openers[source]("here"), openers[target]("there")
    for number in range(30):
        append(here, *(a_note(f"k{number}-{place}", "red") for place in range(100)))

    class Interrupted(Exception):
        pass

    def interrupting(done: int, _total: int, _what: str) -> None:
        if done > 1_500:
            raise Interrupted

    with pytest.raises(Interrupted):
        copy(here, there, interrupting)
    begun = there.reader().log.head().sequence
    append(here, a_note("later", "blue"))
    copied = copy(here, there, quiet)

    assert 1_000 < begun < 3_000
    assert copied.events == here.reader().log.head().sequence - begun
    assert events(there) == events(here)
    assert text_of(there, "later") == "blue"
    rebuild(there)
    assert examine(there) == []


# It says that a part is copied, and waits to be killed: without that it may be done by then.
COPYING = """
import signal, sys
from stratagem import backups
def wait(*_):
    print("moved", flush=True)
    signal.pause()
backups.copy_all(sys.argv[1], sys.argv[2], wait)
"""


def many(number: int) -> list[Item]:
    return [{"key": f"k{number}-{at}", "value": "red"} for at in range(400)]


@pytest.mark.parametrize("to_server", [True, False])
def test_a_copy_whose_process_was_killed_goes_on(
    tmp_path: Path, postgres_address: str, to_server: bool
) -> None:
    places = [str(tmp_path / "a.db"), f"{postgres_address}#{a_workspace()}"]
    source, target = places if to_server else reversed(places)
    with stratagem.open(source, embedder="none") as db:
        for number in range(4):
            db.memory.store(items=many(number), request_id=f"r{number}")
    command = [sys.executable, "-c", COPYING, source, target]

    with forkserver.Process(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    (copied,) = backups.copy_all(source, target, quiet)[0].values()

    assert 0 < copied.events < copied.head.sequence
    with (
        stratagem.open(source, embedder="none") as here,
        stratagem.open(target, embedder="none") as there,
    ):
        stores = here.runtime.foundation.store, there.runtime.foundation.store
        assert events(stores[0]) == events(stores[1])
        there.memory.store(items=many(0), request_id="r0")
        assert stores[1].reader().log.head() == copied.head


@pytest.mark.parametrize(("source", "target"), [(FILE, SERVER), (SERVER, FILE)])
def test_another_log_is_not_written_over(openers: Openers, source: str, target: str) -> None:
    here, there = openers[source]("here"), openers[target]("there")
    append(here, a_note("a", "here"))
    append(there, a_note("b", "there"))

    with pytest.raises(ImportRefused):
        copy(here, there, quiet)

    assert text_of(there, "b") == "there"


def test_what_was_purged_since_is_not_left_in_the_copy(openers: Openers) -> None:
    here, there = openers[FILE]("here"), openers[SERVER]("there")
    append(here, a_note("k", "secret"))
    copy(here, there, quiet)

    here.purge(TESTER, space=notes(), key="k", sequence=None)

    with pytest.raises(ImportRefused, match="purged"):
        copy(here, there, quiet)


def test_events_that_do_not_follow_are_refused(openers: Openers) -> None:
    here, there = openers[FILE]("here"), openers[SERVER]("there")
    append(here, a_note("a", "one"))
    append(here, a_note("b", "two"))

    with pytest.raises(DatabaseCorrupt, match="The source is damaged"):
        there.write(lambda t: t.receive(events(here)[2:]), TESTER)

    assert len(events(there)) == 1
