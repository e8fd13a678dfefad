"""What the debugging memory has to say about the gateway's failures.

Neither system knows the other; bootstrap puts this between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stratagem.debugging.ranking import has_only_failed
from stratagem.debugging.service import Debugging
from stratagem.debugging.unsolved_incidents import draft_incident
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation

__all__ = ["DebuggingAdvisor"]

# A fix that fails more often than not is no help to somebody who did not ask for one.
_RELIABILITY_MIN: Final = 0.5
_ACTOR: Final = "gateway"
_TITLE_CHARS: Final = 200


class DebuggingAdvisor:
    """Asks the debugging memory in the gateway's name."""

    def __init__(self, foundation: Foundation) -> None:
        self._foundation = foundation

    def known_fix(self, text: str, tool: str, branch: str, caller: Caller) -> dict[str, Any] | None:
        """Return the best known fix for an error, with the lookup it was found by.

        Whoever may not read the debugging memory learns nothing of it by failing, and whoever may
        not write to it leaves no lookup behind.
        """
        if not caller.may("debugging", "read"):
            return None
        asking = Caller(_ACTOR, branch=branch, scopes=caller.scopes, read_only=caller.read_only)
        debugging = Debugging(self._foundation, asking, asked_by=_ACTOR)
        ranked = debugging.ranked_solutions(text, _environment(tool), limit=1)
        best = ranked.recommended_solution
        if best is None or best.reliability_score < _RELIABILITY_MIN or has_only_failed(best):
            return None
        return {
            "solutionId": best.solution_id,
            "incidentId": best.incident_id,
            "incidentTitle": best.incident_title,
            "steps": best.steps,
            "relevance": best.relevance,
            "reliability": best.reliability_score,
            "why": best.why,
            "lookupId": ranked.lookup_id,
            "tool": tool,
        }

    def record_success(self, fix: Mapping[str, Any], branch: str) -> None:
        """Record that a fix which was recommended led to success."""
        self._debugging(branch).record_outcome(
            fix["solutionId"],
            True,  # noqa: FBT003 -- the document's order
            _environment(fix["tool"]),
            lookup_id=fix["lookupId"],
            notes="A later call of the same caller worked.",
        )

    def draft(self, text: str, tool: str, branch: str) -> str | None:
        """Note an error that keeps coming back and that nobody knows a fix for."""
        return draft_incident(
            self._foundation,
            Caller(_ACTOR, branch=branch),
            title=text[:_TITLE_CHARS],
            error_signature=text,
            tags=("draft", f"tool:{tool}"),
        )

    def _debugging(self, branch: str) -> Debugging:
        return Debugging(self._foundation, Caller(_ACTOR, branch=branch))


def _environment(tool: str) -> dict[str, Any]:
    return {"runtime": "gateway", "tool": tool}
