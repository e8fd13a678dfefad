from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.knowledge.conftest import Knowing
from tests.manifest import proves

CONCEPT: dict[str, Any] = {"name": "N", "explanation": "e"}
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@proves("knowledge:bad-input")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "   "),
        ("name", "x" * 201),
        ("name", "a\nb"),
        ("explanation", ""),
        ("explanation", " \n"),
        ("explanation", "x" * 100_001),
        ("area", "x" * 101),
        ("topic", "x" * 101),
        ("subtopic", ""),
        ("certainty_score", -1),
        ("certainty_score", 100.5),
        ("certainty_score", True),
    ],
)
def test_a_concept_that_cannot_be_is_refused(call: Knowing, field: str, value: Any) -> None:
    concept_id = call.concept("Before")

    created = call.refusal("create_concept", **(CONCEPT | {field: value}))
    updated = call.refusal("update_concept", concept_id=concept_id, **{field: value})

    assert created["error"] == updated["error"] == "validation_error"
    assert created["details"]["field"] == updated["details"]["field"] == field


@proves("knowledge:bad-input")
def test_names_of_two_hundred_characters_are_taken(call: Knowing) -> None:
    concept_id = call.concept("é" * 200, area="x" * 100)

    assert call.get(concept_id)["name"] == "é" * 200


@proves("knowledge:bad-input")
@pytest.mark.parametrize("missing", ["name", "explanation"])
def test_a_concept_needs_a_name_and_an_explanation(call: Knowing, missing: str) -> None:
    given = {name: value for name, value in CONCEPT.items() if name != missing}

    refused = call.refusal("create_concept", **given)

    assert (refused["error"], refused["details"]["field"]) == ("missing_required", missing)


@proves("knowledge:bad-input")
def test_an_update_needs_something_to_update(call: Knowing) -> None:
    concept_id = call.concept("C")

    assert call.refusal("update_concept", concept_id=concept_id)["error"] == "validation_error"


@proves("knowledge:bad-input")
@pytest.mark.parametrize("version", [0, -1, "three", 2.5])
def test_a_version_that_cannot_be_one_is_refused(call: Knowing, version: Any) -> None:
    concept_id = call.concept("C")

    refused = call.refusal(
        "update_concept", concept_id=concept_id, name="N", expected_version=version
    )

    assert refused["error"] == "validation_error"


@proves("knowledge:bad-input")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("relationship_type", "friend_of"),
        ("relationship_type", ""),
        ("relationship_type", None),
        ("strength", 1.1),
        ("strength", -0.1),
        ("strength", "strong"),
        ("notes", "x" * 4_001),
    ],
)
def test_a_relationship_that_cannot_be_is_refused(call: Knowing, field: str, value: Any) -> None:
    a, b = call.concepts("A", "B")
    given = {"source_id": a, "target_id": b, "relationship_type": "includes"}

    refused = call.refusal("create_relationship", **(given | {field: value}))

    assert (refused["error"], refused["details"]["field"]) == ("validation_error", field)


@proves("relationship:self")
def test_a_concept_cannot_be_related_to_itself(call: Knowing) -> None:
    a = call.concept("A")

    refused = call.refusal(
        "create_relationship", source_id=a, target_id=a, relationship_type="relates_to"
    )

    assert (refused["error"], refused["details"]["field"]) == ("validation_error", "target_id")


@proves("knowledge:bad-input")
@pytest.mark.parametrize(
    ("operation", "field", "values"),
    [
        ("search_concepts_semantic", "limit", (0, 51, -1, "many", 2.5)),
        ("search_concepts_semantic", "min_certainty", (-1, 101)),
        ("search_concepts_exact", "limit", (0, 101)),
        ("search_concepts_exact", "min_certainty", (-0.1, 100.1)),
        ("get_recent_concepts", "limit", (0, 51)),
        ("get_related_concepts", "limit", (0, 51)),
        ("get_related_concepts", "direction", ("up", "", 3)),
        ("get_related_concepts", "relationship_type", ("friend",)),
        ("get_prerequisites", "depth", (0, 6, True)),
        ("get_concept_chain", "max_depth", (0, 11)),
        ("get_concepts_by_certainty", "limit", (0, 51)),
        ("get_concepts_by_certainty", "min_certainty", (-1, 101)),
        ("get_concepts_by_certainty", "max_certainty", (-1, 101)),
    ],
)
def test_parameters_out_of_range_are_refused(
    meaning: Knowing, operation: str, field: str, values: tuple[Any, ...]
) -> None:
    a = meaning.concept("A")
    needed: dict[str, dict[str, Any]] = {
        "search_concepts_semantic": {"query": "q"},
        "get_related_concepts": {"concept_id": a},
        "get_prerequisites": {"concept_id": a},
        "get_concept_chain": {"start_concept_id": a, "end_concept_id": a},
    }

    for value in values:
        refused = meaning.refusal(operation, **needed.get(operation, {}), **{field: value})
        assert refused["error"] == "validation_error", value
        assert refused["details"]["field"] == field


@proves("knowledge:bad-input")
def test_a_range_of_certainty_must_not_be_upside_down(call: Knowing) -> None:
    refused = call.refusal("get_concepts_by_certainty", min_certainty=60, max_certainty=40)

    assert refused["error"] == "validation_error"


@proves("knowledge:bad-input")
@pytest.mark.parametrize("query", ["", "   ", "x" * 10_001])
def test_a_search_needs_something_to_search_for(meaning: Knowing, query: str) -> None:
    assert meaning.refusal("search_concepts_semantic", query=query)["error"] == "validation_error"


@proves("knowledge:not-found")
@pytest.mark.parametrize(
    ("operation", "field"),
    [
        ("get_related_concepts", "concept_id"),
        ("get_prerequisites", "concept_id"),
        ("get_concept_chain", "start_concept_id"),
        ("get_concept_chain", "end_concept_id"),
        ("create_relationship", "source_id"),
        ("create_relationship", "target_id"),
    ],
)
def test_unknown_ids_are_not_found(call: Knowing, operation: str, field: str) -> None:
    a = call.concept("A")
    needed: dict[str, dict[str, Any]] = {
        "get_concept_chain": {"start_concept_id": a, "end_concept_id": a},
        "create_relationship": {
            "source_id": a,
            "target_id": a,
            "relationship_type": "includes",
        },
    }

    refused = call.refusal(operation, **(needed.get(operation, {}) | {field: UNKNOWN}))

    assert refused["error"] == "concept_not_found"
    assert refused["details"] == {"field": field, "resource_id": UNKNOWN}


@proves("knowledge:bad-input")
@pytest.mark.parametrize("concept_id", ["", "\x00", "x" * 513])
def test_what_can_be_no_id_is_refused(call: Knowing, concept_id: Any) -> None:
    assert call.refusal("get_concept", concept_id=concept_id)["error"] == "validation_error"


@proves("knowledge:bad-input")
def test_unknown_parameters_are_refused(call: Knowing) -> None:
    refused = call.refusal("create_concept", **CONCEPT, certainty=5)

    assert refused["error"] == "validation_error"
    assert "certainty_score" in refused["hint"]
