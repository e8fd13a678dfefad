"""What the contract suite writes: two kinds of record, a plain indexer, a clock held by hand.

Nothing here knows which store is below, and nothing comes from the systems above it: the
contract is about events, branches and views, whatever they are about.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import orjson

from stratagem.engine.events import Draft, Event, Space
from stratagem.engine.lineage import OPEN_END, Branch, View
from stratagem.engine.records import EventKind, Kinds, Projection, RecordKind, Text
from stratagem.storage.contract import (
    Finding,
    IndexedText,
    Reader,
    Store,
    Transaction,
    WriteRequest,
)

NOTE = "note"
HAPPENING = "happening"
NOTE_WRITTEN = "NoteWritten"
NOTE_ERASED = "NoteErased"
HAPPENED = "Happened"
TESTER = WriteRequest("tester")
MAIN = "default"
START = 1_780_000_000_000_000
SECOND = 1_000_000


def _written(content: Mapping[str, Any], key: str | None) -> Projection:
    return Projection(
        expires_at=content.get("expires_at"),
        tags=tuple(content.get("tags", ())),
        facets=tuple(content.get("facets", ())),
        session=content.get("session"),
        text=Text(key or "", content["text"]) if content["text"] else None,
    )


def _happened(content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(
        tags=tuple(content.get("tags", ())),
        session=content.get("session"),
        text=Text("", content["text"]),
    )


KINDS = Kinds(
    (
        RecordKind(
            NOTE,
            (
                EventKind(NOTE_WRITTEN, _written),
                EventKind(NOTE_ERASED, lambda _content, _key: Projection(deleted=True), True),
            ),
            writes=NOTE_WRITTEN,
            deletes=NOTE_ERASED,
            set_fields=frozenset({"tags"}),
            erasable=("text",),
        ),
        RecordKind(
            HAPPENING,
            (EventKind(HAPPENED, _happened, gives_context=True),),
            erasable=("text",),
            quoting=("quoted",),
        ),
    )
)


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self, now: int = START) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> int:
        self.now += round(seconds * SECOND)
        return self.now


def salts(seed: int = 7) -> Callable[[int], bytes]:
    return random.Random(seed).randbytes


class Words:
    """Indexes the words of a text as they are, and makes a vector of a text's hash."""

    context_window = 2

    def __init__(self, embedder_name: str | None = None) -> None:
        self.embedder_name = embedder_name

    def documents(
        self, texts: Sequence[tuple[Text, Sequence[str]]], *, embed: bool
    ) -> list[IndexedText]:
        ready = embed and self.embedder_name is not None
        return [
            IndexedText(
                text.title.lower(),
                # A line is a passage.
                text.body.lower().split("\n"),
                " ".join(context).lower(),
                vector_of(text.body) if ready else None,
            )
            for text, context in texts
        ]


def vector_of(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def notes(namespace: str = "n") -> Space:
    return Space(NOTE, namespace)


def happenings(namespace: str = "n") -> Space:
    return Space(HAPPENING, namespace)


def a_note(key: str, text: str = "", *, namespace: str = "n", **content: Any) -> Draft:
    return Draft(NOTE_WRITTEN, {"text": text, **content}, notes(namespace), key)


def an_erasure(key: str, *, namespace: str = "n") -> Draft:
    return Draft(NOTE_ERASED, {}, notes(namespace), key)


def a_happening(
    text: str, *, namespace: str = "n", origin: int | None = None, **content: Any
) -> Draft:
    return Draft(HAPPENED, {"text": text, **content}, happenings(namespace), None, origin)


def live(reader: Reader, name: str) -> Branch:
    branch = reader.branches.by_name(name)
    assert branch is not None, f"no live branch {name!r}"
    return branch


def append(store: Store, *drafts: Draft, branch: str = MAIN) -> int:
    """Append drafts in one transaction; return the last one's sequence."""

    def work(transaction: Transaction) -> int:
        return transaction.append(live(transaction, branch), drafts)[-1].sequence

    return store.write(work, TESTER)


def fork(store: Store, name: str, *, parent: str = MAIN, at: int | None = None) -> Branch:
    def work(transaction: Transaction) -> Branch:
        moment = transaction.log.head().sequence if at is None else at
        return transaction.branches.create(
            name, parent=live(transaction, parent), fork_sequence=moment
        )

    return store.write(work, TESTER)


def create(store: Store, name: str) -> Branch:
    return store.write(lambda t: t.branches.create(name, parent=None, fork_sequence=0), TESTER)


def view(reader: Reader, branch: str = MAIN, *, limit: int = OPEN_END, time: int = START) -> View:
    found = live(reader, branch)
    return View(found, reader.branches.lineage(found, limit), time)


def text_of(
    store: Store, key: str, branch: str = MAIN, *, limit: int = OPEN_END, namespace: str = "n"
) -> str | None:
    """Return the text of a note as a view shows it, or None."""
    with store.snapshot() as reader:
        lineage = reader.branches.lineage(live(reader, branch), limit)
        version = reader.records.current(lineage, notes(namespace), key)
    if version is None or version.payload is None:
        return None
    text: str = orjson.loads(version.payload)["text"]
    return text


@contextmanager
def searching(store: Store) -> Iterator[Reader]:
    """Begin a snapshot in which all texts are indexed, as a search does."""
    store.index_backlog(1.0)
    with store.snapshot() as reader:
        yield reader


def matching(
    store: Store,
    word: str,
    branch: str = MAIN,
    *,
    limit: int = OPEN_END,
    time: int = START,
    spaces: Sequence[Space] | None = None,
    tags: Sequence[str] = (),
    most: int = 100,
) -> list[int]:
    """Return the sequences of the texts that a search for one word finds, best first."""
    with searching(store) as reader:
        numbers = (
            None
            if spaces is None
            else [number for number, space in reader.records.spaces().items() if space in spaces]
        )
        found = reader.search.matches(
            view(reader, branch, limit=limit, time=time),
            f'"{word}"',
            weights=(1.0, 1.0, 0.5),
            spaces=numbers,
            tags=tags,
            limit=most,
        )
    return [sequence for sequence, _, _ in found]


def examine(store: Store, expect: tuple[int, str] | None = None) -> list[Finding]:
    return store.examine(lambda _done, _total, _what: None, expect)


def rebuild(store: Store) -> None:
    store.rebuild(lambda _done, _total, _what: None)


def events(store: Store) -> list[Event]:
    return list(store.log())
