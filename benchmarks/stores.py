"""The two stores side by side: do they find the same, and how fast is each?

Run with `python -m benchmarks.stores`; it starts a PostgreSQL server of its own unless one is named
with `--db`. `--vectors N` also compares the ways to search many vectors; `--own-vectors N` measures
instead a collection of vectors in PostgreSQL beside NumPy, and `--sizes` how many bytes an event
takes in each table of PostgreSQL.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import stratagem
from benchmarks import results, texts
from benchmarks.measuring import Clock
from benchmarks.rows.vectors import measure_searches
from stratagem.search.vectors import VectorCache
from stratagem.storage.contract import Transaction, WriteRequest

K = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", help="The address of a PostgreSQL server.")
    parser.add_argument("--texts", type=int, default=5_000)
    parser.add_argument("--queries", type=int, default=90)
    parser.add_argument("--vectors", type=int, default=0)
    parser.add_argument("--own-vectors", type=int, default=0)
    parser.add_argument("--sizes", action="store_true", help="What an event takes; packs tables.")
    given = parser.parse_args()
    with server(given.db) as address, tempfile.TemporaryDirectory() as folder:
        workspace = f"benchmark-{os.getpid()}"
        places = {"SQLite": str(Path(folder) / "a.db"), "PostgreSQL": f"{address}#{workspace}"}
        databases = {name: stratagem.open(place) for name, place in places.items()}
        try:
            if given.sizes:
                print_sizes(databases["PostgreSQL"], given.texts)
                return
            if given.own_vectors:
                print_own_vectors(databases["PostgreSQL"], given.own_vectors)
                return
            compare(databases, given.texts, given.queries)
            if given.vectors:
                compare_vectors(databases["PostgreSQL"], given.vectors)
        finally:
            for database in databases.values():
                database.close()


@contextmanager
def server(address: str | None) -> Iterator[str]:
    if address:
        yield address
        return
    from tests.postgres import Server

    # As durable as the other store: what is measured is what is promised.
    own = Server.create(fsync="on", synchronous_commit="on", full_page_writes="on", autovacuum="on")
    try:
        yield own.address
    finally:
        own.destroy()


def print_sizes(db: stratagem.Stratagem, count: int) -> None:
    """Say what an event takes with everything made of it, in tables that are freshly packed."""
    items = [{"key": key, "value": text} for key, text in texts.entries(count)]
    for at in range(0, count, 500):
        db.memory.store(items=items[at : at + 500])  # type: ignore[arg-type]
    db.runtime.foundation.index.embed_waiting(lambda *_: None)
    store: Any = db.runtime.foundation.store
    store.index_vectors(at_least=count)
    with store.connect() as connection:
        connection.execute("VACUUM FULL")
        rows = connection.execute(
            "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class"
            " WHERE relnamespace = 'stratagem'::regnamespace AND relkind = 'r' ORDER BY 2 DESC"
        ).fetchall()
        near = connection.execute(
            "SELECT pg_relation_size($1::regclass)", (f"vectors_near_{store.number}_256",)
        ).fetchone()
    words = sum(len(str(item["value"]).split()) for item in items) / count
    print(f"{count:,} texts of {words:.0f} words; bytes for each: table, indexes")
    for name, table, indexes in rows:
        if table + indexes > 10 * count:
            print(f"  {name:12} {table / count:8,.0f} {indexes / count:8,.0f}")
    print(f"  {'all':12} {sum(row[1] + row[2] for row in rows) / count:8,.0f}", end="")
    print(f", of which the HNSW index {near[0] / count:,.0f}" if near else "")


def print_own_vectors(db: stratagem.Stratagem, count: int) -> None:
    """Print recall and times of searches in a collection, beside NumPy's exact answers."""
    figures = [*measure_searches(db, count, Clock(), with_usearch=False)]
    Console(width=120).print(results.report(figures))


