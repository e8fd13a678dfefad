"""Does debug memory find the bug report that a later one duplicates?

Every older report is kept as an incident; each later duplicate is asked for with its whole text,
through `ranked_solutions`, and scored by where the first report it duplicates stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
from rich.progress import track
from rich.table import Table

import stratagem
from evals.suites import Figure, Options, Outcome, Suite, need
from stratagem import limits
from stratagem.debugging import kinds
from stratagem.engine.events import Draft
from stratagem.storage.contract import Transaction, WriteRequest
from stratagem.storage.views import find_branch

__all__ = ["SUITE", "fill", "report_draft"]

_BATCH: Final = 500
_TOP: Final = 10
# What BM25 with the title as a field of its own reaches on these reports.
MRR_MIN: Final = 61.6
RECALL_MIN: Final = 83.0


def run(options: Options) -> Outcome:
    """Ask for every duplicate, with and without an embedder."""
    folder = need(options.data / "incidents")
    reports = list(_lines(folder / "incidents_dev.jsonl"))
    queries = list(_lines(folder / "queries_dev.jsonl"))
    table = Table(title=f"{len(queries)} duplicates of {len(reports):,} bug reports")
    for column in ("by", "MRR@10", "recall@10"):
        table.add_column(column)
    figures: list[Figure] = []
    for by, embedder in (("words and meaning", "static"), ("words", "none")):
        ranks = _ranks(reports, queries, embedder)
        reciprocal = 100 * sum(1 / rank for rank in ranks if rank) / len(ranks)
        recall = 100 * sum(bool(rank) for rank in ranks) / len(ranks)
        table.add_row(by, f"{reciprocal / 100:.3f}", f"{recall / 100:.3f}")
        if not figures:
            figures = [
                Figure("MRR@10", reciprocal, MRR_MIN),
                Figure("recall@10", recall, RECALL_MIN),
            ]
    return Outcome(figures, [table])


def _ranks(
    reports: list[dict[str, Any]], queries: list[dict[str, Any]], embedder: str
) -> list[int]:
    """Return where the first right report stands for each query; 0 where it is not listed."""
    with stratagem.open(":memory:", durability="fast", embedder=embedder) as db:
        fill(db, [report_draft(report) for report in reports])
        ranks = []
        for query in track(queries, description=f"asking, {embedder}", transient=True):
            answer = db.debugging.ranked_solutions(query["query_text"], {"os": "linux"})
            listed = [match.incident_id for match in answer.incidents[:_TOP]]
            places = [listed.index(each) + 1 for each in query["relevant_ids"] if each in listed]
            ranks.append(min(places, default=0))
    return ranks


def fill(db: stratagem.Stratagem, incidents: Sequence[Draft]) -> None:
    """Add incidents as they are, without fixes."""
    foundation = db.runtime.foundation
    if foundation.index.embedder is not None:
        foundation.index.embedder.load()
    for begin in range(0, len(incidents), _BATCH):
        drafts = incidents[begin : begin + _BATCH]

        def work(transaction: Transaction, drafts: Sequence[Draft] = drafts) -> None:
            transaction.append(find_branch(transaction.branches, "default"), drafts)

        foundation.store.write(work, WriteRequest("evals"))


def report_draft(report: Mapping[str, Any]) -> Draft:
    """Return a bug report as an incident: a title and a summary, and no error of its own."""
    content = {
        "incident_id": report["id"],
        "title": report["title"][: limits.TITLE_CHARS_MAX],
        "summary": report["summary"][: limits.SUMMARY_CHARS_MAX],
    }
    return Draft(kinds.INCIDENT_ADDED, content, kinds.INCIDENTS, report["id"])


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in need(path).read_bytes().splitlines():
        yield orjson.loads(line)


SUITE: Final = Suite("incidents", "the right bug report for a later duplicate of it", run)
