from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Opener
from tests.behaviour.knowledge.conftest import Knowing
from tests.contracts.samples import Clock
from tests.manifest import proves


@proves("concept:history")
def test_a_history_has_every_explanation_once_oldest_first(call: Knowing, clock: Clock) -> None:
    concept_id = call.concept("C", "first")
    clock.advance(60)
    call("update_concept", concept_id=concept_id, explanation="second")
    call("update_concept", concept_id=concept_id, area="A")
    call("delete_concept", concept_id=concept_id)
    call("restore_concept", concept_id=concept_id)

    concept = call.get(concept_id, include_history=True)

    assert [each["explanation"] for each in concept["explanation_history"]] == ["first", "second"]
    assert concept["explanation_history"][0]["timestamp"] == concept["created_at"]
    assert concept["created_at"] < concept["explanation_history"][1]["timestamp"]


@proves("concept:update")
def test_an_update_changes_what_is_given_and_keeps_the_rest(call: Knowing) -> None:
    concept_id = call.concept("C", "e", area="A", topic="T", subtopic="S", certainty_score=10)

    call("update_concept", concept_id=concept_id, name="New", topic=None)

    concept = call.get(concept_id)
    kept = {name: concept[name] for name in ("name", "explanation", "area", "topic", "subtopic")}
    assert kept == {
        "name": "New",
        "explanation": "e",
        "area": "A",
        "topic": None,
        "subtopic": "S",
    }
    assert concept["certainty_score"] == 10


@proves("concept:update")
def test_an_update_that_changes_nothing_writes_nothing(call: Knowing) -> None:
    concept_id = call.concept("C", "e", certainty_score=10)
    before = call.head()

    answer = call("update_concept", concept_id=concept_id, explanation="e")

    assert answer["version"] == call.get(concept_id)["version"]
    assert call.head() == before


@proves("concept:expected-version")
def test_an_update_expects_the_version_it_was_made_from(call: Knowing) -> None:
    concept_id = call.concept("C", "e")
    version = call.get(concept_id)["version"]
    call("update_concept", concept_id=concept_id, name="Other", expected_version=version)

    refused = call.refusal(
        "update_concept", concept_id=concept_id, name="Mine", expected_version=version
    )

    assert refused["error"] == "version_conflict"
    assert refused["details"]["version"] == call.get(concept_id)["version"]
    assert call.get(concept_id)["name"] == "Other"


@proves("relationship:apart")
def test_relating_a_concept_leaves_its_version_and_time_alone(call: Knowing, clock: Clock) -> None:
    first, second = call.concepts("A", "B")
    before = call.get(first)
    clock.advance(60)

    call.relate(second, first, "confirms")

    after = call.get(first)
    assert (after["version"], after["last_modified"]) == (
        before["version"],
        before["last_modified"],
    )
    assert after["certainty_score"] > before["certainty_score"]


@proves("concept:delete")
def test_a_deleted_concept_leaves_every_list_and_search(meaning: Knowing) -> None:
    concept_id, other = meaning.concepts("Gleaming sextant", "Other")
    meaning.relate(concept_id, other)

    meaning("delete_concept", concept_id=concept_id)

    lists: dict[str, dict[str, Any]] = {
        "search_concepts_semantic": {"query": "gleaming sextant"},
        "search_concepts_exact": {"name": "sextant"},
        "get_recent_concepts": {},
        "get_concepts_by_certainty": {},
        "get_related_concepts": {"concept_id": other},
    }
    for operation, arguments in lists.items():
        assert "Gleaming sextant" not in meaning.names(operation, **arguments), operation
    assert meaning("list_hierarchy")["total_concepts"] == 1
    assert meaning.refusal("get_concept", concept_id=concept_id)["error"] == "concept_not_found"


@proves("knowledge:not-found")
@pytest.mark.parametrize("operation", ["get_concept", "update_concept", "delete_concept"])
@pytest.mark.parametrize("known", [True, False])
def test_unknown_and_deleted_concepts_are_not_found(
    call: Knowing, *, operation: str, known: bool
) -> None:
    concept_id = call.concept("C") if known else "00000000-0000-4000-8000-000000000000"
    if known:
        call("delete_concept", concept_id=concept_id)
    arguments = {"name": "N"} if operation == "update_concept" else {}

    refused = call.refusal(operation, concept_id=concept_id, **arguments)

    assert refused["error"] == "concept_not_found"
    assert refused["details"]["resource_id"] == concept_id
    assert ("brings it back" in refused["hint"]) is known


