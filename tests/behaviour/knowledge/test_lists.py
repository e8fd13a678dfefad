from __future__ import annotations

from tests.behaviour.knowledge.conftest import Knowing
from tests.contracts.samples import Clock
from tests.manifest import proves


@proves("concept:recent")
def test_the_newest_concepts_come_first_whatever_changed_since(call: Knowing, clock: Clock) -> None:
    ids = []
    for name in "ABC":
        ids.append(call.concept(name))
        clock.advance(1)
    call("update_concept", concept_id=ids[0], explanation="changed")

    assert call.names("get_recent_concepts") == ["C", "B", "A"]
    assert call.names("search_concepts_exact") == ["C", "B", "A"]
    assert call.names("get_recent_concepts", limit=2) == ["C", "B"]
    assert call("get_recent_concepts", limit=2)["truncated"] is True
    assert "truncated" not in call("get_recent_concepts", limit=3)


@proves("concept:exact-search")
def test_a_part_of_a_name_is_found_in_any_case(call: Knowing) -> None:
    call.concept("Größe der Schleifen")
    call.concept("100% of _everything_")

    assert call.names("search_concepts_exact", name="schleife") == ["Größe der Schleifen"]
    assert call.names("search_concepts_exact", name="GRÖSSE") == ["Größe der Schleifen"]
    assert call.names("search_concepts_exact", name="0% of _E") == ["100% of _everything_"]
    assert call.names("search_concepts_exact", name="name=") == []


@proves("concept:exact-search")
def test_conditions_combine(call: Knowing) -> None:
    call.concept("A", area="X", topic="T", subtopic="S", certainty_score=10)
    call.concept("B", area="X", topic="T", certainty_score=90)
    call.concept("C", area="Y", topic="T", certainty_score=90)

    def found(**conditions: object) -> list[str]:
        return call.names("search_concepts_exact", **conditions)

    assert found(area="X") == ["B", "A"]
    assert found(topic="T", min_certainty=50) == ["C", "B"]
    assert found(area="X", topic="T", min_certainty=50) == ["B"]
    assert found(area="X", topic="T", subtopic="S") == ["A"]
    assert found(area="x") == []
    assert found(name="a", area="Y") == []
    assert found(min_certainty=90.5) == []


@proves("concept:hierarchy")
def test_the_headings_of_the_hierarchy_can_be_searched_for(meaning: Knowing) -> None:
    meaning.concept("Loose end")
    meaning.concept("Placed end", area="A")
    meaning.concept("Full end", area="A", topic="T", subtopic="S")

    def found(operation: str, **conditions: object) -> set[str]:
        return set(meaning.names(operation, **conditions))

    assert found("search_concepts_exact", area="Uncategorized") == {"Loose end"}
    assert found("search_concepts_exact", topic="General") == {"Loose end", "Placed end"}
    assert found("search_concepts_exact", subtopic="General") == {"Loose end", "Placed end"}
    semantic = {"query": "end"}
    assert found("search_concepts_semantic", **semantic, area="Uncategorized") == {"Loose end"}
    assert found("search_concepts_semantic", **semantic, area="A", topic="General") == {
        "Placed end"
    }


@proves("concept:hierarchy")
def test_the_hierarchy_is_never_stale(call: Knowing) -> None:
    def counts() -> dict[str, int]:
        areas = call("list_hierarchy")["areas"]
        return {each["name"]: each["concept_count"] for each in areas}

    concept_id = call.concept("C", area="A")
    seen = [counts()]
    call("update_concept", concept_id=concept_id, area="B")
    seen.append(counts())
    call("update_concept", concept_id=concept_id, explanation="other")
    seen.append(counts())
    call("delete_concept", concept_id=concept_id)
    seen.append(counts())
    call("restore_concept", concept_id=concept_id)
    seen.append(counts())
    call("update_concept", concept_id=concept_id, area=None)
    seen.append(counts())

    assert seen == [{"A": 1}, {"B": 1}, {"B": 1}, {}, {"B": 1}, {"Uncategorized": 1}]


@proves("certainty:order")
def test_the_least_certain_come_first_given_and_computed_together(call: Knowing) -> None:
    call.concept("Sure", certainty_score=95)
    call.concept("Half", certainty_score=50.5)
    call.concept("Computed")
    call.concept("Unsure", certainty_score=5)

    answer = call("get_concepts_by_certainty")

    assert [each["name"] for each in answer["results"]] == ["Unsure", "Half", "Computed", "Sure"]
    assert [each.get("certainty_source") for each in answer["results"]] == [
        None,
        None,
        "computed",
        None,
    ]
    inside = call.names("get_concepts_by_certainty", min_certainty=50.5, max_certainty=60)
    assert inside == ["Half", "Computed"]
    assert call.names("get_concepts_by_certainty", limit=1) == ["Unsure"]


@proves("certainty:given")
def test_a_given_score_takes_the_place_of_a_computed_one(call: Knowing) -> None:
    concept_id = call.concept("C")

    call("update_concept", concept_id=concept_id, certainty_score=20)

    assert [
        (each["certainty_score"], each.get("certainty_source"))
        for each in call("get_concepts_by_certainty")["results"]
    ] == [(20, None)]
