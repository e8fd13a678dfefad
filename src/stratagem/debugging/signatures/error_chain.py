"""An error, what caused it, and where in a text they were read."""

from __future__ import annotations

from collections.abc import Sequence

from stratagem.debugging.signatures import frames
from stratagem.debugging.signatures.frames import Frame
from stratagem.deferred_tuples import NamedTuple

__all__ = ["ErrorChain", "ParsedError", "indent", "next_filled_line"]


class ParsedError(NamedTuple):
    """One error: what it says, and where it was, newest frame first."""

    head: str
    frames: list[Frame]


class ErrorChain(NamedTuple):
    """An error with its causes, newest first, and the lines it was read from."""

    errors: list[ParsedError]
    begin: int
    end: int

    def with_relevant_frames(self) -> ErrorChain:
        """Return the chain without system frames, unless no error of it has any other frame."""
        ours = any(not frame.system for error in self.errors for frame in error.frames)
        told = [
            ParsedError(head, frames.relevant_frames(found, ours=ours))
            for head, found in self.errors
        ]
        return self._replace(errors=_without_repeats(told))


def next_filled_line(texts: Sequence[str], at: int) -> int | None:
    """Return the first line from `at` on that is not empty."""
    return next((line for line in range(at, len(texts)) if texts[line]), None)


def indent(text: str) -> int:
    """Return how many white characters a line begins with."""
    return len(text) - len(text.lstrip())


def _without_repeats(errors: list[ParsedError]) -> list[ParsedError]:
    """Drop empty errors, and causes that repeat the message of an earlier error."""
    seen: set[str] = set()
    kept = []
    for error in errors:
        if (error.head or error.frames) and error.head not in seen:
            kept.append(error)
            seen.update(filter(None, (error.head,)))
    return kept
