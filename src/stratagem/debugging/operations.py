"""The operations of debugging, as rows of the table that every surface is made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from stratagem import limits
from stratagem.answers import fit_list, plain
from stratagem.debugging import inputs
from stratagem.debugging.service import Debugging
from stratagem.operation import Caller, Operation, object_schema
from stratagem.search.foundation import Foundation

__all__ = ["OPERATIONS"]

M = TypeVar("M", bound=BaseModel)
Answer = dict[str, Any]

# The document names these even where they are empty.
_NULLABLE = ("lookup_id", "recommended_solution", "solution_id", "outcome_id")


def _ranked(debugging: Debugging, given: inputs.RankedSolutionsInput) -> Answer:
    answer = _documented(debugging.ranked_solutions(**given.model_dump()), _NULLABLE[:2])
    # The recommended one stands at the head of the list, whole.
    return fit_list(answer, limits.ANSWER_CHARS_DEFAULT, str, field="ranked_solutions")


def _outcome(debugging: Debugging, given: inputs.RecordOutcomeInput) -> Answer:
    return _documented(debugging.record_outcome(**given.model_dump()))


def _solution(debugging: Debugging, given: inputs.AddSolutionInput) -> Answer:
    return _documented(debugging.add_solution(**given.model_dump()))


def _incident(debugging: Debugging, given: inputs.AddIncidentInput) -> Answer:
    return _documented(debugging.add_incident(**given.model_dump()), _NULLABLE[2:])


def _documented(answer: Any, nullable: tuple[str, ...] = ()) -> Answer:
    documented: Answer = dict.fromkeys(nullable)
    documented |= plain(answer)
    return documented


def _bound(run: Callable[[Debugging, M], Answer]) -> Callable[[Any, Any, Caller], Answer]:
    """Give an operation the debug memory of whoever calls."""

    def bound(foundation: Foundation, given: M, caller: Caller) -> Answer:
        return run(Debugging(foundation, caller), given)

    return bound


def _next(answer: Mapping[str, Any]) -> str:
    return f"Next: {answer['next_action']['instructions']}"


def _say_ranked(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{place}. {each['solution_id']} (score {each['final_solution_score']:.2f}, reliability "
        f"{each['reliability_score']:.2f}) for {each['incident_title']!r}: "
        f"{' / '.join(each['steps'])[:500]}\n   {each['why']}"
        for place, each in enumerate(answer["ranked_solutions"], 1)
    ]
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
        return f"Incident {answer['incident_id']} ({answer['title']!r}) exists. {_next(answer)}"
    words = f"Added incident {answer['incident_id']} with solution {answer['solution_id']}."
    if twin := answer.get("similar_incident"):
        words += f" Similar: {twin['incident_id']} ({twin['title']!r})."
    return f"{words} {_next(answer)}"


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="ranked_solutions",
        toolset="debugging",
        title="Ranked solutions",
        description="First tool for any error: known fixes for it, ranked by how well they worked "
        "in environments like yours.",
        input_model=inputs.RankedSolutionsInput,
        output_schema=object_schema(
            required=("incidents", "ranked_solutions", "next_action"),
            lookup_id=None,
            incidents="array",
            ranked_solutions="array",
            recommended_solution=None,
            next_action="object",
        ),
        run=_bound(_ranked),
        summarise=_say_ranked,
        read_only=True,
    ),
    Operation(
        name="record_outcome",
        toolset="debugging",
        title="Record outcome",
        description="Say whether a solution worked, every time you tried one.",
        input_model=inputs.RecordOutcomeInput,
        output_schema=object_schema(
            required=("ok", "next_action"), ok="boolean", stats="object", next_action="object"
        ),
        run=_bound(_outcome),
        summarise=_say_outcome,
    ),
    Operation(
        name="add_solution",
        toolset="debugging",
        title="Add solution",
        description="Add a new fix, or one for another environment, to a known incident.",
        input_model=inputs.AddSolutionInput,
        output_schema=object_schema(
            required=("solution_id", "env_bucket", "next_action"),
            solution_id="string",
            env_bucket="string",
            next_action="object",
        ),
        run=_bound(_solution),
        summarise=_say_solution,
    ),
    Operation(
        name="add_incident",
        toolset="debugging",
        title="Add incident",
        description="Store a new problem with the fix you tried and whether it worked. A known "
        "error signature is not added twice.",
        input_model=inputs.AddIncidentInput,
        output_schema=object_schema(
            required=("incident_id", "next_action"),
            incident_id="string",
            solution_id=None,
            outcome_id=None,
            duplicate="boolean",
            next_action="object",
        ),
        run=_bound(_incident),
        summarise=_say_incident,
    ),
)
