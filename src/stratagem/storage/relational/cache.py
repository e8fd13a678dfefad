"""Caches of readers and writers between statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from stratagem.engine.events import Space
from stratagem.engine.lineage import Branch
from stratagem.engine.records import Text
from stratagem.storage.outbox import Registration

__all__ = ["NameCache", "TextCache", "UnindexedText", "WriterCache"]

# The sequence of a text, the text, and its context.
UnindexedText: TypeAlias = tuple[int, Text, Sequence[str]]

# How many characters of messages a writer remembers, and of how many sessions the newest messages.
_TEXT_CHARS_MAX = 256_000
_SESSIONS_MAX = 1_024


class NameCache:
    """A cache of facts that never change once committed: the numbers of spaces, and the branches.

    A space keeps its number and a branch its parent for the life of the database, so other
    processes can add to these but never make them wrong.
    """

    def __init__(self) -> None:
        self.spaces: dict[Space, int] = {}
        self.branches: dict[int, Branch] = {}
        # The first branch, which cannot be deleted.
        self.default_branch: Branch | None = None

    def clear(self) -> None:
        """Forget everything: some of it was undone."""
        self.spaces.clear()
        self.branches.clear()
        self.default_branch = None


class TextCache:
    """Texts by sequence, up to so many characters; those that were added first are dropped."""

    __slots__ = ("_chars", "_texts")

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._chars = 0

    def get(self, sequence: int) -> str | None:
        """Return the text of an event; None where it is not remembered."""
        return self._texts.get(sequence)

    def add(self, sequence: int, text: str) -> None:
        """Remember the text of an event that is not remembered yet."""
        self._texts[sequence] = text
        self._chars += len(text)
        while self._chars > _TEXT_CHARS_MAX:
            self._chars -= len(self._texts.pop(next(iter(self._texts))))

    def clear(self) -> None:
        """Forget all of them."""
        self._texts.clear()
        self._chars = 0


class WriterCache(NameCache):
    """The cache of a writer, valid for as long as it holds the write lock.

    All writers that share one commit share one of these: no other process can change what is in
    it before the commit. It is cleared when a savepoint is undone, and thrown away with the commit,
    unless the store can tell that nobody has written before the next one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.settings: dict[str, str | int | None] = {}
        # How many live records of a kind a branch shows, by branch and kind.
        self.tallies: dict[tuple[int, str], int] = {}
        # The highest number of a subject: new ones are counted from it.
        self.subject_last: int | None = None
        # The numbers of subjects that this commit has asked for ahead, by space and key; None for
        # those that have none yet.
        self.subjects: dict[tuple[int, str], int | None] = {}
        self.branches_by_name: dict[str, Branch] = {}
        self.projections: list[Registration] | None = None
        # The texts of the newest messages of sessions, by sequence: those that follow ask for them.
        self.turn_texts = TextCache()
        # The newest messages of sessions, newest first, by space, session and branch.
        self.turns: dict[tuple[int, str, int], list[int]] = {}
        # The texts that earlier commits have left to be indexed, by sequence, and None for those of
        # other writers; None where that is not known.
        self.unindexed: dict[int, UnindexedText | None] | None = None

    def add_turns(self, of: tuple[int, str, int], newest: list[int]) -> None:
        """Remember the newest messages of a session, in place of one that was added long ago."""
        if len(self.turns) >= _SESSIONS_MAX:
            del self.turns[next(iter(self.turns))]
        self.turns[of] = newest

    def forget_unlogged(self) -> None:
        """Drop what may have changed although the log has not, because no event records it."""
        self.settings.clear()
        self.projections = None

    def clear(self) -> None:
        super().clear()
        self.settings.clear()
        self.tallies.clear()
        self.subject_last = None
        self.subjects.clear()
        self.branches_by_name.clear()
        self.projections = None
        self.turn_texts.clear()
        self.turns.clear()
        self.unindexed = None
