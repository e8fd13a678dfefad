"""Current and past facts: what was superseded, is contested, or held at another time."""

from __future__ import annotations

from typing import Any

from tests.behaviour.knowledge.conftest import Knowing
from tests.manifest import proves

QUESTION = "What is the capital of Kazakhstan?"


def refs(item: dict[str, Any], field: str) -> list[str]:
    return [each["name"] for each in item.get(field, [])]


@proves("knowledge:current")
def test_what_was_superseded_leaves_search_and_says_so_everywhere(meaning: Knowing) -> None:
    old = meaning.concept("Nur-Sultan", "The capital of Kazakhstan is Nur-Sultan.")
    new = meaning.concept("Astana", "The capital of Kazakhstan is Astana since 2022.")
    rumour = meaning.concept("Almaty", "Some say that the capital of Kazakhstan is Almaty.")
    before = meaning.names("search_concepts_semantic", query=QUESTION)

    meaning.relate(new, old, "supersedes")
    meaning.relate(rumour, new, "contradicts")

    answer = meaning("search_concepts_semantic", query=QUESTION)
    names = [each["name"] for each in answer["results"]]
    assert names == [each for each in before if each != "Nur-Sultan"]
    assert "Superseded and left out: 1" in answer["note"]
    current = next(each for each in answer["results"] if each["name"] == "Astana")
    assert refs(current, "contested_by") == ["Almaty"]
    context = meaning("get_context", query=QUESTION)
    assert "search_concepts_semantic with include_superseded" in context["note"]
    every = meaning("search_concepts_semantic", query=QUESTION, include_superseded=True)
    assert [each["name"] for each in every["results"]] == [*names, "Nur-Sultan"]
    shown = [
        meaning.get(old),
        meaning("search_concepts_exact", name="nur")["results"][0],
        meaning("get_recent_concepts")["results"][-1],
        meaning("get_concepts_by_certainty")["results"][0],
        meaning("get_related_concepts", concept_id=new, relationship_type="supersedes")["results"][
            0
        ],
        meaning("get_concept_chain", start_concept_id=old, end_concept_id=new)["path"][0],
        every["results"][-1],
    ]
    for item in shown:
        assert (item["name"], refs(item, "superseded_by")) == ("Nur-Sultan", ["Astana"]), item
    meaning("delete_concept", concept_id=new)
    assert "superseded_by" not in meaning.get(old)


@proves("knowledge:valid-time")
def test_what_held_at_a_time_is_found_whenever_it_was_told(meaning: Knowing) -> None:
    acme = meaning.concept("Acme", "A company that makes anvils.")
    ann = meaning.concept(
        "Ann leads Acme", "Ann is the chief executive of Acme.", valid_from="2015", valid_to="2020"
    )
    bob = meaning.concept(
        "Bob leads Acme", "Bob is the chief executive of Acme.", valid_from="2020-01-01"
    )
    meaning.relate(bob, ann, "supersedes")
    meaning.relate(acme, ann, "includes", valid_to="2020", notes="until the merger")
    meaning.relate(acme, bob, "includes", valid_from="2020")
    query = "Who is the chief executive of Acme?"

    assert meaning.names("search_concepts_semantic", query=query)[0] == "Bob leads Acme"
    then = meaning("search_concepts_semantic", query=query, valid_at="2019")["results"]
    assert then[0]["name"] == "Ann leads Acme"
    assert "superseded_by" not in then[0]
    assert "Bob leads Acme" not in [each["name"] for each in then]
    assert then[0]["valid_from"].startswith("2015-01-01T")
    exact = meaning.names("search_concepts_exact", name="leads", valid_at="2021-06-01T00:00:00Z")
    assert exact == ["Bob leads Acme"]
    related = meaning("get_related_concepts", concept_id="Acme", valid_at="2019-05")["results"]
    assert [(each["name"], each["notes"]) for each in related] == [
        ("Ann leads Acme", "until the merger")
    ]
    meaning("update_concept", concept_id=ann, valid_to=None)
    assert "valid_to" not in meaning.get(ann)
    for arguments in ({"valid_at": "soon"}, {"valid_at": "2019-13"}):
        refused = meaning.refusal("search_concepts_exact", **arguments)
        assert refused["details"]["field"] == "valid_at"
    upside_down = meaning.refusal(
        "update_concept", concept_id=ann, valid_from="2020", valid_to="2019"
    )
    assert upside_down["details"]["field"] == "valid_to"


