"""The events that debugging writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stratagem.debugging import checks, kinds
from stratagem.debugging.ranking import Solution
from stratagem.deferred_modules import hashlib
from stratagem.engine.events import Draft
from stratagem.engine.lineage import View
from stratagem.storage.contract import Transaction

__all__ = ["add_all", "new_id", "outcome_draft", "outcome_event", "solution_draft"]


def add_all(
    transaction: Transaction,
    view: View,
    content: Mapping[str, Any],
    steps: list[str],
    place: checks.Place,
    *,
    worked: bool,
    notes: str | None,
) -> dict[str, Any]:
    """Append an incident with its fix and the fix's outcome; return their ids."""
    incident_id = new_id("inc", transaction)
    incident = Draft(
        kinds.INCIDENT_ADDED,
        {"incident_id": incident_id, "at": transaction.wall, **content},
        kinds.INCIDENTS,
        incident_id,
    )
    lookup_id = content.get("lookup_id")
    solution = solution_draft(transaction, incident_id, steps, place, lookup_id)
    assert solution.key is not None
    outcome = outcome_draft(
        transaction,
        Solution(solution.key, incident_id, tuple(steps), "", place.environment, 0),
        worked=worked,
        place=place,
        notes=notes,
        lookup_id=None,
        claim=True,
    )
    transaction.append(view.branch, [incident, solution, outcome])
    return {
        "incident_id": incident_id,
        "solution_id": solution.key,
        "outcome_id": outcome.content["outcome_id"],
    }


def solution_draft(
    transaction: Transaction,
    incident_id: str,
    steps: list[str],
    place: checks.Place,
    lookup_id: str | None,
) -> Draft:
    """Return the event that adds a fix."""
    solution_id = new_id("sol", transaction)
    content: dict[str, Any] = {
        "solution_id": solution_id,
        "incident_id": incident_id,
        "steps": steps,
        "at": transaction.wall,
        **place.content,
    }
    if lookup_id is not None:
        content["lookup_id"] = lookup_id
    return Draft(kinds.SOLUTION_ADDED, content, kinds.SOLUTIONS, solution_id)


def outcome_draft(
    transaction: Transaction,
    solution: Solution,
    *,
    worked: bool,
    place: checks.Place,
    notes: str | None,
    lookup_id: str | None,
    claim: bool = False,
    repeats: str | None = None,
    relevance: float | None = None,
) -> Draft:
    """Return the event that records an outcome.

    `repeats`: the first report of the same lookup. `relevance`: how likely the lookup was about the
    problem that the fix is for.
    """
    content: dict[str, Any] = {
        "outcome_id": new_id("out", transaction),
        "solution_id": solution.solution_id,
        "incident_id": solution.incident_id,
        "worked": worked,
        # A merge writes it anew, and evidence ages from when it was seen.
        "at": transaction.wall,
        **place.content,
    }
    optional = {
        "notes": notes,
        "lookup_id": lookup_id,
        "claim": claim or None,
        "repeats": repeats,
        "revision": solution.revisions[-1] or None,
        "relevance": relevance,
    }
    content |= {name: value for name, value in optional.items() if value is not None}
    return outcome_event(content)


def outcome_event(content: Mapping[str, Any]) -> Draft:
    """Return the event for an outcome, of the kind that its content tells."""
    if content.get("repeats"):
        return Draft(kinds.OUTCOME_REPEATED, content, kinds.REPEATS)
    worked = bool(content["worked"])
    kind = kinds.FIX_WORKED if worked else kinds.FIX_FAILED
    return Draft(kind, content, kinds.outcomes(worked=worked))


def new_id(prefix: str, transaction: Transaction) -> str:
    """Return an id that no other database makes.

    The head's hash is salted at random; two copies of one file differ by the time of their writes.
    """
    seed = f"{prefix}:{transaction.log.head().sequence}:{transaction.at}".encode()
    return f"{prefix}_{hashlib.sha256(transaction.log.head().hash + seed).hexdigest()[:16]}"
