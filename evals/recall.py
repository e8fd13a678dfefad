"""Does a search find the messages that answer a question?

Each conversation goes into a database of its own, message by message and session by session, as
an agent would log it. Each question is asked as it is. The score of a question is the share of its
evidence among the first k hits. The conversations are those of LoCoMo; `exchanges` has BEAM's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
from rich.progress import track
from rich.table import Table

import stratagem
from evals import exchanges
from evals.sampling import Interval, difference, interval
from evals.suites import Figure, Options, Outcome, Suite, need

__all__ = ["FORMS", "SUITE"]

THRESHOLD: Final = 78.0
K: Final = 10
_K_MAX: Final = 50
_KS: Final = (5, 10, 20, 50)
_CHARS_MAX: Final = 1_000_000
_CATEGORIES: Final = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}

Turn = dict[str, str]

# How a message may be handed over. The first is what a user would do.
FORMS: Final[dict[str, Callable[[Turn], Any]]] = {
    "message": lambda turn: {"text": turn["text"], "when": turn["when"]},
    "text": lambda turn: {"text": turn["text"]},
    "joined": lambda turn: f"{turn['when']} {turn['text']}",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question got."""

    conversation: str
    category: int
    found: tuple[str, ...]
    deep: tuple[str, ...]
    evidence: frozenset[str]

    def recall(self, k: int = K) -> float:
        """Return the share of the evidence among the first k hits, in percent."""
        hits = self.found if k <= K else self.deep
        return 100 * len(self.evidence.intersection(hits[:k])) / len(self.evidence)


def run(options: Options) -> Outcome:
    """Ask every question of every conversation."""
    conversations = _read(options.data)
    hybrid = _ask_all(conversations, options.form, embedder="static")
    lexical = _ask_all(conversations, options.form, embedder="none")
    outcome = Outcome(
        figures=[Figure(f"LoCoMo evidence recall@{K}", _mean(hybrid), THRESHOLD)],
        tables=[_depths(hybrid, lexical), _parts(hybrid, lexical)],
        notes=[_gain(hybrid, lexical), *_instability(hybrid)],
    )
    figures, tables = exchanges.measure(options.data)
    outcome.figures += figures
    outcome.tables += tables
    if options.compare:
        outcome.tables.append(_forms(conversations, options.form, hybrid, lexical))
    return outcome


def _read(data: Path) -> list[dict[str, Any]]:
    path = need(data / "recall" / "locomo_dev.json")
    conversations: list[dict[str, Any]] = orjson.loads(path.read_bytes())
    return conversations


def _ask_all(conversations: list[dict[str, Any]], form: str, *, embedder: str) -> list[Answer]:
    label = f"{form}, {'hybrid' if embedder != 'none' else 'words only'}"
    return [
        answer
        for conversation in track(conversations, label, transient=True)
        for answer in _ask(conversation, FORMS[form], embedder)
    ]


def _ask(
    conversation: dict[str, Any], shape: Callable[[Turn], Any], embedder: str
) -> Iterator[Answer]:
    with stratagem.open(":memory:", embedder=embedder) as db:
        turns = dict(_log(db, conversation["turns"], shape))
        for question in conversation["questions"]:
            asked = {"query": question["question"], "k": K}
            yield Answer(
                conversation=conversation["conversation"],
                category=question["category"],
                found=_search(db, asked, turns),
                deep=_search(db, asked | {"k": _K_MAX, "max_chars": _CHARS_MAX}, turns),
                evidence=frozenset(question["evidence"]),
            )


def _log(
    db: stratagem.Stratagem, turns: Iterable[Turn], shape: Callable[[Turn], Any]
) -> Iterator[tuple[int, str]]:
    """Log the turns in order; yield the sequence and the id of each."""
    for turn in turns:
        session, _, _ = turn["id"].partition(":")
        event = {"event": "message", "data": shape(turn), "session": session}
        yield db.call("strata_log", event)["sequence"], turn["id"]


def _search(
    db: stratagem.Stratagem, asked: dict[str, Any], turns: dict[int, str]
) -> tuple[str, ...]:
    hits = db.call("strata_search", asked)["results"]
    return tuple(turns[hit["sequence"]] for hit in hits)


def _mean(answers: Iterable[Answer], k: int = K) -> float:
    scores = [answer.recall(k) for answer in answers]
    return sum(scores) / len(scores)


def _depths(hybrid: list[Answer], lexical: list[Answer]) -> Table:
    table = _table(f"Evidence recall over {len(hybrid)} questions", "k")
    for k in _KS:
        ours, theirs = ([each.recall(k) for each in side] for side in (hybrid, lexical))
        table.add_row(str(k), *_cells(ours, theirs))
    return table


def _parts(hybrid: list[Answer], lexical: list[Answer]) -> Table:
    table = _table(f"Evidence recall@{K} by part", "part")
    groups: dict[str, list[int]] = defaultdict(list)
    for place, answer in enumerate(hybrid):
        groups[answer.conversation].append(place)
    for place, answer in sorted(enumerate(hybrid), key=lambda each: each[1].category):
        groups[f"{answer.category} {_CATEGORIES.get(answer.category, '')}"].append(place)
    for name, places in groups.items():
        ours, theirs = ([side[at].recall() for at in places] for side in (hybrid, lexical))
        table.add_row(f"{name} ({len(places)})", *_cells(ours, theirs))
    return table


def _forms(
    conversations: list[dict[str, Any]], form: str, hybrid: list[Answer], lexical: list[Answer]
) -> Table:
    """Compare the ways in which a message may be handed over."""
    table = _table(f"Evidence recall@{K} by the form of `data`", "form")
    for name in FORMS:
        ours = hybrid if name == form else _ask_all(conversations, name, embedder="static")
        theirs = lexical if name == form else _ask_all(conversations, name, embedder="none")
        table.add_row(name, *_cells(*([each.recall() for each in side] for side in (ours, theirs))))
    return table


def _table(title: str, first: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for column in ("hybrid", "95 %", "words only", "difference, 95 %"):
        table.add_column(column, justify="right")
    return table


def _cells(ours: list[float], theirs: list[float]) -> tuple[str, ...]:
    mean = interval(ours)
    apart = difference(ours, theirs)
    return (
        f"{mean.mean:.1f}",
        _range(mean),
        f"{sum(theirs) / len(theirs):.1f}",
        f"{apart.mean:+.1f}  {_range(apart, sign='+')}",
    )


def _range(of: Interval, sign: str = "") -> str:
    return f"{of.low:{sign}.1f} … {of.high:{sign}.1f}"


def _gain(hybrid: list[Answer], lexical: list[Answer]) -> str:
    gain = difference([each.recall() for each in hybrid], [each.recall() for each in lexical])
    return f"Meaning beside words adds {gain.mean:+.1f} ({_range(gain, sign='+')}), paired."


def _instability(answers: list[Answer]) -> Iterator[str]:
    """Say where asking for more hits changed the first ones, which it never should."""
    changed = sum(answer.found != answer.deep[:K] for answer in answers)
    if changed:
        yield f"{changed} questions got other first {K} hits when asked for {_K_MAX}."


SUITE: Final = Suite("recall", "messages of long conversations, found by questions", run)
