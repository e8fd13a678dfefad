"""What prompts bring along by themselves: is it what answers them, and is it silent otherwise?

The conversations of LoCoMo and BEAM, and the small stores of `entries`, each in a database of its
own. Every question that has an answer there is a prompt about it. Unrelated prompts are requests
for tools (BFCL) and the questions of the other conversations of the same set, which are about
other people. The product's own path is asked: `hooks.prompt_recall`, over the file. Every second
conversation is of the tuning half, by which weights and floor were chosen.
"""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
from rich.progress import track
from rich.table import Table

import stratagem
from evals.suites import Figure, Options, Outcome, Suite, need
from stratagem.hooks.prompt_recall import find_memories
from stratagem.hooks.settings import HOOK_SETTINGS
from stratagem.storage.sqlite.direct_reader import DirectReader

__all__ = ["SUITE"]

_SHOWN: Final = 3
_FALSE_MOST: Final = 3.0
_FOUND_MIN: Final = 40.0
_REQUESTS: Final = 300
_FLOORS: Final = (0.5, 0.6, 0.7, 0.75, 0.78, 0.79, 0.8, 0.81, 0.82, 0.85, 0.9)
_NOW: Final = 1_900_000_000_000_000
_FIELDS: Final = ("text", "role", "when")
_DATA: Final = Path(__file__).parent / "data"


class _Prompt(NamedTuple):
    """A prompt, what it brings along with the score of each, and what answers it."""

    kind: str
    hits: list[tuple[float, Any]]
    answers: frozenset[Any]

    def shown(self, floor: float) -> list[Any]:
        return [name for score, name in self.hits if score >= floor][:_SHOWN]


class _Collection(NamedTuple):
    """Something remembered, and the questions about it with what answers each."""

    name: str
    fill: Callable[[stratagem.Stratagem], dict[str, Any]]
    questions: list[tuple[str, frozenset[Any]]]


def run(options: Options) -> Outcome:
    """Send every prompt to every collection that it is, or is not, about."""
    floor = float(next(each.default for each in HOOK_SETTINGS if each.name == "hook_prompt_floor"))
    requests = _requests(options.data)
    prompts: list[_Prompt] = []
    for family in (_locomo(options.data), _beam(options.data), _entries(options.half)):
        for collection in track(_half_of(family, options.half), family[0].name, transient=True):
            others = [
                each for other in family if other is not collection for each in other.questions
            ]
            prompts += _send(collection, [text for text, _ in others], requests)
    about = [each for each in prompts if each.answers]
    figures = [
        Figure(
            "Prompts with an answer that bring it along, percent", _found(about, floor), _FOUND_MIN
        ),
        Figure(
            "Unrelated prompts that bring anything along, percent",
            _any([each for each in prompts if not each.answers], floor),
            most=_FALSE_MOST,
        ),
    ]
    return Outcome(figures, [_by_floor(prompts), _by_kind(prompts, floor)])


def _half_of(family: list[_Collection], half: str) -> list[_Collection]:
    """Return the collections of a half; those of `entries` are of one half already."""
    if family[0].name == "entries":
        return family
    return family[0 if half == "tuning" else 1 :: 2]


def _send(collection: _Collection, others: list[str], requests: list[str]) -> Iterator[_Prompt]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with stratagem.open(path, durability="fast") as db:
            names = collection.fill(db)
            # Vectors are made when a search begins.
            db.memory.search("anything")
            while db.memory.status().unembedded:
                db.memory.search("anything")
        reader = DirectReader(str(path), "default", _NOW)
        for kind, texts in (("other", others), ("request", requests)):
            for text in texts:
                yield _Prompt(f"{kind}", _ask(reader, text, names), frozenset())
        for text, answers in collection.questions:
            yield _Prompt(collection.name, _ask(reader, text, names), answers)
        reader.close()


def _ask(reader: DirectReader, text: str, names: Mapping[str, Any]) -> list[tuple[float, Any]]:
    found = find_memories(reader, text, known=(), session="", floor=0.0)
    return [(each.score, names.get(each.id, each.id)) for each in found]


def _locomo(data: Path) -> list[_Collection]:
    conversations = orjson.loads(need(data / "recall" / "locomo_dev.json").read_bytes())
    return [
        _Collection(
            "LoCoMo",
            _logger(
                (turn["id"], {"text": turn["text"], "when": turn["when"]}, turn["id"].split(":")[0])
                for turn in each["turns"]
            ),
            [
                (question["question"], frozenset(question["evidence"]))
                for question in each["questions"]
                # The fifth category asks about what was never said.
                if question["category"] != 5
            ],
        )
        for each in conversations
    ]