@proves("knowledge:valid-time")
def test_every_reading_can_be_about_a_past_moment(call: Knowing) -> None:
    gas, led, lamp, wire = (
        call.concept(name, area=area, certainty_score=score, **period)
        for name, area, score, period in (
            ("Gas light", "Old", 10, {"valid_to": "1930"}),
            ("Diode", "New", 20, {"valid_from": "1962"}),
            ("Lamp", "Both", 30, {}),
            ("Wire", "Both", 40, {}),
        )
    )
    call.relate(gas, lamp, "prerequisite")
    call.relate(led, lamp, "prerequisite")
    call.relate(wire, lamp, "prerequisite", valid_from="1880")
    call.relate(led, gas, "supersedes", valid_from="1962")

    then: dict[str, Any] = {"valid_at": "1920"}

    def needed(**options: Any) -> set[str]:
        found = call("get_prerequisites", concept_id=lamp, **options)["prerequisites"]
        return {each["name"] for each in found}

    assert needed(**then) == {"Gas light", "Wire"}
    assert needed(valid_at="1870") == {"Gas light"}
    assert needed(valid_at="2000") == {"Diode", "Wire"}
    assert needed() == {"Gas light", "Diode", "Wire"}
    path = call("get_learning_path", target=lamp, **then)["steps"]
    assert {each["name"] for each in path[0]["concepts"]} == {"Gas light", "Wire"}
    assert set(call.names("get_recent_concepts", **then)) == {"Gas light", "Lamp", "Wire"}
    assert call.names("get_concepts_by_certainty", **then) == ["Gas light", "Lamp", "Wire"]
    areas = call("list_hierarchy", **then)["areas"]
    assert [(each["name"], each["concept_count"]) for each in areas] == [("Both", 2), ("Old", 1)]
    ends = {"start_concept_id": wire, "end_concept_id": gas}
    assert call("get_concept_chain", **ends, **then)["length"] == 2
    # The path leads by Diode from 1962 on; before 1880 none leads away from Wire.
    none = call.refusal("get_concept_chain", **ends, valid_at="1870")
    assert none["error"] == "path_not_found"
    # What a path begins or ends with was asked for, whenever it held.
    assert call("get_concept_chain", **ends, valid_at="2000")["path"][-1]["name"] == "Gas light"
    assert "superseded_by" not in call.get(gas, **then)
    assert refs(call.get(gas), "superseded_by") == ["Diode"]
    answer = call("get_concept", concept_id=gas, valid_at="2000")
    assert answer["note"].startswith("This was not true at 2000")


@proves("knowledge:valid-time")
def test_a_context_has_no_relationships_of_another_time(meaning: Knowing) -> None:
    acme = meaning.concept("Acme", "A company that makes anvils.")
    ann, bob = meaning.concepts("Ann", "Bob")
    meaning.relate(ann, acme, "relates_to", valid_to="2020")
    meaning.relate(bob, acme, "relates_to", valid_from="2020")

    now = meaning("get_context", query="company that makes anvils")["context"]
    then = meaning("get_context", query="company that makes anvils", valid_at="2019")["context"]

    assert ("Bob" in now, "Ann" in now) == (True, False)
    assert ("Bob" in then, "Ann" in then) == (False, True)


@proves("knowledge:similarity")
def test_similarity_is_absolute_and_nonsense_finds_nothing(meaning: Knowing) -> None:
    for name, explanation in (
        ("Cosine", "The cosine of the angle between two vectors measures how alike they are."),
        ("Angles", "An angle is formed by two rays that share an endpoint."),
        ("Sets", "A Python set is an unordered collection of unique values."),
    ):
        meaning.concept(name, explanation)
    query = "cosine of the angle between two vectors"

    first = meaning("search_concepts_semantic", query=query)["results"]
    meaning("delete_concept", concept_id="Cosine")
    second = meaning("search_concepts_semantic", query=query)["results"]

    assert first[0]["similarity_kind"] == "cosine"
    assert "cosine" in first[0]["snippet"]
    alone = next(each for each in first if each["name"] == "Angles")
    assert second[0]["name"] == "Angles"
    assert second[0]["similarity"] == alone["similarity"] < first[0]["similarity"]
    nonsense = meaning("search_concepts_semantic", query="zebra migrations in the serengeti")
    assert nonsense["results"] == []


