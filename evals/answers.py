"""How long is the answer to a search, and how many hits does it hold?

Whatever an answer says, a conversation pays for. The pages of `docs`, cut into notes of two
lengths, are searched for their headings. Each answer is measured as a model gets it, with long
values shown by the passage that matches, and as it would be with the values whole.
"""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any, Final

from rich.table import Table

import stratagem
from evals.suites import Figure, Options, Outcome, Suite
from stratagem import limits
from stratagem.answers import chars_of, whole
from stratagem.operations import find

__all__ = ["SUITE"]

_DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
_NOTE_CHARS: Final = (1_500, 4_000)
_TOP: Final = 10
_QUERIES_MAX: Final = 40
_SEARCH: Final = "strata_search"


def run(_options: Options) -> Outcome:
    """Measure the answers for notes of each length."""
    table = Table(title=f"Answers to a search, k={_TOP}, in characters (median)")
    for column in ("notes of", "text", "structured", "values whole", "hits", "hits, values whole"):
        table.add_column(column, justify="right")
    pages = [path.read_text("utf-8") for path in sorted(_DOCS.glob("*.md"))]
    queries = [
        line.lstrip("# ") for page in pages for line in page.splitlines() if line.startswith("## ")
    ]
    hits: list[float] = []
    for chars in _NOTE_CHARS:
        figures = _measure(pages, queries[:_QUERIES_MAX], chars)
        hits.append(figures[3])
        table.add_row(f"{chars:,}", *(f"{each:,.0f}" for each in figures))
    return Outcome([Figure("hits of an answer", min(hits), float(_TOP))], [table])


def _measure(pages: list[str], queries: list[str], chars: int) -> list[float]:
    """Return the medians for notes of a length."""
    notes = [page[at : at + chars] for page in pages for at in range(0, len(page), chars)]
    rows = []
    with stratagem.open(":memory:") as db:
        items: list[Any] = [{"key": f"note/{at}", "value": note} for at, note in enumerate(notes)]
        db.memory.store(items=items)
        for query in queries:
            arguments = {"query": query, "k": _TOP}
            answer = db.call(_SEARCH, arguments)
            with whole():
                full = db.call(_SEARCH, arguments)
            if len(full["results"]) == _TOP:
                rows.append(_sizes(answer, full))
    return [median(column) for column in zip(*rows, strict=True)]


def _sizes(answer: dict[str, Any], full: dict[str, Any]) -> tuple[float, ...]:
    text = find(_SEARCH).describe(answer)
    ends = accumulate(chars_of(hit) for hit in full["results"])
    fitting = sum(end <= limits.ANSWER_CHARS_DEFAULT for end in ends)
    return len(text), chars_of(answer), chars_of(full), len(answer["results"]), fitting


SUITE: Final = Suite("answers", "how long are answers to a search?", run)
