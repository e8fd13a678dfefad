"""What the records say of earlier calls, where this process does not remember them.

A process may have been started since, and of several each sees only its own calls. The newest
records of a tool are looked through; what lies further back is no matter of a later call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.gateway import names
from stratagem.gateway.learning.attempts import Problem
from stratagem.search.foundation import Foundation

__all__ = ["Recollection", "said_by", "shape_of", "without_values"]

_HIDDEN: Final = "…"
_TEXT_CHARS: Final = 2_000
_VALUES_MAX: Final = 200
# Shorter ones are as likely to be a word of the message.
_VALUE_CHARS_MIN: Final = 3
_VALUE_CHARS_MAX: Final = 2_000
# What differs from one occurrence to the next: numbers, ids, and what stands in quotes.
_VARYING: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\b[0-9a-f]{8,}\b|\d+")
_HOUR: Final = 3600 * 1_000_000


def said_by(message: str, details: Mapping[str, Any]) -> str:
    """Return the words of an error: of a service that failed, what it answered too."""
    body = details.get("body")
    return (f"{message} {body}" if isinstance(body, str) and body else message)[:_TEXT_CHARS]


def without_values(text: str, arguments: Any) -> str:
    """Return the text of an error without the arguments of the call that it came from."""
    for value in sorted(_values(arguments), key=len, reverse=True):
        if value in text:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", _HIDDEN, text)
    return text


def shape_of(text: str) -> str:
    """Return what an error has in common with others of its kind."""
    return _VARYING.sub("#", text)


class Recollection:
    """Looks through the records of executions."""

    def __init__(self, foundation: Foundation) -> None:
        self._foundation = foundation

    def failures(self, branch: str, tool: str, shape: str, *, but: str) -> int:
        """Return how often a tool failed lately in one way, one execution left out."""
        found = 0
        for record in self._records(branch, tool):
            error = record.get("error")
            if error and record["executionId"] != but:
                said = said_by(str(error.get("message")), error)
                found += shape_of(without_values(said, record.get("arguments"))) == shape
        return found

    def fix(self, problem: Problem, *, but: str) -> dict[str, Any] | None:
        """Return the fix that a caller was given since its last call that worked."""
        if not self._any(problem.branch, names.facet_fix(problem.tool)):
            return None
        for record in self._records(problem.branch, problem.tool):
            agent = (record.get("context") or {}).get("agentId")
            if record["executionId"] == but:
                continue
            if (record.get("caller"), agent) != (problem.actor, problem.agent):
                continue
            if not record.get("error"):
                return None
            if (fix := record["error"].get("knownFix")) is not None:
                return dict(fix)
        return None

    def _any(self, branch: str, facet: str) -> bool:
        """Whether anything has a facet; nearly always nothing has, and that is told quickly."""
        reader = self._foundation.store.reader()
        view = self._foundation.views.view(reader, branch)
        return bool(reader.faceted(view, facet, limit=1))

    def _records(self, branch: str, tool: str) -> Iterator[Mapping[str, Any]]:
        """Yield the executions of a tool, newest first."""
        with self._foundation.store.snapshot() as reader:
            view = self._foundation.views.view(reader, branch)
            newest = reader.faceted(
                view, names.facet_tool(tool), limit=limits.EXECUTIONS_RECALLED_MAX
            )
            hits = reader.hits(newest)
        since = view.time - int(limits.FIX_CREDITED_HOURS * _HOUR)
        for sequence in reversed(newest):
            hit = hits.get(sequence)
            if hit is not None and hit.payload and hit.at >= since:
                yield orjson.loads(hit.payload)


def _values(arguments: Any) -> set[str]:
    """Return the texts and numbers of arguments, the first few."""
    found: set[str] = set()
    waiting = [arguments]
    while waiting and len(found) < _VALUES_MAX:
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value[:_VALUES_MAX])
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            text = str(value).strip()
            if _VALUE_CHARS_MIN <= len(text) <= _VALUE_CHARS_MAX:
                found.add(text)
    return found
