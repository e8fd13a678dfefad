"""Does a search find entries of a few words, and nothing where nothing was stored?

Four small stores of preferences, facts and settings, each with questions that one of its entries
answers, questions of its kind that none does (near), and others (far: other subjects, nonsense).
The numbers of `search.relevance` were chosen on two of the stores, the tuning half.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
from rich.table import Table

import stratagem
from evals.sampling import interval
from evals.suites import Figure, Options, Outcome, Suite

__all__ = ["SUITE"]

_DATA: Final = Path(__file__).parent / "data"
_STORED: Final = "stored"
_FOUND_MIN: Final = {"tuning": 85.0, "report": 68.0}
_ANSWERED_MOST: Final = {"near": 70.0, "far": 25.0}


class _Answer(NamedTuple):
    """What a question got."""

    kind: str
    hits: list[str]
    wanted: frozenset[str]

    def finds(self, k: int) -> float:
        return 100.0 * (not self.wanted.isdisjoint(self.hits[:k]))


def run(options: Options) -> Outcome:
    """Ask every question of one half of the stores."""
    answers = list(_ask(options.half, options.embedder))
    found = [each.finds(10) for each in answers if each.kind == _STORED]
    figures = [Figure("Entries found", sum(found) / len(found), _FOUND_MIN[options.half])]
    for kind, most in _ANSWERED_MOST.items():
        shares = [100.0 * bool(each.hits) for each in answers if each.kind == kind]
        name = f"Questions about nothing stored that get a hit, {kind}"
        figures.append(Figure(name, sum(shares) / len(shares), most=most))
    return Outcome(figures, [_table(options.half, answers)])


def _ask(half: str, embedder: str) -> Iterator[_Answer]:
    entries, questions = _rows("entries.jsonl"), _rows("entry_questions.jsonl")
    for store in dict.fromkeys(each["store"] for each in questions if each["half"] == half):
        with stratagem.open(":memory:", embedder=embedder) as db:
            items = [
                {"key": each["key"], "value": each["value"]}
                for each in entries
                if each["store"] == store
            ]
            db.call("strata_store", {"items": items})
            for each in questions:
                if each["store"] == store:
                    hits = db.call("strata_search", {"query": each["question"]})["results"]
                    keys = [hit["key"] for hit in hits]
                    yield _Answer(each["kind"], keys, frozenset(each["answers"]))


def _rows(name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (_DATA / name).read_bytes().splitlines()]


def _table(half: str, answers: list[_Answer]) -> Table:
    table = Table(title=f"Entries of a few words, {half} half", title_justify="left")
    for column in ("questions", "any hit", "hits", "found@10", "95 %", "@3", "@1"):
        table.add_column(column, justify="left" if column == "questions" else "right")
    for kind in (_STORED, *_ANSWERED_MOST):
        of = [each for each in answers if each.kind == kind]
        row = [
            f"{kind} ({len(of)})",
            f"{100 * sum(bool(each.hits) for each in of) / len(of):.1f}",
            f"{sum(len(each.hits) for each in of) / len(of):.1f}",
        ]
        if kind == _STORED:
            spread = interval([each.finds(10) for each in of])
            row += [f"{spread.mean:.1f}", f"{spread.low:.1f} … {spread.high:.1f}"]
            row += [f"{sum(each.finds(k) for each in of) / len(of):.1f}" for k in (3, 1)]
        table.add_row(*row)
    return table


SUITE: Final = Suite("entries", "entries of a few words, found by questions", run)
