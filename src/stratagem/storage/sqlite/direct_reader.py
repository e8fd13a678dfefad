"""One question to a database file, asked without opening the store.

The store is made for a process that lives: it checks, migrates, caches and writes. A hook asks one
question and ends, within a few hundredths of a second. It reads what is committed, whatever another
process does with the file meanwhile, and never writes; a file of another format, or one that does
not answer, is refused.

Nothing here imports the rest of `storage`, which takes longer than the question. Tests compare the
answers with those of the store.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

import apsw

from stratagem.deferred_tuples import NamedTuple
from stratagem.storage.sqlite.plain_hash import sha256
from stratagem.storage.sqlite.varints import read_varints

__all__ = ["FORMAT", "READ_MODELS_FORMAT", "Content", "DirectReader", "UnreadableError"]

# As `format` has them; a test compares.
FORMAT: Final = 4
READ_MODELS_FORMAT: Final = 17
_FACET_MARK: Final = "\x01"
_SQL: Final = os.path.join(os.path.dirname(__file__), "sql", "direct_queries.sql")
# Readers wait for nobody, except where a file is being recovered after a crash.
_LOCK_WAIT_MS: Final = 20


class UnreadableError(Exception):
    """The database cannot answer: it is damaged, locked, or of another format."""


class Content(NamedTuple):
    """The content of an event, and its vector if it has one."""

    sequence: int
    at: int
    kind: str
    namespace: str
    key: str | None
    content: dict[str, Any]
    vector: bytes | None


class DirectReader:
    """Reads what one branch shows now. To be closed, or left to the end of the process."""

    def __init__(self, path: str, branch: str, now_us: int) -> None:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOMUTEX
        try:
            self._connection = apsw.Connection(path, flags=flags)
            self._connection.set_busy_timeout(_LOCK_WAIT_MS)
            self._queries = _read_queries()
            version, read_models, self.embedder = self._rows("format")[0]
        except apsw.Error as error:
            raise UnreadableError(str(error)) from error
        if version > FORMAT or read_models != READ_MODELS_FORMAT:
            raise UnreadableError(f"The format is {version}, {read_models}.")
        if not self._rows("branch", branch):
            # A git branch that nothing was written on yet reads what it will be forked from.
            branch = "default"
        self._view = (branch, now_us)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def text_count(self) -> int:
        """Return how many passages are indexed."""
        # FTS5's record of its totals begins with it.
        rows = self._rows("text_averages")
        return next(iter(read_varints(rows[0][0])), 0) if rows else 0

    def document_frequency(self, term: str) -> int:
        """Return in how many passages a term occurs."""
        rows = self._rows("term_documents", term)
        return int(rows[0][0]) if rows else 0

    def matches(
        self, expression: str, *, without_facet: str, limit: int
    ) -> list[tuple[int, int, float]]:
        """Return the best passages: sequence, number of the passage and score."""
        return self._rows(
            "matches_without", *self._view, expression, limit, _FACET_MARK + without_facet
        )

    def contents(self, sequences: Sequence[int]) -> dict[int, Content]:
        """Return the contents of some events, without those that were altered or purged."""
        found = {}
        for row in self._rows("contents", json.dumps(list(sequences))):
            sequence, at, kind, namespace, key, payload, salt, digest, vector = row
            if payload is not None and _hash(salt, [kind, namespace, key], payload) == digest:
                content = json.loads(payload)
                found[sequence] = Content(sequence, at, kind, namespace, key, content, vector)
        return found

    def later_messages(
        self, session: str, label: str, sequence: int, *, limit: int
    ) -> Iterator[Content]:
        """Yield the next logged events of a session that have a label; each is read by itself."""
        facets = (f"{_FACET_MARK}session={session}", f"{_FACET_MARK}label={label}")
        for (later,) in self._rows("later_with_facets", *facets, sequence, limit):
            yield from self.contents([later]).values()

    def records_of(self, kind: str, keys: Sequence[str]) -> list[Content]:
        """Return the records of a kind under some keys, as each branch has them."""
        rows = self._rows("records_of", kind, json.dumps(list(keys)))
        return list(self.contents([row[0] for row in rows]).values())

    def newest_of(self, kinds: Sequence[str]) -> int:
        """Return the newest event about records of some kinds, on any branch."""
        newest: int = self._rows("newest_of_spaces", json.dumps(list(kinds)))[0][0]
        return newest

    def _rows(self, name: str, *values: Any) -> list[Any]:
        try:
            return list(self._connection.execute(self._queries[name], values))
        except apsw.Error as error:
            raise UnreadableError(str(error)) from error


def _hash(salt: bytes, names: list[str | None], payload: bytes) -> bytes:
    """Return the hash of what an event says, as `engine.events.content_hash` does."""
    about = json.dumps(names, ensure_ascii=False, separators=(",", ":")).encode()
    digest: bytes = sha256(salt + about + b"\n" + payload).digest()
    return digest


def _read_queries() -> dict[str, str]:
    with open(_SQL, encoding="utf-8") as file:
        _, *parts = file.read().split("-- name: ")
    found = {}
    for part in parts:
        name, _, body = part.partition("\n")
        lines = [line for line in body.splitlines() if not line.startswith("--")]
        found[name] = " ".join(lines)
    fragments = {name: found.pop(name) for name in ("cuts", "visible")}
    return {
        name: sql.replace("{cuts}", fragments["cuts"]).replace("{visible}", fragments["visible"])
        for name, sql in found.items()
    }
