"""Does a search find entries of a few words, and nothing where nothing was stored?

Nine small stores of preferences, facts and settings, each with questions that one of its entries
answers, questions of its kind that none does (near), and others (far: other subjects, nonsense),
which every store of the half is asked.
The same facts are logged as events, too, each a text of key and value, and as messages of one
session. The questions are also asked as an agent does, about "the user". The numbers of
`search.relevance` and `search.questions` were chosen on seven of the stores, the tuning half.
"""

from __future__ import annotations

import re
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
_SEPARATORS: Final = re.compile(r"[/._]")
_FORMS: Final = ("entries", "events", "messages")
# How an agent says what its user would say of themselves.
_THIRD_PERSON: Final = (
    (re.compile(r"\b(?:my|our)\b", re.IGNORECASE), "the user's"),
    (re.compile(r"\b(?:do|did|am|are) (?:I|we)\b", re.IGNORECASE), "does the user"),
    (re.compile(r"\b(?:I|we|me|us)\b"), "the user"),
)
_FOUND_MIN: Final = {"tuning": 68.0, "report": 65.0}
_ANSWERED_MOST: Final = {"near": 50.0, "far": 10.0}


class _Answer(NamedTuple):
    """What a question got."""

    kind: str
    hits: list[str]
    wanted: frozenset[str]

    def finds(self, k: int) -> float:
        return 100.0 * (not self.wanted.isdisjoint(self.hits[:k]))


def run(options: Options) -> Outcome:
    """Ask every question of one half of the stores, of each form of the facts."""
    outcome = Outcome([])
    for form in (*_FORMS, *(f"{form}, asked about the user" for form in _FORMS)):
        answers = list(_ask(options.half, options.embedder, form))
        found = [each.finds(10) for each in answers if each.kind == _STORED]
        name = f"Found as {form}"
        outcome.figures.append(Figure(name, sum(found) / len(found), _FOUND_MIN[options.half]))
        for kind, most in _ANSWERED_MOST.items():
            shares = [100.0 * bool(each.hits) for each in answers if each.kind == kind]
            name = f"Questions about nothing stored that get a hit, {form}, {kind}"
            outcome.figures.append(Figure(name, sum(shares) / len(shares), most=most))
        outcome.tables.append(_table(f"Facts of a few words as {form}, {options.half}", answers))
    return outcome


def _ask(half: str, embedder: str, form: str) -> Iterator[_Answer]:
    form, _, third_person = form.partition(", ")
    entries, questions = _rows("entries.jsonl"), _rows("entry_questions.jsonl")
    if third_person:
        questions = [each | {"question": _in_third_person(each["question"])} for each in questions]
    for store in dict.fromkeys(each["store"] for each in questions if each["half"] == half):
        with stratagem.open(":memory:", embedder=embedder) as db:
            facts = [each for each in entries if each["store"] == store]
            keys = {_write(db, each, form): each["key"] for each in facts}
            for each in questions:
                if each["store"] == store or (each["kind"], each["half"]) == ("far", half):
                    hits = db.call("strata_search", {"query": each["question"]})["results"]
                    found = [keys[hit["version"]] for hit in hits]
                    yield _Answer(each["kind"], found, frozenset(each["answers"]))


def _in_third_person(question: str) -> str:
    for pattern, words in _THIRD_PERSON:
        question = pattern.sub(words, question)
    return question


def _write(db: stratagem.Stratagem, fact: dict[str, Any], form: str) -> int:
    """Store or log a fact; return its version."""
    key, value = fact["key"], fact["value"]
    if form == "entries":
        return int(db.memory.store(key, value).version)
    said = value if isinstance(value, str) else orjson.dumps(value).decode()
    text = f"{_SEPARATORS.sub(' ', key)}: {said}"
    if form == "messages":
        message = {"role": "user", "content": text}
        return int(db.memory.log("message", message, session="facts").sequence)
    return int(db.memory.log("observation", text).sequence)


def _rows(name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (_DATA / name).read_bytes().splitlines()]


def _table(title: str, answers: list[_Answer]) -> Table:
    table = Table(title=title, title_justify="left")
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


SUITE: Final = Suite("entries", "facts of a few words, found by questions", run)
