"""Work for a database that is about to be hurt, and the check of what is left of it.

A `Worker` does a mixed load and tells of each write twice: before it, what it is going to
ask, and after it, what was acknowledged. A `Ledger` gathers what workers told and compares
it with a database: everything acknowledged is there, everything else is there whole or not
at all, nothing is there that nobody asked for.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson

import stratagem
from stratagem.engine.events import Event
from stratagem.errors import BranchNotFound, MergeConflict, StratagemError

ITEMS = 4
# fmt: off
WORDS = [
    "anchor", "basalt", "cedar", "delta", "ember", "fjord", "glacier", "harbour", "island",
    "juniper", "kelp", "lagoon", "meadow", "nectar", "orchard", "pebble", "quarry", "river",
    "spruce", "tundra", "umber", "valley", "willow", "yarrow", "zephyr",
]
# fmt: on

Durability = Literal["full", "fast"]


class Intent(NamedTuple):
    """A write that somebody is about to ask for."""

    id: str
    operation: str
    arguments: dict[str, Any]


class Acknowledged(NamedTuple):
    """A write that was answered."""

    id: str
    answer: dict[str, Any]


class Refused(NamedTuple):
    """A write that was answered with an error."""

    id: str
    code: str


Told = Intent | Acknowledged | Refused
Tell = Callable[[Told], None]


def perform(db: stratagem.Stratagem, intent: Intent) -> dict[str, Any]:
    """Ask for a write, with its id as request id, and return the answer."""
    memory, given = db.memory, dict(intent.arguments, request_id=intent.id)
    answer: Any
    if intent.operation in {"store", "items"}:
        answer = memory.store(**given)
    elif intent.operation == "log":
        answer = memory.log(**given)
    elif intent.operation == "forget":
        answer = memory.forget(**given)
    elif intent.operation == "fork":
        answer = memory.fork(**given)
    else:
        assert intent.operation == "merge"
        answer = memory.merge(**given)
    return asdict(answer)


class Worker:
    """A mixed load, the same for the same name and seed."""

    def __init__(self, db: stratagem.Stratagem, name: str, seed: int, tell: Tell) -> None:
        self._db = db
        self._name = name
        self._random = random.Random(f"{seed} {name}")
        self._tell = tell
        self._count = 0
        self._branches = ["default"]

    def step(self) -> None:
        """Ask for one write, and tell of it. Errors of the database are raised."""
        intent = self._draw()
        self._tell(intent)
        try:
            answer = perform(self._db, intent)
        except (MergeConflict, BranchNotFound) as error:
            self._tell(Refused(intent.id, error.code))
            return
        if intent.operation == "fork":
            self._branches.append(answer["name"])
        self._tell(Acknowledged(intent.id, answer))

    def _draw(self) -> Intent:
        self._count += 1
        draw, name = self._random, f"{self._name}.{self._count}"
        branch = draw.choice(self._branches[-4:])
        operation = draw.choices(
            ["store", "items", "log", "forget", "fork", "merge"], [8, 3, 4, 2, 1, 1]
        )[0]
        if operation == "merge" and len(self._branches) == 1:
            operation = "fork"
        arguments: dict[str, Any] = {"branch": branch}
        if operation == "store":
            arguments |= {"key": self._key(), "value": self._value(name), "tags": [self._name]}
        elif operation == "items":
            keys = draw.sample(range(40), ITEMS)
            arguments["items"] = [
                {"key": f"{self._name}/{key}", "value": self._value(name)} for key in keys
            ]
        elif operation == "log":
            arguments |= {"event": "step", "data": self._value(name), "session": self._name}
        elif operation == "forget":
            arguments["key"] = self._key()
        elif operation == "fork":
            arguments["name"] = f"branch-{name}"
        else:
            source = draw.choice(self._branches[1:])
            arguments |= {"source": source, "branch": "default", "strategy": "source_wins"}
        return Intent(name, operation, arguments)

    def _key(self) -> str:
        # Some keys are everybody's, so that workers meet.
        owner = "shared" if self._random.random() < 0.3 else self._name
        return f"{owner}/{self._random.randrange(40)}"

    def _value(self, name: str) -> dict[str, Any]:
        words = " ".join(self._random.choices(WORDS, k=self._random.randrange(3, 40)))
        padding = "x" * (self._random.randrange(20_000) if self._random.random() < 0.05 else 0)
        return {"by": name, "text": f"{words} {word_of(name)}", "padding": padding}


def word_of(name: str) -> str:
    """Return a word that only one write has."""
    return f"word{name.replace('.', 'x')}"


@dataclass
class Ledger:
    """What workers told, and whether a database agrees."""

    intents: dict[str, Intent] = field(default_factory=dict)
    acknowledged: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    # Events that were there before anybody was listened to.
    known: int = 0

    def know(self, events: Iterable[Event]) -> None:
        """Take what a log holds already as given."""
        self.known = max((event.sequence for event in events), default=0)

    def note(self, told: Told) -> None:
        if isinstance(told, Intent):
            self.intents[told.id] = told
        elif isinstance(told, Acknowledged):
            self.acknowledged[told.id] = told.answer
        else:
            self.refused.add(told.id)

    @property
    def unanswered(self) -> set[str]:
        """What was asked for, and may or may not have been done."""
        return self.intents.keys() - self.acknowledged.keys() - self.refused

    def check(self, events: Sequence[Event]) -> None:
        """Compare a log with what was told."""
        made: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            if event.sequence > self.known and event.actor != "stratagem":
                assert event.request in self.intents, f"nobody asked for {event}"
                made[event.request].append(event)
        for name, answer in self.acknowledged.items():
            intent = self.intents[name]
            assert made[name] or not _writes(intent, answer), f"{intent} was lost"
            _agree(intent, answer, made[name])
        for name in self.intents.keys() - self.acknowledged.keys():
            assert not (made[name] and name in self.refused), f"{name} was refused, yet written"
            assert _is_whole(self.intents[name], made[name]), f"{name} was written by half"

    def repeat_unanswered(self, db: stratagem.Stratagem) -> int:
        """Ask again for what was never answered: each is then written exactly once."""
        unanswered = self.unanswered
        for name in sorted(unanswered):
            try:
                self.acknowledged[name] = perform(db, self.intents[name])
            except (MergeConflict, BranchNotFound):
                self.refused.add(name)
        return len(unanswered)


def verify(path: Path, ledger: Ledger, *, embedder: str = "none") -> int:
    """Open a hurt database and check all that is promised; return how long its log is."""
    with stratagem.open(str(path), embedder=embedder) as db:
        store = db.runtime.foundation.store
        ledger.check(list(store.log()))
        findings = store.examine(lambda _done, _total, _what: None, None)
        assert findings == [], findings
        ledger.repeat_unanswered(db)
        events = list(store.log())
        ledger.check(events)
        _check_views(db, ledger)
    return len(events)


def step_until_error(worker: Worker, steps: int) -> StratagemError | None:
    """Work until the database refuses, or for so many steps."""
    try:
        for _ in range(steps):
            worker.step()
    except StratagemError as error:
        return error
    return None


def _check_views(db: stratagem.Stratagem, ledger: Ledger) -> None:
    """Recall what the latest writes wrote, as of then, and search for the very latest."""
    stored = [
        (answer["version"], ledger.intents[name])
        for name, answer in ledger.acknowledged.items()
        if ledger.intents[name].operation == "store"
    ]
    latest = sorted(stored)[-20:]
    for version, intent in latest:
        given = intent.arguments
        entry = db.memory.recall(given["key"], branch=given["branch"], as_of=f"@{version}")
        assert entry is not None
        assert entry.value == given["value"]
    for version, intent in latest[-1:]:
        given = intent.arguments
        results = db.memory.search(
            word_of(intent.id), branch=given["branch"], as_of=f"@{version}", k=50
        )
        assert any(hit.version == version for hit in results), f"{intent} is not found"


def _writes(intent: Intent, answer: dict[str, Any]) -> bool:
    """Whether there was anything to do: not for a missing key, nor for a merge of nothing new."""
    return intent.operation not in {"forget", "merge"} or answer["version"] is not None


def _agree(intent: Intent, answer: dict[str, Any], events: list[Event]) -> None:
    """Compare an acknowledged write with the events it left."""
    given, operation = intent.arguments, intent.operation
    assert _is_whole(intent, events), f"{intent} was written by half: {events}"
    if operation == "store":
        assert events[0].sequence == answer["version"]
        assert (events[0].key, _content(events[0])["value"]) == (given["key"], given["value"])
    elif operation == "items":
        assert [event.sequence for event in events] == [
            result["version"] for result in answer["results"]
        ]
    elif operation == "log":
        assert events[0].sequence == answer["sequence"]
        assert _content(events[0])["data"] == given["data"]
    elif operation == "forget" and answer["deleted"]:
        assert events[0].sequence == answer["version"]
    elif operation == "fork":
        assert _content(events[0])["name"] == given["name"]
    elif operation == "merge" and events:
        assert events[0].sequence == answer["version"]
        assert len(events) > answer["merged"] + answer["events"]


def _is_whole(intent: Intent, events: list[Event]) -> bool:
    """Whether a write left all of its events, in one transaction, or none of them."""
    if not events:
        return True
    if len({event.at for event in events}) != 1:
        return False
    if intent.operation == "items":
        values = [(item["key"], item["value"]) for item in intent.arguments["items"]]
        return [(event.key, _content(event)["value"]) for event in events] == values
    if intent.operation == "merge":
        # Without the merge's own event the others would be carried over again.
        return [event.kind for event in events].index("BranchMerged") == 0
    return len(events) == 1


def _content(event: Event) -> dict[str, Any]:
    assert event.payload is not None
    content: dict[str, Any] = orjson.loads(event.payload)
    return content