def compare(databases: dict[str, stratagem.Stratagem], count: int, asked: int) -> None:
    items = [{"key": key, "value": text} for key, text in texts.entries(count)]
    questions = texts.queries(asked)
    found: dict[str, dict[str, list[list[str]]]] = {}
    print(f"{count:,} texts, {asked} questions; the median of each")
    for name, db in databases.items():
        begun = time.perf_counter()
        for at in range(0, count, 500):
            db.memory.store(items=items[at : at + 500])  # type: ignore[arg-type]
        loading = count / (time.perf_counter() - begun)
        db.runtime.foundation.index.embed_waiting(lambda *_: None)
        refresh(db)
        found[name] = {
            mode: searched(db, questions, mode) for mode in ("words", "words and meaning")
        }
        row(name, "load, texts/s", f"{loading:,.0f}")
    compare_searches(databases, questions)
    for name, db in databases.items():
        measure(name, db)
    first, second = found.values()
    for mode, answers in first.items():
        shares = [share(one, other) for one, other in zip(answers, second[mode], strict=True)]
        same = sum(one == other for one, other in zip(answers, second[mode], strict=True))
        print(
            f"top-{K} overlap, {mode:18} {statistics.fmean(shares):.4f}"
            f"   the same ten in the same order: {same} of {len(shares)}"
        )


def compare_searches(
    databases: dict[str, stratagem.Stratagem], questions: list[texts.Query]
) -> None:
    """Ask every question of all stores in turn, so that what else the machine does hits both."""
    taken: dict[str, list[float]] = {name: [] for name in databases}
    used: dict[str, list[float]] = {name: [] for name in databases}
    for question in questions * 2:
        for name, db in databases.items():
            begun, before = time.perf_counter(), time.process_time()
            db.memory.search(question.text, k=K)
            taken[name].append(time.perf_counter() - begun)
            used[name].append(time.process_time() - before)
    medians = {name: 1000 * statistics.median(each) for name, each in taken.items()}
    for name, each in medians.items():
        row(name, "search, p50 in turn, ms", f"{each:.2f}")
        row(name, "  processor, client, ms", f"{1000 * statistics.median(used[name]):.2f}")
    row("PostgreSQL", "search, times SQLite's", f"{medians['PostgreSQL'] / medians['SQLite']:.2f}")


def refresh(db: stratagem.Stratagem) -> None:
    """Let the server count what was loaded, as it would by itself after a minute."""
    store: Any = db.runtime.foundation.store
    if hasattr(store, "number"):
        with store.connect() as connection:
            connection.execute("ANALYZE")


def searched(db: stratagem.Stratagem, questions: list[texts.Query], mode: str) -> list[list[str]]:
    index = db.runtime.foundation.index
    embedder = index.embedder
    if mode == "words":
        index.embedder = None
    try:
        return [[hit.key or "" for hit in db.memory.search(each.text, k=K)] for each in questions]
    finally:
        index.embedder = embedder


def share(one: list[str], other: list[str]) -> float:
    return len(set(one) & set(other)) / max(len(one), len(other)) if one or other else 1.0


def measure(name: str, db: stratagem.Stratagem) -> None:
    memory = db.memory
    keys = [key for key, _ in texts.entries(200)]
    row(name, "recall, ms", f"{median(lambda n: memory.recall(keys[n % 200]), 300):.3f}")
    for rarity in ("rare", "mid", "common"):
        wanted = texts.queries(20, (rarity,))  # type: ignore[arg-type]
        taken = median(lambda n, wanted=wanted: memory.search(wanted[n % 20].text), 40)
        row(name, f"search, {rarity} words, ms", f"{taken:.2f}")
    row(
        name, "store, one writer, ms", f"{median(lambda n: memory.store(f'x{n}', 'text'), 100):.2f}"
    )
    begun = time.perf_counter()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: memory.store(f"y{n}", "text"), range(1_000)))
    row(name, "store, 16 threads, writes/s", f"{1_000 / (time.perf_counter() - begun):,.0f}")
    logged = [text for _, text in texts.entries(1_000)]
    taken = median(lambda n: log_event(db, "alone", logged[n]), 100)
    row(name, "log, one writer, events/s", f"{1_000 / taken:,.0f}")
    begun, used = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: log_event(db, f"session {n % 16}", logged[n]), range(1_000)))
    row(name, "log, 16 threads, events/s", f"{1_000 / (time.perf_counter() - begun):,.0f}")
    row(name, "  processor, client, µs each", f"{1_000 * (time.process_time() - used):,.0f}")
    row(name, "fork, ms", f"{median(lambda n: memory.branch('fork', name=f'f{n}'), 30):.2f}")


def log_event(db: stratagem.Stratagem, session: str, text: str) -> None:
    db.memory.log("message", {"role": "user", "content": text}, session=session)


