"""Does a search find what was said in long conversations with an assistant?

The conversations of BEAM: short messages of a user, long answers of an assistant. Each goes into a
database of its own, each question is asked as it is. Beside the share of the evidence among the
first hits stands what an answer of the default length delivers, what exchanges hold (a hit together
with its reply, or with what it replies to: easier, for k hits are up to 2 k messages), and what was
said by users and by the assistant apart.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
from rich.progress import track
from rich.table import Table

import stratagem
from evals.sampling import interval
from evals.suites import Figure, need

__all__ = ["measure"]

_K: Final = 10
_KS: Final = (5, 10, 20)
_K_MAX: Final = 20
_CHARS_MAX: Final = 1_000_000
# On the development part.
RECALL_MIN: Final = 55.0
ASSISTANT_MIN: Final = 25.0

Messages = frozenset[int]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a question got: the messages of each hit, and those of a default answer."""

    ability: str
    conversation: int
    evidence: Messages
    by_user: Messages
    hits: tuple[int, ...]
    exchanges: tuple[tuple[int, ...], ...]
    delivered: tuple[int, ...]

    def recall(self, k: int = _K) -> float:
        return _share(self.evidence, self.hits[:k])

    def delivered_recall(self, k: int = _K) -> float:
        return _share(self.evidence, self.delivered[:k])

    def exchange_recall(self, k: int = _K) -> float:
        return _share(self.evidence, [each for one in self.exchanges[:k] for each in one])


def measure(data: Path) -> tuple[list[Figure], list[Table]]:
    """Ask every question; return the figures that decide, and the tables."""
    path = need(data / "beam" / "dev.json.gz")
    conversations: list[dict[str, Any]] = orjson.loads(gzip.decompress(path.read_bytes()))
    answers = [
        answer
        for number, each in enumerate(track(conversations, "BEAM", transient=True))
        for answer in _ask(number, each)
    ]
    exchanged = sum(each.exchange_recall() for each in answers) / len(answers)
    found = sum(each.recall() for each in answers) / len(answers)
    figures = [
        Figure(f"BEAM evidence recall@{_K}", found, RECALL_MIN),
        Figure(f"BEAM said by the assistant, recall@{_K}", _assistant(answers), ASSISTANT_MIN),
        Figure(f"BEAM exchanges@{_K}", exchanged),
    ]
    return figures, [_depths(answers), _parts(answers)]


def _ask(number: int, conversation: dict[str, Any]) -> Iterator[_Answer]:
    roles = {each["id"]: each["role"] for each in conversation["messages"]}
    with stratagem.open(":memory:", embedder="static") as db:
        ids = dict(_log(db, conversation))
        for question in conversation["questions"]:
            asked = {"query": question["question"], "k": _K_MAX}
            hits = db.call("strata_search", asked | {"max_chars": _CHARS_MAX})["results"]
            evidence = frozenset(question["evidence"])
            yield _Answer(
                ability=question["category"].replace("_", " "),
                conversation=number,
                evidence=evidence,
                by_user=frozenset(each for each in evidence if roles[each] == "user"),
                hits=tuple(ids[hit["sequence"]] for hit in hits),
                exchanges=tuple(tuple(ids[at] for at in _sequences(hit)) for hit in hits),
                delivered=tuple(
                    ids[hit["sequence"]] for hit in db.call("strata_search", asked)["results"]
                ),
            )


def _sequences(hit: dict[str, Any]) -> Iterator[int]:
    yield hit["sequence"]
    for relation in ("reply", "reply_to"):
        if relation in hit:
            yield hit[relation]["sequence"]


def _log(db: stratagem.Stratagem, conversation: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """Log the messages in order; yield the sequence and the id of each."""
    for each in conversation["messages"]:
        event = {
            "event": "message",
            "data": {name: each[name] for name in ("text", "role", "when")},
            "session": f"{conversation['conversation']}/{each['session']}",
        }
        yield db.call("strata_log", event)["sequence"], each["id"]


def _share(evidence: Messages, found: Any) -> float:
    return 100 * len(evidence.intersection(found)) / len(evidence)


def _depths(answers: list[_Answer]) -> Table:
    table = _table(f"BEAM: evidence recall over {len(answers)} questions", "k")
    for column in ("in a default answer", "exchanges"):
        table.add_column(column, justify="right")
    for k in _KS:
        table.add_row(
            str(k),
            *_cells([each.recall(k) for each in answers]),
            _mean([each.delivered_recall(k) for each in answers]),
            _mean([each.exchange_recall(k) for each in answers]),
        )
    return table


def _assistant(answers: list[_Answer]) -> float:
    """Return how much is found of what the assistant said, where that is evidence."""
    parts = [(each.evidence - each.by_user, each.hits[:_K]) for each in answers]
    shares = [_share(part, hits) for part, hits in parts if part]
    return sum(shares) / len(shares)


def _parts(answers: list[_Answer]) -> Table:
    table = _table(f"BEAM: evidence recall@{_K} by part", "part")
    groups: dict[str, list[float]] = defaultdict(list)
    for each in answers:
        half = "even" if each.conversation % 2 == 0 else "odd"
        groups[f"conversations of {half} number"].append(each.recall())
        for said, part in (
            ("by the user", each.by_user),
            ("by the assistant", each.evidence - each.by_user),
        ):
            if part:
                groups[f"said {said}"].append(_share(part, each.hits[:_K]))
    for each in sorted(answers, key=lambda one: one.ability):
        groups[each.ability].append(each.recall())
    for name, scores in groups.items():
        table.add_row(f"{name} ({len(scores)})", *_cells(scores))
    return table


def _table(title: str, first: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for column in ("recall", "95 %"):
        table.add_column(column, justify="right")
    return table


def _cells(scores: list[float]) -> tuple[str, str]:
    of = interval(scores)
    return f"{of.mean:.1f}", f"{of.low:.1f} … {of.high:.1f}"


def _mean(scores: list[float]) -> str:
    return f"{sum(scores) / len(scores):.1f}"
