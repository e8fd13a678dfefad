"""Capturing much in one call, and reading what is known about a question in one."""

from __future__ import annotations

from tests.behaviour.knowledge.conftest import Knowing
from tests.manifest import proves


@proves("knowledge:batch")
def test_concepts_and_their_links_are_written_in_one_call(call: Knowing) -> None:
    lists = call.concept("Lists")
    call("declare_relationship_type", name="taught_by", description="Who teaches it.")

    answer = call(
        "create_concepts",
        concepts=[
            {"name": "Sorting", "explanation": "Putting in order.", "area": "CS"},
            {"name": "lists", "explanation": "Ordered values."},
            {"name": "Ada", "explanation": "A teacher.", "source": "the staff page"},
        ],
        relationships=[
            {"source": "LISTS", "target": "Sorting", "type": "prerequisite", "notes": "first"},
            {"source": "Sorting", "target": "Ada", "type": "TAUGHT_BY", "strength": 0.5},
            {"source": lists, "target": "sorting", "type": "prerequisite"},
        ],
        source="a textbook",
    )

    assert [each["name"] for each in answer["created"]] == ["Sorting", "Ada"]
    assert answer["duplicates"] == [{"concept_id": lists, "name": "lists"}]
    assert (answer["related"], answer["known"]) == (2, 1)
    related = call("get_related_concepts", concept_id="Sorting")["results"]
    assert {(each["name"], each["relationship_type"]) for each in related} == {
        ("Lists", "PREREQUISITE"),
        ("Ada", "TAUGHT_BY"),
    }
    only = call.names("get_related_concepts", concept_id="Sorting", relationship_type="taught_by")
    assert only == ["Ada"]
    assert (call.get("Sorting")["source"], call.get("Ada")["source"]) == (
        "a textbook",
        "the staff page",
    )
    assert call.get("Sorting")["certainty_score"] > 60


@proves("knowledge:batch")
def test_a_batch_is_written_whole_or_not_at_all(call: Knowing) -> None:
    one = {"name": "One", "explanation": "The first."}
    two = {"name": "Two", "explanation": "The second."}

    for field, batch in (
        ("concepts[1].explanation", {"concepts": [one, two | {"explanation": " "}]}),
        (
            "relationships[0].type",
            {
                "concepts": [one, two],
                "relationships": [{"source": "One", "target": "Two", "type": "works_at"}],
            },
        ),
        (
            "relationships[0].target",
            {
                "concepts": [one],
                "relationships": [{"source": "One", "target": "Nowhere", "type": "includes"}],
            },
        ),
        (
            "relationships[1].target_id",
            {
                "concepts": [one, two],
                "relationships": [
                    {"source": "One", "target": "Two", "type": "prerequisite"},
                    {"source": "Two", "target": "One", "type": "prerequisite"},
                ],
            },
        ),
    ):
        refused = call.refusal("create_concepts", **batch)
        assert refused["details"]["field"] == field, refused
    assert call.names("get_recent_concepts") == []
    twin = call("create_concept", name="one", explanation="e")
    assert "duplicates" not in twin
    again = call("create_concept", name="One", explanation="e")
    assert again["duplicates"] == [twin["concept_id"]]


@proves("knowledge:names")
def test_a_concept_that_takes_the_name_of_another_says_so(call: Knowing) -> None:
    old, other = call.concept("Roux"), call.concept("Velouté")
    call("delete_concept", concept_id=old)
    call.concept("Roux", "Another one.")

    restored = call("restore_concept", concept_id=old)
    renamed = call("update_concept", concept_id=other, name="roux")
    explained = call("update_concept", concept_id=other, explanation="A sauce.")

    assert len(restored["duplicates"]) == 1
    assert old in renamed["duplicates"]
    assert "another name" in restored["note"]
    assert "another name" in renamed["note"]
    assert "duplicates" not in explained


@proves("knowledge:context")
def test_what_is_known_about_a_question_fits_into_a_prompt(meaning: Knowing) -> None:
    valve = meaning.concept(
        "Relief valve", "A valve that opens when the pressure is too high. " * 50, area="Steam"
    )
    doubt = meaning.concept("Valve doubt", "The valve opens at any pressure, tests show.")
    boiler = meaning.concept("Boiler", "A vessel in which water becomes steam.")
    old = meaning.concept("Old valve", "A valve that opens when the pressure is too high.")
    meaning.relate(boiler, valve, "prerequisite")
    meaning.relate(doubt, valve, "contradicts")
    meaning.relate(valve, old, "supersedes")

    answer = meaning("get_context", query="when does a valve open?", max_chars=1_500)

    text = answer["context"]
    assert len(text) <= 1_500
    assert f"## Relief valve [{valve}] (Steam; certainty" in text
    assert "- requires: Boiler" in text
    assert "- contradicted by Valve doubt: The valve opens at any pressure" in text
    assert text.count("contradicted by") == 1
    assert "## Old valve" not in text
    assert valve in [each["concept_id"] for each in answer["concepts"]]
    nothing = meaning("get_context", query="zebra migrations in the serengeti")
    assert (nothing["context"], nothing["concepts"]) == ("", [])


@proves("knowledge:bad-input")
def test_a_type_that_cannot_be_declared_says_how_one_is_written(call: Knowing) -> None:
    refused = call.refusal("declare_relationship_type", name="Works At")

    assert refused["details"]["field"] == "name"
    assert "works_at" in refused["hint"]
    assert "declare it first" not in refused["hint"]