def compare_vectors(db: stratagem.Stratagem, count: int) -> None:
    """Compare pgvector, exact and indexed, with the file that a server could keep of its own."""
    store: Any = db.runtime.foundation.store
    draw = np.random.default_rng(7)
    centres = draw.normal(size=(200, 256)).astype(np.float32)
    print(f"\n{count:,} vectors of 256 numbers")
    sequences = append_texts(db, count)
    rows = centres[draw.integers(0, 200, count)] + draw.normal(size=(count, 256)) * 0.7
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    begun = time.perf_counter()
    for at in range(0, count, 1_000):
        part = dict(zip(sequences[at : at + 1_000], rows[at : at + 1_000], strict=True))
        keep(store, part)
    print(f"  kept without an index   {count / (time.perf_counter() - begun):8,.0f} /s")
    refresh(db)
    questions = (
        rows[draw.integers(0, count, 30)] + draw.normal(size=(30, 256)).astype(np.float32) * 0.02
    )
    questions = questions.astype(np.float32)
    exact = near(db, questions, "pgvector, exact")
    local(db, questions, exact)
    begun = time.perf_counter()
    store.index_vectors(at_least=1)
    print(f"  building HNSW           {time.perf_counter() - begun:8.1f} s")
    indexed = near(db, questions, "pgvector, HNSW")
    overlap = statistics.fmean(share(a, b) for a, b in zip(exact, indexed, strict=True))
    print(f"  recall@10 of HNSW       {overlap:8.3f}")
    begun = time.perf_counter()
    more = append_texts(db, 1_000)
    keep(store, dict(zip(more, rows[:1_000], strict=True)))
    print(f"  kept with an index      {1_000 / (time.perf_counter() - begun):8,.0f} /s")


def append_texts(db: stratagem.Stratagem, count: int) -> list[int]:
    """Append events whose texts wait for a vector; return their sequences."""
    index = db.runtime.foundation.index
    embedder, index.embedder = index.embedder, None
    begun = time.monotonic_ns()
    try:
        for at in range(0, count, 500):
            numbers = range(at, min(at + 500, count))
            items = [{"key": f"v{begun}-{number}", "value": "vector"} for number in numbers]
            db.memory.store(items=items)  # type: ignore[call-overload]
        return sorted(db.runtime.foundation.store.reader().vectors.pending(count))
    finally:
        index.embedder = embedder


def keep(store: Any, vectors: dict[int, Any]) -> None:
    def work(transaction: Transaction) -> None:
        transaction.vectors.add({at: row.tobytes() for at, row in vectors.items()})

    store.write(work, WriteRequest("benchmarks"))


def near(db: stratagem.Stratagem, questions: Any, name: str) -> list[list[str]]:
    store: Any = db.runtime.foundation.store
    answers, taken = [], []
    for question in questions:
        with store.snapshot() as reader:
            view = db.runtime.foundation.views.view(reader, "default")
            begun = time.perf_counter()
            found = reader.vector_comparer.nearest(
                view, question.tobytes(), spaces=None, tags=(), depth=200
            )
            taken.append(time.perf_counter() - begun)
        answers.append([str(each.sequence) for each in found[:K]])
    print(f"  {name:22} {statistics.median(taken) * 1000:9.2f} ms for the nearest 200")
    return answers


def local(db: stratagem.Stratagem, questions: Any, exact: list[list[str]]) -> None:
    """Measure the file of vectors: how long it takes to make, and to search."""
    store: Any = db.runtime.foundation.store
    with tempfile.TemporaryDirectory() as folder:
        vectors = VectorCache(Path(folder) / "vectors", 256)
        answers, taken = [], []
        for question in questions:
            with store.snapshot() as reader:
                view = db.runtime.foundation.views.view(reader, "default")
                begun = time.perf_counter()
                none = np.zeros(0, np.int64)
                found = vectors.compare(
                    reader, view, question, none, spaces=None, sequences=None, depth=200
                )
                taken.append(time.perf_counter() - begun)
            answers.append([str(at) for at in found.near.sequences[:K].tolist()])
    overlap = statistics.fmean(share(a, b) for a, b in zip(exact, answers, strict=True))
    taken_ms = statistics.median(taken) * 1000
    print(f"  a file of one's own     {taken_ms:8.2f} ms, recall {overlap:.3f},")
    print(f"    after reading all     {taken[0]:8.1f} s")


def median(work: Callable[[int], object], times: int) -> float:
    """Return the median time of a piece of work, in milliseconds."""
    taken = []
    for number in range(times):
        begun = time.perf_counter()
        work(number)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken) * 1000


def row(name: str, what: str, value: str) -> None:
    print(f"  {name:11} {what:30} {value:>10}")


if __name__ == "__main__":
    main()
