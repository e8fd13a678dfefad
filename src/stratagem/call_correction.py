"""Calls of operations as they were meant.

Models call a tool by the names and forms that they are used to: `limit` for `k`, a text where a
list belongs, the arguments inside another object. The gateway corrects calls of registered tools;
this lets the same correction look at calls of the operations themselves, with the names that
their parameters declare (`Param.aliases`). The same rules apply: a correction is applied only if it
is the only reasonable reading and loses nothing, the policy of the workspace may forbid it, and
every other call is refused with a suggestion.

Only a call that was refused comes here, so calls that are right pay nothing for it, and the
correction is imported when the first wrong one arrives.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import StratagemError
from stratagem.operation import Caller, Operation
from stratagem.search.foundation import Foundation

if TYPE_CHECKING:
    from stratagem.gateway.correction import Candidate, CorrectionStep, Policy

__all__ = ["CallCorrector", "CorrectedCall"]

# The other operations carry calls of tools, which are corrected where they are run.
_TOOLSETS: Final = frozenset({"memory", "debugging", "knowledge"})
# So much of a value is shown, and so many steps are told.
_SHOWN_CHARS: Final = 60
_OFFER_CHARS: Final = 300
_STEPS_SAID: Final = 5
# Below it a reading is not worth a suggestion.
_OFFER_MIN: Final = 0.8


class CorrectedCall(NamedTuple):
    """The arguments to run with, and what was done to them, in a line."""

    arguments: dict[str, Any]
    notice: str


class CallCorrector:
    """Corrects calls of the operations of one database."""

    def __init__(self, foundation: Foundation) -> None:
        self._foundation = foundation

    def __call__(
        self, operation: Operation, arguments: Any, caller: Caller, refusal: StratagemError
    ) -> CorrectedCall | None:
        """Return a call that was refused as it was meant.

        None where that is not certain; `refusal` then says what may have been meant.
        """
        if operation.toolset not in _TOOLSETS or operation.person is not None:
            return None
        if not isinstance(arguments, Mapping):
            return None
        from stratagem.gateway.correction import correct

        until = time.thread_time() + limits.CORRECTION_SECONDS
        found = correct(
            operation.parameters,
            dict(arguments),
            policy=self._policy(operation, caller),
            tool=operation.name,
            categories=(operation.toolset,),
            is_late=lambda: time.thread_time() > until,
        )
        if found.chosen is not None:
            return CorrectedCall(found.chosen.arguments, _describe(found.chosen.changes))
        if found.candidates:
            _suggest(refusal, found.candidates[0])
        return None

    def _policy(self, operation: Operation, caller: Caller) -> Policy:
        from stratagem.gateway.correction import Policy
        from stratagem.gateway.learning import policies

        reader = self._foundation.store.reader()
        try:
            view = self._foundation.views.view(reader, caller.branch)
            return policies.read(reader.records, view, operation.name).policy
        except StratagemError:
            # Whatever is wrong with the branch or the policy: nothing is corrected unasked.
            return Policy(enabled=False)


def _describe(changes: Iterable[CorrectionStep]) -> str:
    parts = list(dict.fromkeys(_parts(changes)))
    said = ", ".join(parts[:_STEPS_SAID])
    more = f" and {len(parts) - _STEPS_SAID} more" if len(parts) > _STEPS_SAID else ""
    return f"Corrected: {said}{more}."


def _parts(changes: Iterable[CorrectionStep]) -> Iterator[str]:
    """Say each change in a few words."""
    for change in changes:
        place = change.path.removeprefix("$").removeprefix(".")
        if change.pattern.startswith("key_") and isinstance(change.after, str):
            yield f"`{place}` read as `{change.after}`"
        elif change.pattern.endswith("_removed") and change.after is None:
            yield f"`{place}` left out"
        elif not place:
            yield "the arguments, without the text around them"
        else:
            yield f"`{place}` read as {_show(change.after)}"


def _show(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _suggest(refusal: StratagemError, offer: Candidate) -> None:
    """Add to a refusal what may have been meant, as arguments that can be sent."""
    if offer.confidence < _OFFER_MIN:
        return
    text = orjson.dumps(offer.arguments).decode()
    if len(text) <= _OFFER_CHARS:
        refusal.hint = f"{refusal.hint} If you meant {text}, send that.".strip()
