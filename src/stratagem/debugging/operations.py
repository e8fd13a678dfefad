"""The operations of debugging, as rows of the table that every surface is made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stratagem import limits
from stratagem.answers import fit_list
from stratagem.debugging.curation_operations import CURATION_OPERATIONS
from stratagem.debugging.service import Debugging
from stratagem.operation import Caller, Operation, operation
from stratagem.search.foundation import Foundation

__all__ = ["OPERATIONS"]

Answer = dict[str, Any]


def _debugging(foundation: Foundation, caller: Caller) -> Debugging:
    return Debugging(foundation, caller)


def _fit_ranked(answer: Answer, _given: Mapping[str, Any]) -> Answer:
    # The recommended one stands at the head of the list, whole.
    return fit_list(answer, limits.ANSWER_CHARS_DEFAULT, str, field="ranked_solutions")


def _next(answer: Mapping[str, Any]) -> str:
    return f"Next: {answer['next_action']['instructions']}"


def _say_ranked(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{place}. {each['solution_id']} (score {each['final_solution_score']:.2f}, reliability "
        f"{each['reliability_score']:.2f}) for {each['incident_title']!r}: "
        f"{' / '.join(each['steps'])[:500]}\n   {each['why']}"
        for place, each in enumerate(answer["ranked_solutions"], 1)
    ]
    if answer.get("note"):
        lines.append(answer["note"])
    if answer["lookup_id"]:
        lines.append(f"lookup_id: {answer['lookup_id']}")
    return "\n".join([*lines, _next(answer)])


def _say_outcome(answer: Mapping[str, Any]) -> str:
    stats, effect = answer["stats"], answer["effect"]
    return (
        f"Recorded: {stats['worked']} worked, {stats['failed']} failed; reliability "
        f"{effect['reliability_before']:.2f} → {effect['reliability_after']:.2f}. {_next(answer)}"
    )


def _say_solution(answer: Mapping[str, Any]) -> str:
    return f"Added solution {answer['solution_id']} ({answer['env_bucket']}). {_next(answer)}"


def _say_incident(answer: Mapping[str, Any]) -> str:
    if answer["duplicate"]:
        known = f"Incident {answer['incident_id']} ({answer['title']!r}) exists."
        return f"{known} {answer['note']} {_next(answer)}"
    words = f"Added incident {answer['incident_id']} with solution {answer['solution_id']}."
    if twin := answer.get("similar_incident"):
        words += f" Similar: {twin['incident_id']} ({twin['title']!r})."
    return f"{words} {_next(answer)}"


OPERATIONS: tuple[Operation, ...] = (
    operation(
        "ranked_solutions",
        Debugging.ranked_solutions,
        service=_debugging,
        toolset="debugging",
        example={
            "query_text": "KeyError: DATABASE_URL",
            "env": {"os": "linux", "python": "3.12"},
        },
        title="Ranked solutions",
        description="First tool for any error: known fixes, ranked by how well they worked in "
        "environments like yours.",
        null_fields=("lookup_id", "recommended_solution"),
        answer_fields=(
            "lookup_id",
            "incidents",
            "ranked_solutions",
            "recommended_solution",
            "next_action",
        ),
        fit=_fit_ranked,
        summarise=_say_ranked,
        # It keeps the lookup, where it may; without one it is of use all the same.
        right="read",
    ),
    operation(
        "record_outcome",
        Debugging.record_outcome,
        service=_debugging,
        toolset="debugging",
        title="Record outcome",
        description="Say whether a solution worked, every time you tried one.",
        answer_fields=("ok", "stats", "next_action"),
        summarise=_say_outcome,
    ),
    operation(
        "add_solution",
        Debugging.add_solution,
        service=_debugging,
        toolset="debugging",
        title="Add solution",
        description="Add a new fix, or one for another environment, to a known incident.",
        answer_fields=("solution_id", "env_bucket", "next_action"),
        summarise=_say_solution,
    ),
    operation(
        "add_incident",
        Debugging.add_incident,
        service=_debugging,
        toolset="debugging",
        example={
            "title": "DATABASE_URL is not set",
            "error_signature": "KeyError: DATABASE_URL",
            "steps": ["export DATABASE_URL"],
            "env": {"os": "linux", "python": "3.12"},
            "worked": True,
        },
        title="Add incident",
        description="Store a new problem with the fix you tried and whether it worked. A known "
        "error is not added twice.",
        null_fields=("solution_id", "outcome_id"),
        answer_fields=("incident_id", "solution_id", "outcome_id", "duplicate", "next_action"),
        summarise=_say_incident,
    ),
    *CURATION_OPERATIONS,
)