@proves("search:kinds")
def test_one_search_finds_entries_concepts_and_incidents(meaning: Knowing) -> None:
    meaning("strata_store", key="port", value="The valve control listens on port 9000.")
    valve = meaning.concept("Relief valve", "A valve that opens when the pressure is too high.")
    old = meaning.concept("Old valve", "A valve that opens when the pressure is too high.")
    meaning.relate(valve, old, "supersedes")
    incident = meaning(
        "add_incident",
        title="The relief valve is stuck",
        error_signature="ValveError: the relief valve is stuck",
        steps="oil the valve",
        env={"os": "linux"},
        worked=True,
    )["incident_id"]
    query = "relief valve stuck"

    plain = meaning("strata_search", query=query)["results"]
    every = ["entry", "event", "concept", "incident"]
    found = meaning("strata_search", query=query, kinds=every)["results"]

    assert {each["kind"] for each in plain} == {"entry"}
    assert {each["key"] for each in found} == {"port", valve, incident}
    assert [each["score"] for each in found] == sorted(
        (each["score"] for each in found), reverse=True
    )
    only = meaning("strata_search", query=query, kinds=["concept"])["results"]
    assert [(each["kind"], each["key"], each["name"]) for each in only] == [
        ("concept", valve, "Relief valve")
    ]
    pages = [
        meaning("strata_search", query=query, kinds=every, k=1, cursor=str(at))["results"][0]["key"]
        for at in range(3)
    ]
    assert pages == [each["key"] for each in found]
    refused = meaning.refusal("strata_search", query=query, kinds=["concepts"])
    assert refused["details"]["field"] == "kinds"
    assert meaning("strata_search", query="zebra migrations", kinds=every)["results"] == []


@proves("search:kinds")
def test_pages_of_entries_and_concepts_show_each_once(meaning: Knowing) -> None:
    meaning("strata_store", key="cpp", value="We use C++20 and C# 12 for the tools")
    meaning("strata_store", key="editor", value="VS Code with vim keybindings")
    meaning("strata_store", key="coffee", value="Le café préféré d'Élodie est l'espresso")
    tool = meaning.concept("Tool", "What one uses for some work.")
    query: dict[str, Any] = {"query": "which keyboard do I use", "kinds": ["entry", "concept"]}

    whole = [hit["key"] for hit in meaning("strata_search", **query)["results"]]
    pages = [meaning("strata_search", **query, k=1)]
    while "next" in pages[-1]:
        pages.append(meaning("strata_search", **query, k=1, cursor=pages[-1]["next"]))

    assert {"cpp", "editor", "coffee"} <= set(whole) <= {"cpp", "editor", "coffee", tool}
    assert [hit["key"] for page in pages for hit in page["results"]] == whole


@proves("knowledge:similarity")
def test_a_question_in_other_words_finds_and_one_about_something_else_does_not(
    meaning: Knowing,
) -> None:
    for name, explanation in (
        ("Entropy", "A measure of disorder; in a closed system it never decreases."),
        ("Binary search", "Finds a value in a sorted list by halving the range it can be in."),
        ("Sonnet", "A poem of fourteen lines with a fixed scheme of rhymes."),
    ):
        meaning.concept(name, explanation)

    found = meaning("search_concepts_semantic", query="Why does heat not flow back by itself?")
    other = meaning("search_concepts_semantic", query="lyrics of a sea shanty about whales")

    assert found["results"][0]["name"] == "Entropy"
    assert (found["results"][0]["similarity_kind"], other["results"]) == ("cosine", [])
    # A lower cosine than the one that is left out: the number stays what it is.
    assert found["results"][0]["similarity"] < 0.4