@proves("concept:restore")
def test_a_deleted_concept_comes_back_as_it_was_with_its_relationships(call: Knowing) -> None:
    concept_id, other = call.concepts("C", "Other")
    call.relate(concept_id, other)
    before = call.get(concept_id)
    call("delete_concept", concept_id=concept_id)

    answer = call("restore_concept", concept_id=concept_id)

    assert answer["message"] == "Restored"
    after = call.get(concept_id)
    changing = ("version", "last_modified")
    assert {k: v for k, v in after.items() if k not in changing} == {
        k: v for k, v in before.items() if k not in changing
    }
    assert call.names("get_related_concepts", concept_id=other) == ["C"]
    assert call.names("search_concepts_exact", name="C") == ["C"]


@proves("concept:restore")
def test_only_a_deleted_concept_can_be_restored(call: Knowing) -> None:
    concept_id = call.concept("C")

    there = call.refusal("restore_concept", concept_id=concept_id)
    never = call.refusal("restore_concept", concept_id="nothing")

    assert (there["error"], never["error"]) == ("validation_error", "concept_not_found")


@proves("concept:retry")
def test_a_repeated_write_returns_the_first_answer_and_writes_nothing(call: Knowing) -> None:
    first = call("create_concept", name="C", explanation="e", request_id="r1")
    concept_id = first["concept_id"]
    updated = call("update_concept", concept_id=concept_id, name="D", request_id="r2")
    head = call.head()

    again = call("create_concept", name="C", explanation="e", request_id="r1")
    updated_again = call("update_concept", concept_id=concept_id, name="D", request_id="r2")

    assert (again, updated_again) == (first, updated)
    assert call.head() == head
    reused = call.refusal("create_concept", name="X", explanation="e", request_id="r1")
    assert reused["error"] == "request_id_reused"


@proves("concept:semantic")
def test_a_search_by_meaning_follows_the_newest_text(meaning: Knowing) -> None:
    concept_id = meaning.concept("Vessel", "A small wooden boat for the harbour.")
    meaning.concept("Tax form", "A sheet of paper for the revenue office.")
    meaning("update_concept", concept_id=concept_id, explanation="A volcano erupting lava.")

    found = meaning.names("search_concepts_semantic", query="lava from a volcano")
    by_name = meaning.names("search_concepts_semantic", query="vessel")

    assert found[0] == "Vessel"
    assert by_name[0] == "Vessel"


@proves("concept:semantic")
def test_filters_of_a_search_apply_together_before_the_cut(meaning: Knowing) -> None:
    for number in range(8):
        meaning.concept(
            f"Harbour {number}",
            "Ships in the harbour.",
            area="Sea" if number % 2 else "Land",
            topic="Ports" if number < 6 else "Tides",
            certainty_score=number * 10,
        )

    found = meaning.names(
        "search_concepts_semantic",
        query="harbour ships",
        area="Sea",
        topic="Ports",
        min_certainty=50,
        limit=1,
    )

    assert found == ["Harbour 5"]


@proves("knowledge:availability")
def test_without_an_embedder_only_the_search_by_meaning_is_unavailable(call: Knowing) -> None:
    call.concept("C")

    refused = call.refusal("search_concepts_semantic", query="c")
    availability = call("get_tool_availability")

    assert refused["error"] == "service_unavailable"
    assert refused["details"]["service"] == "embedding_service"
    assert "embedding_service" in refused["message"]
    assert availability["unavailable"] == ["search_concepts_semantic"]
    assert availability["total_tools"] == 17
    assert availability["service_status"]["search_tools"]["embedding_service"] is False
    assert call.names("search_concepts_exact") == ["C"]


@proves("concept:reopen")
def test_knowledge_is_there_when_the_database_is_opened_again(opened: Opener) -> None:
    first = opened()
    concept_id = first("create_concept", name="C", explanation="e")["concept_id"]

    again = opened()

    assert again("get_concept", concept_id=concept_id)["concept"]["name"] == "C"


@proves("knowledge:apart")
def test_memory_does_not_show_what_knowledge_keeps(meaning: Knowing) -> None:
    meaning.concept("Gleaming sextant")
    meaning.store(key="k", value="v")

    status = meaning.status()

    assert meaning.keys("gleaming sextant") == []
    assert (status["keys"], status["namespaces"]) == (1, ["default"])


@proves("concept:exact-text")
@pytest.mark.parametrize(
    "text", ["a\x00b", "  padded\n", "\U0001f680 é e\u0301 \u202e", '"\\\\u0000"']
)
def test_an_explanation_comes_back_as_it_was_given(call: Knowing, text: str) -> None:
    concept_id = call.concept("C", text, certainty_score=1)
    call("update_concept", concept_id=concept_id, explanation=text + "!")

    concept = call.get(concept_id, include_history=True)

    assert concept["explanation"] == text + "!"
    assert [each["explanation"] for each in concept["explanation_history"]] == [text, text + "!"]