def _beam(data: Path) -> list[_Collection]:
    path = need(data / "beam" / "dev.json.gz")
    conversations = orjson.loads(gzip.decompress(path.read_bytes()))
    return [
        _Collection(
            "BEAM",
            _logger(
                (each["id"], {name: each[name] for name in _FIELDS}, str(each["session"]))
                for each in conversation["messages"]
            ),
            [
                (question["question"], frozenset(question["evidence"]))
                for question in conversation["questions"]
            ],
        )
        for conversation in conversations
    ]


def _logger(
    messages: Iterable[tuple[Any, Any, str]],
) -> Callable[[stratagem.Stratagem], dict[str, Any]]:
    """Return what logs messages (an id, what was said, a session), and names what it logged."""
    given = list(messages)

    def fill(db: stratagem.Stratagem) -> dict[str, Any]:
        return {
            f"@{db.memory.log('message', said, session=session).sequence}": name
            for name, said, session in given
        }

    return fill


def _entries(half: str) -> list[_Collection]:
    stored = [orjson.loads(line) for line in (_DATA / "entries.jsonl").read_bytes().splitlines()]
    questions = [
        orjson.loads(line) for line in (_DATA / "entry_questions.jsonl").read_bytes().splitlines()
    ]

    def filler(store: str) -> Callable[[stratagem.Stratagem], dict[str, Any]]:
        def fill(db: stratagem.Stratagem) -> dict[str, Any]:
            own = [each for each in stored if each["store"] == store]
            for each in own:
                db.memory.store(each["key"], each["value"])
            return {f"default/{each['key']}": each["key"] for each in own}

        return fill

    names = dict.fromkeys(each["store"] for each in questions if each["half"] == half)
    return [
        _Collection(
            "entries",
            filler(name),
            [
                (each["question"], frozenset(each["answers"]))
                for each in questions
                if each["store"] == name and each["kind"] == "stored"
            ],
        )
        for name in names
    ]


def _requests(data: Path) -> list[str]:
    lines = need(data / "tools" / "retrieval_dev.jsonl").read_bytes().splitlines()
    queries = [orjson.loads(line)["query"] for line in lines]
    return queries[:: max(len(queries) // _REQUESTS, 1)]


def _found(prompts: list[_Prompt], floor: float) -> float:
    hits = [not each.answers.isdisjoint(each.shown(floor)) for each in prompts]
    return 100.0 * sum(hits) / max(len(hits), 1)


def _any(prompts: list[_Prompt], floor: float) -> float:
    return 100.0 * sum(bool(each.shown(floor)) for each in prompts) / max(len(prompts), 1)


def _right(prompts: list[_Prompt], floor: float) -> float:
    """Return the share of what prompts with an answer brought along that answers them."""
    shown = [name in each.answers for each in prompts for name in each.shown(floor)]
    return 100.0 * sum(shown) / max(len(shown), 1)


def _by_floor(prompts: list[_Prompt]) -> Table:
    table = Table(title="By floor, percent", title_justify="left")
    columns = ("floor", "answer brought along", "of that, right", "other conversations", "requests")
    for column in columns:
        table.add_column(column, justify="right")
    about = [each for each in prompts if each.answers]
    for floor in _FLOORS:
        shares = [
            _any([each for each in prompts if each.kind == kind], floor)
            for kind in ("other", "request")
        ]
        figures = (_found(about, floor), _right(about, floor), *shares)
        table.add_row(f"{floor:.2f}", *(f"{each:.1f}" for each in figures))
    return table


def _by_kind(prompts: list[_Prompt], floor: float) -> Table:
    table = Table(title=f"At the floor {floor:g}", title_justify="left")
    for column in ("prompts", "count", "with an answer that bring it along", "that bring anything"):
        table.add_column(column, justify="right" if column != "prompts" else "left")
    for kind in dict.fromkeys(each.kind for each in prompts):
        own = [each for each in prompts if each.kind == kind]
        found = f"{_found(own, floor):.1f}" if own[0].answers else ""
        table.add_row(kind, str(len(own)), found, f"{_any(own, floor):.1f}")
    return table


SUITE: Final = Suite("injection", "what prompts bring along, and whether it answers them", run)
