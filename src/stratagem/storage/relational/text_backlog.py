"""Texts that the last commits stored and the full-text index does not have yet.

A text takes several times as long to index by itself as among sixty others: the index is a file of
segments, each commit adds one, and segments are merged. So while commits follow one another closely
the store lets them leave their texts to one that indexes all of them. Which texts wait is written
in the transaction that stores them, so that nothing is lost with the process: the next commit of
any process that may not leave its own texts, or the next search, indexes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from stratagem.storage.relational.cache import UnindexedText, WriterCache
from stratagem.storage.relational.session import NUMBER, Queries

__all__ = ["TextBacklog"]

# Of twice as many each takes 3 % less, and a search that has to index them first twice as long.
_TEXTS_MAX: Final = 64
# Longer texts gain nothing by waiting.
_CHARS_MAX: Final = 4_000


class TextBacklog:
    """The texts that wait to be indexed, in a transaction of the one writer."""

    def __init__(self, queries: Queries, cache: WriterCache) -> None:
        self._queries = queries
        self._cache = cache
        self._is_open = False
        self._has_added = False

    def begin(self, *, is_open: bool) -> None:
        """Begin with a commit; it may leave its texts here where that `is_open`."""
        self._is_open = is_open
        self._has_added = False

    @property
    def may_have_texts(self) -> bool | None:
        """Whether texts may wait after the commit; None where that is not known, and as before."""
        waiting = self._cache.unindexed
        if waiting is not None:
            return bool(waiting)
        # Work of the same commit that failed has had everything forgotten.
        return True if self._has_added else None

    def add(self, texts: Sequence[UnindexedText]) -> bool:
        """Add texts to those that wait; return False where they have to be indexed now."""
        if not self._is_open:
            return False
        waiting = self._find_waiting()
        if len(waiting) + len(texts) >= _TEXTS_MAX:
            return False
        if any(len(text.body) > _CHARS_MAX for _, text, _ in texts):
            return False
        self._queries.run_many("insert_unindexed", [(text[0],) for text in texts])
        waiting.update((text[0], text) for text in texts)
        self._has_added = True
        return True

    def take(self, read: Callable[[int], UnindexedText | None]) -> list[UnindexedText]:
        """Return the texts that wait, oldest first, which are to be indexed now.

        `read` reads those that other writers have left; None where there is no such text.
        """
        waiting = self._find_waiting()
        if not waiting:
            return []
        self._queries.run("delete_unindexed")
        self._cache.unindexed = {}
        found = (text or read(sequence) for sequence, text in waiting.items())
        return [text for text in found if text is not None]

    def _find_waiting(self) -> dict[int, UnindexedText | None]:
        """Return the texts that wait, by sequence; None for those that others have left."""
        waiting = self._cache.unindexed
        if waiting is None:
            waiting = dict.fromkeys(row[0] for row in self._queries.rows(NUMBER, "unindexed"))
            self._cache.unindexed = waiting
        return waiting
