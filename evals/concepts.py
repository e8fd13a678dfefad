"""Are concepts found by questions in other words, and nothing by questions about other subjects?

Two stores: 60 concepts, each explained in a sentence and asked for in other words; and the sections
of this project's own pages, which are long, asked for by what they are about. Both are asked
questions about other subjects. `relevance.NEAR_CONCEPT_FLOOR` was chosen on the tuning half.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
from rich.table import Table

import stratagem
from evals.suites import Figure, Options, Outcome, Suite

__all__ = ["SUITE"]

_FILE: Final = Path(__file__).parent / "data" / "concepts.jsonl"
_PAGES: Final = Path(__file__).resolve().parents[1] / "docs"
# Tables that are made from the code, and figures.
_LEFT_OUT: Final = frozenset({"errors", "limits", "settings", "benchmarks", "cli"})
_SECTION_CHARS: Final = (200, 4_000)
_HITS: Final = 5


def run(options: Options) -> Outcome:
    """Ask the questions of one half."""
    rows = [orjson.loads(line) for line in _FILE.read_bytes().splitlines()]
    concepts = [(row["name"], row["explanation"]) for row in rows if row["kind"] == "concept"]
    asked = [row for row in rows if row["half"] == options.half]
    table = Table(title=f"Concepts, {options.half}", title_justify="left")
    for column in ("store", "questions", "hit@1", "hit@5", "other subjects", "find nothing"):
        table.add_column(column, justify="left" if column == "store" else "right")
    outcome = Outcome([], tables=[table])
    for kind, store in (("concept", concepts), ("page", list(_sections()))):
        found, silent = _ask(store, kind, asked, options.embedder)
        first, five = (sum(place < most for place in found) for most in (1, _HITS))
        table.add_row(
            *(kind, str(len(found)), str(first), str(five), str(len(silent)), str(sum(silent)))
        )
        share = 100.0 * sum(silent) / len(silent)
        outcome.figures.append(Figure(f"Other subjects that find nothing, {kind}", share, 65.0))
        outcome.figures.append(Figure(f"hit@5, {kind}", 100.0 * five / len(found), 45.0))
    return outcome


def _ask(
    store: list[tuple[str, str]], kind: str, asked: list[dict[str, Any]], embedder: str
) -> tuple[list[int], list[bool]]:
    """Return at which place each answer was found, and which other questions found nothing."""
    with stratagem.open(":memory:", embedder=embedder) as db:
        db.knowledge.create_concepts([{"name": name, "explanation": text} for name, text in store])
        found, silent = [], []
        for row in asked:
            if row["kind"] not in {kind, "other"}:
                continue
            hits = db.knowledge.search_concepts_semantic(row["question"], limit=10).results
            if row["kind"] == "other":
                silent.append(not hits)
                continue
            right = [at for at, hit in enumerate(hits) if _answers(hit.name, row)]
            found.append(right[0] if right else len(store))
    return found, silent


def _answers(name: str, row: dict[str, Any]) -> bool:
    """Whether a concept is the one that a question is about; of a page any section is."""
    wanted = row.get("name") or f"{row['page']}: "
    return name == wanted or (row["kind"] == "page" and name.startswith(wanted))


def _sections() -> Iterator[tuple[str, str]]:
    """Return the sections of the pages that are long enough to say something."""
    least, most = _SECTION_CHARS
    for path in sorted(_PAGES.glob("*.md")):
        if path.stem in _LEFT_OUT:
            continue
        for section in re.split(r"\n(?=#{1,3} )", path.read_text("utf-8")):
            heading, _, body = section.partition("\n")
            prose = re.sub(r"```.*?```", "", body, flags=re.DOTALL).strip()
            if len(prose) > least:
                yield f"{path.stem}: {heading.strip('# ')}"[:200], prose[:most]


SUITE: Final = Suite("concepts", "concepts, found by questions in other words", run)
