"""Run `python -m benchmarks.knowledge`: what is promised of knowledge, measured.

The graph is random: half of the concepts have a score of their own, one of them is a hub with a
tenth of all relationships, and each of the others has about as many. A figure is the median
over calls; as everything shares the machine, the processor's time stands beside the clock's.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time

from rich.console import Console

import stratagem
from benchmarks import texts
from benchmarks.results import Figure, report
from stratagem import Stratagem
from stratagem.engine.events import Draft
from stratagem.errors import StratagemError
from stratagem.knowledge import certainty
from stratagem.knowledge.service import Knowledge
from stratagem.knowledge.spaces import (
    CONCEPT_CREATED,
    CONCEPTS,
    RELATIONSHIP_CREATED,
    RELATIONSHIPS,
    relationship_key,
)
from stratagem.storage.contract import Transaction, WriteRequest
from stratagem.storage.views import find_branch

_LABELS = ("prerequisite", "prerequisite", "relates_to", "relates_to", "includes")
_BATCH = 1_000
_CALLS = 200


def main() -> int:
    """Fill a database, measure, and print; 0 when no promise was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.knowledge", description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="concepts; relationships × 5")
    size = parser.parse_args().size
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "knowledge.db")
        with stratagem.open(path, durability="fast") as db:
            embedder = db.runtime.foundation.index.embedder
            assert embedder is not None
            embedder.load()
            ids = _filled(db, size)
            figures = list(_figures(db, ids))
    Console(width=120).print(report(figures))
    return 1 if any(figure.passed is False for figure in figures) else 0


def _filled(db: Stratagem, size: int) -> list[str]:
    draw = random.Random(1)
    told = (text for _, text in texts.entries(size))
    ids = [f"00000000-0000-4000-8000-{number:012x}" for number in range(size)]
    for begin in range(0, size, _BATCH):
        drafts = [
            draft
            for number in range(begin, min(begin + _BATCH, size))
            for draft in _concept(draw, number, ids[number], next(told))
        ]
        _append(db, drafts)
    relations = _relations(draw, ids)
    while batch := [draft for _, draft in zip(range(_BATCH), relations, strict=False)]:
        _append(db, batch)
    return ids


def _concept(
    draw: random.Random, number: int, concept_id: str, explanation: str
) -> Iterator[Draft]:
    content = {
        "name": f"{' '.join(explanation.split()[:3])} {number}",
        "explanation": explanation,
        "area": f"Area {number % 20}",
        "topic": f"Topic {number % 200}",
        "subtopic": f"Subtopic {number % 1_000}",
        "created_at": 1_700_000_000_000_000 + number,
    }
    if number % 2:
        content["certainty_score"] = draw.randrange(101)
    yield Draft(CONCEPT_CREATED, content, CONCEPTS, concept_id)
    if not number % 2:
        yield certainty.draft(concept_id, draw.randrange(40, 80))


def _relations(draw: random.Random, ids: list[str]) -> Iterator[Draft]:
    made: set[str] = set()
    while len(made) < 5 * len(ids):
        label = draw.choice(_LABELS)
        # From lower to higher: prerequisites without cycles.
        source, target = sorted(draw.sample(range(len(ids)), 2))
        if len(made) < len(ids) // 20:
            source = 0
        key = relationship_key(ids[source], ids[target], label)
        if key not in made and source != target:
            made.add(key)
            content = {
                "source_id": ids[source],
                "target_id": ids[target],
                "relationship_type": label,
                "strength": round(draw.random(), 2),
            }
            yield Draft(RELATIONSHIP_CREATED, content, RELATIONSHIPS, key)


def _append(db: Stratagem, drafts: list[Draft]) -> None:
    def work(transaction: Transaction) -> None:
        transaction.append(find_branch(transaction.branches, "default"), drafts)

    db.runtime.foundation.store.write(work, WriteRequest("benchmark"))


def _figures(db: Stratagem, ids: list[str]) -> Iterator[Figure]:
    knowledge, size = db.knowledge, len(ids)
    db.memory.fork("trial")
    for branch in ("default", "trial"):
        for case, run, limit in _walks(knowledge, ids, branch):
            yield _figure(f"{case}, {branch}", size, run, limit)
    for case, run in _lists(knowledge):
        yield _figure(case, size, run, None)
    yield _create(db, size)


def _walks(
    knowledge: Knowledge, ids: list[str], branch: str
) -> tuple[tuple[str, Callable[[int], object], float], ...]:
    draw = random.Random(2)
    some, others = ([draw.choice(ids[1:]) for _ in range(_CALLS)] for _ in range(2))
    related, chain = knowledge.get_related_concepts, knowledge.get_concept_chain
    head = f"@{knowledge.get_server_stats().event_store['total_events']}"
    return (
        ("related", lambda n: related(some[n], branch=branch), 2),
        ("related to a hub", lambda _: related(ids[0], branch=branch), 2),
        (
            "prerequisites, depth 5",
            lambda n: knowledge.get_prerequisites(some[n], depth=5, branch=branch),
            10,
        ),
        ("shortest path", lambda n: chain(some[n], others[n], max_depth=10, branch=branch), 5),
        ("path from a hub", lambda n: chain(ids[0], others[n], max_depth=10, branch=branch), 5),
        # What is asked for a moment is counted each time; the present is kept between writes.
        ("hierarchy", lambda _: knowledge.list_hierarchy(branch=branch, as_of=head), 50),
        ("hierarchy, kept", lambda _: knowledge.list_hierarchy(branch=branch), 50),
    )


def _lists(knowledge: Knowledge) -> tuple[tuple[str, Callable[[int], object]], ...]:
    queries = texts.queries(_CALLS)
    return (
        ("recent", lambda _: knowledge.get_recent_concepts()),
        ("by certainty", lambda _: knowledge.get_concepts_by_certainty()),
        ("part of a name", lambda n: knowledge.search_concepts_exact(name=f"{n}7")),
        ("by meaning", lambda n: knowledge.search_concepts_semantic(queries[n].text)),
        (
            "by meaning, certain",
            lambda n: knowledge.search_concepts_semantic(queries[n].text, min_certainty=95),
        ),
    )


def _figure(case: str, size: int, run: Callable[[int], object], limit_ms: float | None) -> Figure:
    clock, processor = _times(run)
    return Figure(
        "knowledge",
        case,
        size,
        clock,
        "s",
        None,
        f"≤ {limit_ms:g} ms" if limit_ms else "",
        passed=clock <= limit_ms / 1_000 if limit_ms else None,
        note=f"{case}: {processor * 1_000:.2f} ms of processor",
    )


def _create(db: Stratagem, size: int) -> Figure:
    explain = next(texts.entries(1))[1]
    ours, _ = _times(lambda n: db.knowledge.create_concept(f"new {n}", explain, area="Area 1"))
    store, _ = _times(lambda n: db.memory.store(f"new {n}", explain, tags=["Area 1"]))
    return Figure(
        "knowledge", "create, beside a memory store", size, ours, "s", store, "≤ 3 × a store",
        passed=ours <= 3 * store,
    )  # fmt: skip


def _times(run: Callable[[int], object]) -> tuple[float, float]:
    """Return the median time by the clock and by the processor."""
    clock, processor = [], []
    for number in range(_CALLS):
        began = perf_counter(), thread_time()
        try:
            run(number)
        except StratagemError as error:
            if error.code != "path_not_found":
                raise
        clock.append(perf_counter() - began[0])
        processor.append(thread_time() - began[1])
    return median(clock), median(processor)


if __name__ == "__main__":
    raise SystemExit(main())
