"""The next actions that answers suggest to a model.

A caller that may only read gets suggestions that need no writing.
"""

from __future__ import annotations

from typing import Final

from stratagem.debugging.models import NextAction

__all__ = [
    "after_outcome",
    "duplicate_incident",
    "no_match",
    "no_solutions",
    "only_failed",
    "solution_added",
    "try_solution",
]

_WORDS: Final = {
    "NO_MATCH_DEBUG_THEN_ADD_INCIDENT": "No relevant incidents found. Debug normally. If a fix is "
    "found, call add_incident to store the incident + solution + outcome.",
    "NO_SOLUTIONS_ADD_ONE": "Incidents were found but no solutions exist. Debug normally. Once you "
    "find a fix that works, call add_solution for the best matching incident, then record_outcome.",
    "TRY_SOLUTION_AND_RECORD_OUTCOME": "Try the recommended solution. After attempting it, call "
    "record_outcome with worked=true or false.",
    "DONE_OR_ADD_ENV_VARIANT": "Done. If this fix works in another environment, add_solution to "
    "the same incident and then record_outcome.",
    "DONE": "Done. The outcome is kept, but what was retired is not recommended, whatever its "
    "outcomes. A person can restore it: `stratagem debug restore ID`.",
    "DEBUG_FURTHER_THEN_ADD_SOLUTION_OR_INCIDENT": "Debug further. If you find a new fix for the "
    "same incident, call add_solution (then record_outcome). If the root cause is different, call "
    "add_incident to create a new incident.",
    "RECORD_OUTCOME_FOR_NEW_SOLUTION": "If you try this solution, call record_outcome with "
    "solution_id, worked, and env.",
    "NO_MATCH_DEBUG": "No relevant incidents found. Debug normally; this memory is read-only here.",
    "NO_SOLUTIONS_DEBUG": "Incidents were found but no solutions exist. Debug normally; this "
    "memory is read-only here.",
    "DEBUG_FURTHER": "Debug further; this memory is read-only here, so a fix that works cannot be "
    "recorded.",
    "TRY_SOLUTION": "Try the recommended solution. This memory is read-only here, so its outcome "
    "cannot be recorded.",
    "USE_ADD_SOLUTION_FOR_EXISTING_INCIDENT": "An incident already exists. Use add_solution with "
    "this incident_id, then record_outcome after you try it.",
}


def _action(kind: str) -> NextAction:
    return NextAction(kind, _WORDS[kind])


def no_match(*, writes: bool = True) -> NextAction:
    """Return the next action if no similar incident is known."""
    return _action("NO_MATCH_DEBUG_THEN_ADD_INCIDENT" if writes else "NO_MATCH_DEBUG")


def no_solutions(*, writes: bool = True) -> NextAction:
    """Return the next action if the incident is known, but no fix for it."""
    return _action("NO_SOLUTIONS_ADD_ONE" if writes else "NO_SOLUTIONS_DEBUG")


def try_solution(*, writes: bool = True) -> NextAction:
    """Return the next action if a fix is known."""
    return _action("TRY_SOLUTION_AND_RECORD_OUTCOME" if writes else "TRY_SOLUTION")


def only_failed(*, writes: bool = True) -> NextAction:
    """Return the next action if the best known fix has only failed, here or at all."""
    return _action("DEBUG_FURTHER_THEN_ADD_SOLUTION_OR_INCIDENT" if writes else "DEBUG_FURTHER")


def after_outcome(*, worked: bool, retired: bool = False) -> NextAction:
    """Return the next action after a fix was tried; `retired`: it, or its incident, was."""
    if not worked:
        return _action("DEBUG_FURTHER_THEN_ADD_SOLUTION_OR_INCIDENT")
    return _action("DONE" if retired else "DONE_OR_ADD_ENV_VARIANT")


def solution_added() -> NextAction:
    """Return the next action after a fix was added that nobody has tried yet."""
    return _action("RECORD_OUTCOME_FOR_NEW_SOLUTION")


def duplicate_incident() -> NextAction:
    """Return the next action if the incident exists already."""
    return _action("USE_ADD_SOLUTION_FOR_EXISTING_INCIDENT")
