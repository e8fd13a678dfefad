"""`kill -9` at any moment loses nothing that was acknowledged."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import stratagem
from tests.faults.processes import Voice, child, hear_any
from tests.faults.workload import Acknowledged, Durability, Ledger, Worker, verify

THREADS = 3


def write_until_killed(tell: Voice, path: str, name: str, seed: int, durability: str) -> None:
    db = stratagem.open(path, durability=durability, embedder="none")  # type: ignore[arg-type]
    for number in range(THREADS):
        worker = Worker(db, f"{name}.{number}", seed, tell)
        threading.Thread(target=work_for_ever, args=[worker]).start()


def work_for_ever(worker: Worker) -> None:
    while True:
        worker.step()


def round_of_killing(path: Path, ledger: Ledger, name: str, draw: random.Random) -> None:
    """Let one or two processes write, and kill each after some of its acknowledged writes."""
    durability: Durability = draw.choice(["full", "fast"])
    with ExitStack() as stack:
        left = {
            stack.enter_context(
                child(write_until_killed, str(path), f"{name}{letter}", draw.getrandbits(32), durability)
            ): draw.randrange(1, 120)
            for letter in "ab"[: draw.choice([1, 2])]
        }
        while left:
            for writer, told in hear_any(list(left)):
                ledger.note(told)
                left[writer] -= isinstance(told, Acknowledged)
                if not left[writer]:
                    writer.kill()
                    for last in writer.hear_rest():
                        ledger.note(last)
                    del left[writer]


def kill_and_verify(folder: Path, seed: int, rounds: int) -> Iterator[tuple[int, int]]:
    """Kill writers of one database again and again; yield what each round left."""
    draw, ledger = random.Random(seed), Ledger()
    for number in range(rounds):
        round_of_killing(folder / "killed.db", ledger, f"r{number}", draw)
        yield verify(folder / "killed.db", ledger), len(ledger.acknowledged)


def test_nothing_acknowledged_is_lost_when_writers_are_killed(tmp_path: Path) -> None:
    for _ in kill_and_verify(tmp_path, 1, 8):
        pass