@proves("concept:expected-version")
def test_of_two_updates_made_from_one_version_only_one_is_taken(opened: Opener) -> None:
    ours, theirs = opened(), opened()
    concept_id = ours("create_concept", name="C", explanation="e")["concept_id"]
    version = theirs("get_concept", concept_id=concept_id)["concept"]["version"]
    ours("update_concept", concept_id=concept_id, explanation="ours", expected_version=version)

    refused = theirs.refusal(
        "update_concept", concept_id=concept_id, explanation="theirs", expected_version=version
    )

    assert refused["error"] == "version_conflict"
    assert theirs("get_concept", concept_id=concept_id)["concept"]["explanation"] == "ours"


@proves("concept:restore")
def test_a_deleted_concept_is_restored_by_its_name(call: Knowing) -> None:
    concept_id = call.concept("École")
    call("update_concept", concept_id=concept_id, explanation="Another.")
    call("delete_concept", concept_id="École")

    refused = call.refusal("get_concept", concept_id="e\u0301cole")
    answer = call("restore_concept", concept_id="e\u0301cole")

    assert "was deleted" in refused["message"]
    assert answer["concept_id"] == concept_id
    assert call.get("École")["explanation"] == "Another."
    there = call.refusal("restore_concept", concept_id="école")
    assert (there["error"], "not deleted" in there["message"]) == ("validation_error", True)


@proves("concept:restore")
def test_a_name_of_several_deleted_concepts_is_asked_about(call: Knowing) -> None:
    concepts = call.concepts("Twin", "Twin")
    renamed = call.concept("Twin")
    call("update_concept", concept_id=renamed, name="Other")
    for each in (*concepts, renamed):
        call("delete_concept", concept_id=each)

    refused = call.refusal("restore_concept", concept_id="twin")

    assert refused["error"] == "ambiguous_name"
    assert all(each in refused["hint"] for each in concepts)
    assert renamed not in refused["hint"]


@proves("knowledge:near-names")
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("Photosythesis", ["Photosynthesis"]),
        ("nueral netwroks", ["Neural Networks"]),
        ("LSQ", ["SQL"]),
        ("Networks", ["Neural Networks"]),
        ("quantum chromodynamics", None),
    ],
)
def test_a_misspelt_name_is_answered_with_the_names_it_is_like(
    call: Knowing, given: str, meant: list[str] | None
) -> None:
    call.concepts("Photosynthesis", "Neural Networks", "SQL", "Gravity")

    refused = call.refusal("get_concept", concept_id=given)

    assert refused["details"].get("similar") == meant


@proves("knowledge:near-names")
def test_a_misspelt_name_is_found_among_more_names_than_are_compared(call: Knowing) -> None:
    for hundred in range(6):
        names = [f"Theory of {hundred}{number:02}" for number in range(100)]
        concepts = [{"name": each, "explanation": "Stated."} for each in names]
        call("create_concepts", concepts=concepts)
    call.concepts("Photosynthesis", "Theory of everything")

    one = call.refusal("get_concept", concept_id="Photosythesis")
    two = call.refusal("get_concept", concept_id="Theory of everythnig")

    assert one["details"]["similar"] == ["Photosynthesis"]
    assert two["details"]["similar"][0] == "Theory of everything"


@proves("knowledge:near-names")
def test_an_area_in_another_case_is_answered_as_it_is_written(meaning: Knowing) -> None:
    meaning.concept("Roux", "Flour cooked in butter.", area="Cooking", topic="Sauces")

    exact = meaning("search_concepts_exact", area="cooking", topic="SAUCES")
    similar = meaning("search_concepts_semantic", query="flour and butter", area="COOKING")
    other = meaning("search_concepts_exact", area="Cooking", topic="Soups")

    assert exact["total"] == 0
    assert exact["note"].startswith(
        "The area is written 'Cooking'. The topic is written 'Sauces'. "
    )
    assert "The area is written 'Cooking'." in similar["note"]
    assert "is written" not in other["note"]


@proves("knowledge:near-names")
def test_a_search_that_finds_nothing_says_so_and_what_to_try(meaning: Knowing) -> None:
    none = meaning("get_recent_concepts")
    meaning.concept("Photosynthesis", area="Biology")
    near = meaning("search_concepts_semantic", query="Photosythesis")
    narrow = meaning("search_concepts_semantic", query="Photosynthesis", area="Physics")
    exact = meaning("search_concepts_exact", name="Photosythesis")
    found = meaning("search_concepts_semantic", query="Photosynthesis")

    assert none["message"] == near["message"] == narrow["message"] == "Nothing found"
    assert "create_concept" in none["note"]
    assert "'Photosynthesis'" in near["note"]
    assert "'Photosynthesis'" in exact["note"]
    assert "filter" in narrow["note"]
    assert (found["message"], found.get("note")) == ("Found", None)
