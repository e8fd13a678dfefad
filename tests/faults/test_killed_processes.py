"""`kill -9` at any moment loses nothing that was acknowledged, and leaves nothing by half."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem.operation import Caller
from tests.faults.conftest import Say
from tests.faults.opening import examine
from tests.faults.processes import Voice, child, hear_any
from tests.faults.workload import (
    WORDS,
    Acknowledged,
    Durability,
    Ledger,
    Worker,
    verify,
)

THREADS = 3


def write_until_killed(
    tell: Voice, path: str, name: str, seed: int, durability: Durability
) -> None:
    db = stratagem.open(path, durability=durability, embedder="none")
    for number in range(THREADS):
        worker = Worker(db, f"{name}.{number}", seed, tell)
        threading.Thread(target=for_ever, args=[worker.step]).start()


def for_ever(work: Callable[[], Any]) -> None:
    while True:
        work()


def round_of_killing(path: Path, ledger: Ledger, name: str, draw: random.Random) -> None:
    """Let one or two processes write, and kill each after some of its acknowledged writes."""
    durability: Durability = draw.choice(["full", "fast"])
    with ExitStack() as stack:
        writers = [
            child(write_until_killed, str(path), f"{name}{each}", draw.getrandbits(32), durability)
            for each in range(draw.choice([1, 2]))
        ]
        left = {stack.enter_context(writer): draw.randrange(1, 100) for writer in writers}
        while left:
            for writer, told in hear_any(list(left)):
                ledger.note(told)
                left[writer] -= isinstance(told, Acknowledged)
                if not left[writer]:
                    time.sleep(draw.random() / 200)
                    writer.kill()
                    del left[writer]
                    for last in writer.hear_rest():
                        ledger.note(last)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("databases", "rounds"), [(1, 4), pytest.param(8, 10, marks=pytest.mark.slow)]
)
def test_nothing_acknowledged_is_lost_when_writers_are_killed(
    tmp_path: Path, seed: int, say: Say, databases: int, rounds: int
) -> None:
    draw, acknowledged, unanswered = random.Random(seed), 0, 0
    for database in range(databases):
        path, ledger = tmp_path / f"killed{database}.db", Ledger()
        for number in range(rounds):
            round_of_killing(path, ledger, f"r{number}", draw)
            unanswered += len(ledger.unanswered)
            verify(path, ledger)
        acknowledged += len(ledger.acknowledged)

    say(
        f"{databases * rounds} rounds of kill -9, {acknowledged} acknowledged writes all there, "
        f"{unanswered} unanswered ones whole or absent, and written once when repeated"
    )
    assert unanswered


def kill_at_random(work: Callable[..., None], draw: random.Random, *arguments: Any) -> list[Any]:
    """Let a process work for a moment, kill it, and return what it told."""
    with child(work, *arguments) as process:
        told = [process.hear()]
        time.sleep(draw.random() * 0.15)
        process.kill()
        return [*told, *process.hear_rest()]


def create_until_killed(tell: Voice, folder: str, name: str) -> None:
    tell("begun")
    number = 0
    while True:
        path = Path(folder) / f"{name}.{number}.db"
        number += 1
        tell(str(path))
        with stratagem.open(str(path), embedder="none") as db:
            tell(db.memory.store("city", "Oslo").version)


@pytest.mark.parametrize("rounds", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_a_database_whose_maker_was_killed_is_whole(tmp_path: Path, seed: int, rounds: int) -> None:
    draw = random.Random(seed)
    for number in range(rounds):
        told = kill_at_random(create_until_killed, draw, str(tmp_path), f"new{number}")[1:]
        paths = [place for place, each in enumerate(told) if isinstance(each, str)]
        for place in paths[-3:]:
            acknowledged = told[place + 1 : place + 2]
            with stratagem.open(str(told[place]), embedder="none") as db:
                entry = db.memory.recall("city")
                assert entry is not None or not acknowledged
                assert db.memory.store("city", "Bergen").version in {2, 3}
                assert examine(db) == []


def rebuild_until_killed(tell: Voice, path: str) -> None:
    db = stratagem.open(path, embedder="none")
    tell("begun")
    for_ever(lambda: db.runtime.foundation.store.rebuild(lambda *_: None))


def test_a_rebuild_that_was_killed_leaves_the_old_read_models(tmp_path: Path, seed: int) -> None:
    path, ledger, draw = tmp_path / "rebuilt.db", Ledger(), random.Random(seed)
    with stratagem.open(str(path), embedder="none", durability="fast") as db:
        worker = Worker(db, "w", seed, ledger.note)
        for _ in range(100):
            worker.step()

    for _ in range(4):
        kill_at_random(rebuild_until_killed, draw, str(path))
        verify(path, ledger)


def purge_until_killed(tell: Voice, path: str, keys: list[str]) -> None:
    db = stratagem.open(path, embedder="none", durability="fast")
    tell("begun")
    for key in keys:
        db.memory.purge(key)
        tell(key)
    threading.Event().wait()


def test_a_purge_that_was_killed_erased_everything_or_nothing(tmp_path: Path, seed: int) -> None:
    path, draw = tmp_path / "purged.db", random.Random(seed)
    keys = [f"key{number:03}" for number in range(60)]
    with stratagem.open(str(path), embedder="none", durability="fast") as db:
        for turn in range(3):
            items = [{"key": key, "value": f"token{key} {turn}"} for key in keys]
            db.memory.store(items=items)  # type: ignore[arg-type]

    for _ in range(4):
        purged = kill_at_random(purge_until_killed, draw, str(path), keys)[1:]
        with stratagem.open(str(path), embedder="none") as db:
            payloads = [event.payload or b"" for event in db.runtime.foundation.store.log()]
            left = {key: sum(f"token{key}".encode() in each for each in payloads) for key in keys}
            assert set(left.values()) <= {0, 3}, "a key was erased by half"
            assert not any(left[key] for key in purged), "an erased key is back"
            assert examine(db) == []
        content = path.read_bytes()
        assert not any(f"token{key}".encode() in content for key in purged)
        keys = [key for key in keys if left[key]]


def embed_until_killed(tell: Voice, path: str, name: str) -> None:
    """Write texts and search, so that vectors are made and the vector file is written."""
    db = stratagem.open(path, embedder="static", durability="fast")
    tell("begun")
    draw = random.Random(name)
    number = 0
    while True:
        number += 1
        items = [
            {"key": f"{draw.randrange(200)}", "value": " ".join(draw.choices(WORDS, k=6))}
            for _ in range(draw.randrange(1, 30))
        ]
        unique = list({item["key"]: item for item in items}.values())
        db.memory.store(items=unique)  # type: ignore[arg-type]
        db.memory.search(draw.choice(WORDS))


def backfill_until_killed(tell: Voice, path: str) -> None:
    """Throw all vectors away and make them again, over and over."""
    db = stratagem.open(path, embedder="static", durability="fast")
    index = db.runtime.foundation.index
    name = index.embedder_name
    assert name is not None
    tell("begun")
    while True:
        db.runtime.foundation.write(
            Caller(authority="operator"),
            lambda transaction: transaction.vectors.change_embedder(name),
        )
        index.embed_waiting(lambda *_: None)
        db.memory.search("river")


def found(path: Path) -> list[list[tuple[str | None, float]]]:
    with stratagem.open(str(path), embedder="static") as db:
        db.runtime.foundation.index.embed_waiting(lambda *_: None)
        questions = ["river valley", "stone", "a boat on the water", "trees"]
        return [
            [(hit.key, hit.score) for hit in db.memory.search(question, k=20)]
            for question in questions
        ]


@pytest.mark.parametrize("rounds", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_vectors_are_right_after_their_maker_was_killed(
    tmp_path: Path, seed: int, rounds: int
) -> None:
    path, draw = tmp_path / "vectors.db", random.Random(seed)
    for number in range(rounds):
        kill_at_random(embed_until_killed, draw, str(path), f"{seed} {number}")
        kill_at_random(backfill_until_killed, draw, str(path))

        after_the_kill = found(path)
        Path(f"{path}-vectors").unlink()
        assert after_the_kill == found(path)
        with stratagem.open(str(path), embedder="static") as db:
            assert db.memory.status().unembedded == 0
            assert examine(db) == []
