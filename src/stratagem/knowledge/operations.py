"""The operations of knowledge, as rows of the table that every surface is made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel

from stratagem.answers import read_cursor
from stratagem.knowledge import budgets, inputs
from stratagem.knowledge.service import Knowledge
from stratagem.operation import Caller, Operation, object_schema
from stratagem.search.foundation import Foundation

__all__ = ["OPERATIONS"]

Answer = dict[str, Any]
# Takes an answer, a budget in characters, and where to begin.
Fit = Callable[[Answer, int, int], Answer]

# The document names these even where they are empty.
_NULLABLE = frozenset({"area", "topic", "subtopic", "relationship_to_next"})
_TOOLSET = "knowledge"
# What an answer is cut by; no method knows of it.
_BUDGET = {"cursor", "max_chars"}
_FIT_LIST: Fit = partial(budgets.fit_results, field="results")

_WRITTEN = object_schema(
    required=("success", "concept_id", "message"),
    success="boolean",
    concept_id="string",
    message="string",
    version="integer",
)
_RELATIONSHIP = object_schema(
    required=("success", "relationship_id", "message"),
    success="boolean",
    relationship_id="string",
    message="string",
)
_LIST = object_schema(
    required=("success", "results", "total", "message"),
    success="boolean",
    results="array",
    total="integer",
    message="string",
    truncated="boolean",
    next="string",
)


def _plain(answer: Any) -> Any:
    """Return an answer as JSON, with the documented fields and without other empty ones."""
    if is_dataclass(answer):
        return {
            each.name: _plain(value)
            for each in fields(answer)
            if (value := getattr(answer, each.name)) is not None or each.name in _NULLABLE
        }
    if isinstance(answer, list):
        return [_plain(each) for each in answer]
    return answer


def _calling(method: str, fit: Fit | None) -> Callable[[Any, BaseModel, Caller], Answer]:
    """Return what runs a method of knowledge with the parameters that were given."""

    def run(foundation: Foundation, given: BaseModel, caller: Caller) -> Answer:
        options = given.model_dump(exclude_unset=True, exclude=_BUDGET)
        budget = given.model_dump(include=_BUDGET)
        begin = read_cursor(budget.get("cursor"))
        answer: Answer = _plain(getattr(Knowledge(foundation, caller), method)(**options))
        return fit(answer, budget["max_chars"], begin) if fit else answer

    return run


def _say_ping(answer: Mapping[str, Any]) -> str:
    return f"{answer['message']} ({answer['timestamp']})."


def _say_stats(answer: Mapping[str, Any]) -> str:
    events, outbox = answer["event_store"], answer["outbox"]
    return (
        f"{answer['status']}: {events['total_events']} events, {events['concept_events']} of them "
        f"about concepts; outbox: {outbox['pending']} pending, {outbox['failed']} failed."
    )


def _say_availability(answer: Mapping[str, Any]) -> str:
    words = f"{len(answer['available'])} of {answer['total_tools']} tools are available."
    missing = answer["unavailable"]
    return f"{words} Not available: {', '.join(missing)}." if missing else words


def _say_written(answer: Mapping[str, Any]) -> str:
    return f"{answer['message']}: {answer['concept_id']} (version {answer['version']})."


def _say_concept(answer: Mapping[str, Any]) -> str:
    concept = answer["concept"]
    about = f"{_place(concept)}; certainty {_certainty(concept)}, version {concept['version']}"
    earlier = [
        f"Earlier, {each['timestamp']}: {each['explanation']}"
        for each in concept.get("explanation_history", ())[:-1]
    ]
    return "\n".join(
        [f"{concept['name']} ({about})", concept["explanation"], *earlier, *_notes(answer)]
    )


def _say_relationship(answer: Mapping[str, Any]) -> str:
    return f"{answer['message']}: {answer['relationship_id']}."


def _say_list(answer: Mapping[str, Any]) -> str:
    lines = [_line(each) for each in answer["results"]]
    more = ["There are more; raise the limit or narrow the search."]
    beyond = answer.get("truncated") and "next" not in answer
    return "\n".join([*(lines or ["Nothing found."]), *(more if beyond else ()), *_notes(answer)])


def _notes(answer: Mapping[str, Any]) -> list[str]:
    return [answer["note"]] if "note" in answer else []


def _line(each: Mapping[str, Any]) -> str:
    words = f"- {each['name']} [{each['concept_id']}]"
    if "direction" in each:
        return f"{words} {each['direction']} {each['relationship_type']} ({each['strength']:g})"
    words += f" ({_place(each)}"
    if "certainty_score" in each:
        words += f"; certainty {_certainty(each)}"
    if "similarity" in each:
        words += f"; similarity {each['similarity']:.2f}"
    return words + ")"


def _say_prerequisites(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{each['depth']}. {each['name']} [{each['concept_id']}]"
        for each in answer["prerequisites"]
    ]
    return "\n".join([f"{answer['message']}.", *lines, *_notes(answer)])


def _say_chain(answer: Mapping[str, Any]) -> str:
    words = []
    for step in answer["path"]:
        words.append(f"{step['name']} [{step['concept_id']}]")
        if label := step["relationship_to_next"]:
            outgoing = step["direction_to_next"] == "outgoing"
            words.append(f"—{label}→" if outgoing else f"←{label}—")
    return f"{answer['message']}: {' '.join(words)}"


def _say_hierarchy(answer: Mapping[str, Any]) -> str:
    lines = [f"{answer['message']}."]
    for area in answer["areas"]:
        topics = ", ".join(f"{each['name']} ({each['concept_count']})" for each in area["topics"])
        lines.append(f"- {area['name']} ({area['concept_count']}): {topics}")
    return "\n".join(lines + _notes(answer))


def _place(each: Mapping[str, Any]) -> str:
    names = [each.get(level) for level in ("area", "topic", "subtopic")]
    return " / ".join(name for name in names if name) or "Uncategorized"


def _certainty(each: Mapping[str, Any]) -> str:
    return f"{each['certainty_score']:g}{' computed' if 'certainty_source' in each else ''}"


def _operation(
    name: str,
    title: str,
    description: str,
    *,
    takes: type[BaseModel],
    gives: dict[str, Any],
    says: Callable[[dict[str, Any]], str],
    fit: Fit | None = None,
    writes: bool = False,
    toolset: str = _TOOLSET,
) -> Operation:
    return Operation(
        name=name,
        toolset=toolset,
        title=title,
        description=description,
        input_model=takes,
        output_schema=gives,
        run=_calling(name, fit),
        summarise=says,
        read_only=not writes,
        idempotent=not writes,
    )


OPERATIONS: tuple[Operation, ...] = (
    _operation(
        "ping",
        "Ping",
        "Is the knowledge server there?",
        takes=inputs.NoInput,
        gives=object_schema(
            required=("status", "message", "server_name", "timestamp"),
            status="string",
            message="string",
            server_name="string",
            timestamp="string",
        ),
        says=_say_ping,
    ),
    _operation(
        "get_server_stats",
        "Server statistics",
        "Figures of the event store and the outbox.",
        takes=inputs.NoInput,
        gives=object_schema(
            required=("success", "event_store", "outbox", "status"),
            success="boolean",
            event_store="object",
            outbox="object",
            status="string",
        ),
        says=_say_stats,
    ),
    _operation(
        "get_tool_availability",
        "Tool availability",
        "Which knowledge tools can be used, and which services are there.",
        takes=inputs.NoInput,
        gives=object_schema(
            required=("success", "available", "unavailable", "total_tools", "service_status"),
            success="boolean",
            available="array",
            unavailable="array",
            total_tools="integer",
            service_status="object",
        ),
        says=_say_availability,
    ),
    _operation(
        "create_concept",
        "Create concept",
        "Add a concept to the knowledge base.",
        takes=inputs.CreateConceptInput,
        gives=_WRITTEN,
        says=_say_written,
        writes=True,
    ),
    _operation(
        "get_concept",
        "Get concept",
        "A concept by its id, now or in the past.",
        takes=inputs.ConceptInput,
        gives=object_schema(
            required=("success", "concept", "message"),
            success="boolean",
            concept="object",
            message="string",
        ),
        says=_say_concept,
        fit=budgets.fit_concept,
    ),
    _operation(
        "update_concept",
        "Update concept",
        "Change the given fields of a concept; earlier explanations stay in its history.",
        takes=inputs.UpdateConceptInput,
        gives=_WRITTEN,
        says=_say_written,
        writes=True,
    ),
    _operation(
        "delete_concept",
        "Delete concept",
        "Delete a concept; it can be restored.",
        takes=inputs.DeleteConceptInput,
        gives=_WRITTEN,
        says=_say_written,
        writes=True,
    ),
    _operation(
        "search_concepts_semantic",
        "Search by meaning",
        "Find concepts by meaning and words, most similar first.",
        takes=inputs.SemanticInput,
        gives=_LIST,
        says=_say_list,
        fit=_FIT_LIST,
    ),
    _operation(
        "search_concepts_exact",
        "Search by name and place",
        "Find concepts by part of the name, area, topic, subtopic and certainty, newest first.",
        takes=inputs.ExactInput,
        gives=_LIST,
        says=_say_list,
        fit=_FIT_LIST,
    ),
    _operation(
        "get_recent_concepts",
        "Recent concepts",
        "The concepts created last.",
        takes=inputs.RecentInput,
        gives=_LIST,
        says=_say_list,
        fit=_FIT_LIST,
    ),
    _operation(
        "create_relationship",
        "Create relationship",
        "Relate one concept to another. A prerequisite that would close a cycle is refused.",
        takes=inputs.CreateRelationshipInput,
        gives=_RELATIONSHIP,
        says=_say_relationship,
        writes=True,
    ),
    _operation(
        "delete_relationship",
        "Delete relationship",
        "Take a relationship back.",
        takes=inputs.DeleteRelationshipInput,
        gives=_RELATIONSHIP,
        says=_say_relationship,
        writes=True,
    ),
    _operation(
        "get_related_concepts",
        "Related concepts",
        "The concepts next to one, strongest relationships first.",
        takes=inputs.RelatedInput,
        gives=_LIST,
        says=_say_list,
        fit=_FIT_LIST,
    ),
    _operation(
        "get_prerequisites",
        "Prerequisites",
        "What to know before a concept, nearest first.",
        takes=inputs.PrerequisitesInput,
        gives=object_schema(
            required=("success", "prerequisites", "total", "message"),
            success="boolean",
            prerequisites="array",
            total="integer",
            message="string",
        ),
        says=_say_prerequisites,
        fit=partial(budgets.fit_results, field="prerequisites"),
    ),
    _operation(
        "get_concept_chain",
        "Concept chain",
        "A shortest path between two concepts; length counts relationships.",
        takes=inputs.ChainInput,
        gives=object_schema(
            required=("success", "path", "length", "message"),
            success="boolean",
            path="array",
            length="integer",
            message="string",
        ),
        says=_say_chain,
    ),
    _operation(
        "list_hierarchy",
        "Hierarchy",
        "Areas, topics and subtopics with how many concepts each has.",
        takes=inputs.HierarchyInput,
        gives=object_schema(
            required=("success", "areas", "total_concepts", "message"),
            success="boolean",
            areas="array",
            total_concepts="integer",
            message="string",
        ),
        says=_say_hierarchy,
        fit=budgets.fit_hierarchy,
    ),
    _operation(
        "get_concepts_by_certainty",
        "Concepts by certainty",
        "Concepts in a range of certainty, least certain first.",
        takes=inputs.ByCertaintyInput,
        gives=_LIST,
        says=_say_list,
        fit=_FIT_LIST,
    ),
    _operation(
        "restore_concept",
        "Restore concept",
        "Bring a deleted concept back as it was, with its relationships.",
        takes=inputs.DeleteConceptInput,
        gives=_WRITTEN,
        says=_say_written,
        writes=True,
        toolset="admin",
    ),
)
