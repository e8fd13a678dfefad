from __future__ import annotations

import pytest

from tests.behaviour.knowledge.conftest import Knowing
from tests.contracts.samples import Clock
from tests.manifest import proves


@proves("knowledge:branch")
def test_everything_on_a_branch_is_invisible_elsewhere(meaning: Knowing) -> None:
    base = meaning.concept("Base", area="A")
    branch = meaning.fork("trial")
    new = meaning.concept("New harbour", area="B", branch=branch)
    meaning.relate(base, new, "prerequisite", branch=branch)
    meaning("update_concept", concept_id=base, name="Changed", branch=branch)

    assert meaning.names("get_recent_concepts") == ["Base"]
    assert meaning.names("get_related_concepts", concept_id=base) == []
    assert meaning("list_hierarchy")["total_concepts"] == 1
    assert meaning.names("search_concepts_semantic", query="harbour") == []
    assert meaning.get(base)["certainty_score"] == 60

    assert set(meaning.names("get_recent_concepts", branch=branch)) == {"Changed", "New harbour"}
    assert meaning("get_prerequisites", concept_id=new, branch=branch)["total"] == 1
    chain = meaning("get_concept_chain", start_concept_id=new, end_concept_id=base, branch=branch)
    assert [step["name"] for step in chain["path"]] == ["New harbour", "Changed"]
    areas = meaning("list_hierarchy", branch=branch)["areas"]
    assert [each["name"] for each in areas] == ["A", "B"]
    assert meaning.names("search_concepts_semantic", query="harbour", branch=branch)
    assert meaning.get(base, branch=branch)["certainty_score"] > 60
    assert meaning.names("get_concepts_by_certainty", min_certainty=61, branch=branch)


@proves("knowledge:branch")
def test_a_branch_hides_what_it_deletes(call: Knowing) -> None:
    a, b, c = call.concepts(*"ABC")
    call.relate(a, b)
    call.relate(b, c)
    branch = call.fork("trial")
    call("delete_concept", concept_id=b, branch=branch)

    assert call.names("get_related_concepts", concept_id=a, branch=branch) == []
    assert call.names("get_related_concepts", concept_id=a) == ["B"]
    refused = call.refusal("get_concept_chain", start_concept_id=a, end_concept_id=c, branch=branch)
    assert refused["error"] == "path_not_found"
    assert call("list_hierarchy", branch=branch)["total_concepts"] == 2


@proves("knowledge:past")
def test_every_reading_tool_sees_the_past(meaning: Knowing, clock: Clock) -> None:
    a = meaning.concept("Alpha", area="A", certainty_score=10)
    b = meaning.concept("Beta", area="A", certainty_score=20)
    meaning.relate(a, b, "prerequisite")
    clock.advance(60)
    moment = "30 seconds ago"
    meaning("update_concept", concept_id=a, name="Changed", area="B", certainty_score=90)
    meaning("delete_relationship", source_id=a, target_id=b, relationship_type="prerequisite")
    meaning("delete_concept", concept_id=b)

    assert meaning.get(a, as_of=moment)["name"] == "Alpha"
    assert meaning.get(b, as_of=moment)["name"] == "Beta"
    assert meaning.names("get_recent_concepts", as_of=moment) == ["Beta", "Alpha"]
    assert meaning.names("search_concepts_exact", area="A", as_of=moment) == ["Beta", "Alpha"]
    assert meaning.names("search_concepts_exact", name="alp", as_of=moment) == ["Alpha"]
    assert meaning.names("search_concepts_semantic", query="alpha", as_of=moment)[0] == "Alpha"
    assert meaning.names("get_related_concepts", concept_id=a, as_of=moment) == ["Beta"]
    assert meaning("get_prerequisites", concept_id=b, as_of=moment)["total"] == 1
    chain = meaning("get_concept_chain", start_concept_id=a, end_concept_id=b, as_of=moment)
    assert chain["length"] == 1
    assert meaning("list_hierarchy", as_of=moment)["areas"][0]["concept_count"] == 2
    certain = meaning.names("get_concepts_by_certainty", max_certainty=15, as_of=moment)
    assert certain == ["Alpha"]
    assert meaning.names("get_recent_concepts") == ["Changed"]


@proves("knowledge:merge")
def test_a_merge_joins_edits_of_a_concept_field_by_field(call: Knowing) -> None:
    concept = call.concept("C", "e", area="A")
    branch = call.fork("trial")
    call("update_concept", concept_id=concept, explanation="theirs", branch=branch)
    call("update_concept", concept_id=concept, area="B")

    call.merge(branch)

    merged = call.get(concept)
    assert (merged["explanation"], merged["area"]) == ("theirs", "B")
    assert call("list_hierarchy")["areas"][0]["name"] == "B"


@proves("knowledge:conflict")
def test_different_edits_of_one_field_are_a_conflict_that_can_be_decided(call: Knowing) -> None:
    concept = call.concept("C", "e")
    branch = call.fork("trial")
    call("update_concept", concept_id=concept, explanation="theirs", branch=branch)
    call("update_concept", concept_id=concept, explanation="ours")

    refused = call.refusal("strata_branch", action="merge", source=branch)
    conflict = refused["details"]["conflicts"][0]
    call.merge(branch, decisions={conflict["id"]: {"value": {"explanation": "agreed"}}})

    assert refused["error"] == "merge_conflict"
    assert (conflict["ours"], conflict["theirs"]) == ("ours", "theirs")
    assert call.get(concept)["explanation"] == "agreed"


@proves("knowledge:conflict")
def test_a_decision_that_no_concept_can_have_is_refused(call: Knowing) -> None:
    concept = call.concept("C", "e")
    branch = call.fork("trial")
    call("update_concept", concept_id=concept, name="theirs", branch=branch)
    call("update_concept", concept_id=concept, name="ours")

    decided = f"concept:knowledge/{concept}"
    for value, field in (
        ("text", "decisions"),
        ({"name": "x" * 201}, "name"),
        ({"name": None}, "name"),
        ({"certainty_score": 101}, "certainty_score"),
        ({"color": "red"}, "color"),
        ({"created_at": None}, "created_at"),
        ({"created_at": "yesterday"}, "created_at"),
    ):
        refused = call.refusal(
            "strata_branch", action="merge", source=branch, decisions={decided: {"value": value}}
        )
        assert (refused["error"], refused["details"]["field"]) == ("validation_error", field)
    call.merge(branch, decisions={decided: {"value": {"name": "agreed"}}})
    assert call.get(concept)["name"] == "agreed"


@proves("knowledge:conflict")
def test_a_decision_may_clear_places_and_certainty(call: Knowing) -> None:
    concept = call.concept("C", "e", area="A", certainty_score=5)
    branch = call.fork("trial")
    call("update_concept", concept_id=concept, area="B", certainty_score=10, branch=branch)
    call("update_concept", concept_id=concept, area="C", certainty_score=20)

    cleared = {"area": None, "certainty_score": None}
    call.merge(branch, decisions={f"concept:knowledge/{concept}": {"value": cleared}})

    merged = call.get(concept)
    assert (merged["area"], merged["certainty_score"]) == (None, 60)
    assert merged["certainty_source"] == "computed"
    assert call.names("get_concepts_by_certainty", min_certainty=60, max_certainty=60) == ["C"]
    assert call.names("search_concepts_exact", area="Uncategorized", min_certainty=60) == ["C"]
    assert call("list_hierarchy")["areas"][0]["name"] == "Uncategorized"


@proves("knowledge:conflict")
def test_a_relationship_deleted_here_and_changed_there_is_a_conflict(call: Knowing) -> None:
    a, b, c = call.concepts(*"ABC")
    relationship = call.relate(a, b, strength=0.5)
    ends = {"source_id": a, "target_id": b, "relationship_type": "relates_to"}
    branch = call.fork("trial")
    call("delete_relationship", **ends, branch=branch)
    call.relate(a, b, strength=0.9, branch=branch)
    call("delete_relationship", **ends)

    decided = f"relationship:knowledge/{relationship}"
    for value in (
        {"strength": 2},
        {"strength": None},
        {"strength": "x"},
        {"color": "red"},
        {"notes": 5},
        {"target_id": c},
        {"relationship_type": "includes"},
    ):
        refused = call.refusal(
            "strata_branch", action="merge", source=branch, decisions={decided: {"value": value}}
        )
        assert refused["error"] == "validation_error", value
    call.merge(branch, decisions={decided: {"value": {"strength": 0.7}}})
    related = call("get_related_concepts", concept_id=a)["results"]
    assert [each["strength"] for each in related] == [0.7]


@proves("knowledge:merge", "certainty:current")
def test_a_merge_unites_relationships_and_computes_certainty_anew(call: Knowing) -> None:
    a, b, c = call.concepts(*"ABC")
    branch = call.fork("trial")
    call.relate(b, a, "confirms", branch=branch)
    call.relate(a, b, strength=0.3, branch=branch)
    call.relate(c, a, "confirms")
    call.relate(a, b, strength=0.8)
    apart = call.get(a)["certainty_score"]

    call.merge(branch)

    related = call("get_related_concepts", concept_id=a)["results"]
    assert {(each["name"], each["relationship_type"]) for each in related} == {
        ("B", "CONFIRMS"),
        ("C", "CONFIRMS"),
        ("B", "RELATES_TO"),
    }
    assert [each["strength"] for each in related if each["direction"] == "outgoing"] == [0.8]
    assert call.get(a)["certainty_score"] > apart


@proves("knowledge:merge")
def test_a_merge_brings_new_concepts_and_deletions(call: Knowing) -> None:
    gone, other = call.concepts("Gone", "Other")
    call.relate(gone, other, "contradicts")
    branch = call.fork("trial")
    call.concept("New", branch=branch)
    call("delete_concept", concept_id=gone, branch=branch)
    call("update_concept", concept_id=other, area="Here", branch=branch)

    call.merge(branch)

    assert set(call.names("get_recent_concepts")) == {"New", "Other"}
    assert set(call.names("get_concepts_by_certainty")) == {"New", "Other"}
    assert call.get(other)["certainty_score"] == 60
    assert call("strata_branch", action="diff", compare=branch)["results"] == []


@proves("knowledge:merge")
def test_a_relationship_deleted_on_a_branch_is_gone_after_the_merge(call: Knowing) -> None:
    a, b = call.concepts(*"AB")
    call.relate(a, b, "contradicts")
    doubted = call.get(b)["certainty_score"]
    branch = call.fork("trial")
    call(
        "delete_relationship",
        source_id=a,
        target_id=b,
        relationship_type="contradicts",
        branch=branch,
    )

    call.merge(branch)

    assert call.names("get_related_concepts", concept_id=a) == []
    assert call.get(b)["certainty_score"] == 60 > doubted


@proves("knowledge:merged-cycle")
def test_a_cycle_that_only_a_merge_makes_does_not_trap_a_walk(call: Knowing) -> None:
    a, b, c = call.concepts(*"ABC")
    branch = call.fork("trial")
    call.relate(a, b, "prerequisite", branch=branch)
    call.relate(b, a, "prerequisite")
    call.merge(branch)

    answer = call("get_prerequisites", concept_id=a, depth=5)

    assert [each["name"] for each in answer["prerequisites"]] == ["B"]
    assert answer["cycle"] == [a, b, a]
    assert "A → B → A" in answer["note"]
    call.relate(a, c, "prerequisite")
    beyond = call("get_prerequisites", concept_id=c, depth=5)
    assert [each["name"] for each in beyond["prerequisites"]] == ["A", "B"]
    assert "cycle" not in beyond
    assert call("get_concept_chain", start_concept_id=c, end_concept_id=b)["length"] == 2
    call("delete_relationship", source_id=b, target_id=a, relationship_type="prerequisite")
    assert "cycle" not in call("get_prerequisites", concept_id=b)


@proves("knowledge:merged-cycle")
def test_a_longer_cycle_that_a_merge_makes_is_shown_in_order(call: Knowing) -> None:
    a, b, c, d = call.concepts(*"ABCD")
    call.relate(a, b, "prerequisite")
    call.relate(d, b, "prerequisite")
    branch = call.fork("trial")
    call.relate(b, c, "prerequisite", branch=branch)
    call.relate(c, a, "prerequisite")
    call.merge(branch)

    assert call("get_prerequisites", concept_id=b)["cycle"] == [b, c, a, b]
    assert call("get_prerequisites", concept_id=b, depth=2)["cycle"] == [b, c, a, b]
    path = call("get_learning_path", target=b)
    assert [[each["name"] for each in step["concepts"]] for step in path["steps"]] == [
        ["D"],
        ["B", "A", "C"],
    ]
    assert "require each other" in path["note"]


@proves("knowledge:past")
@pytest.mark.parametrize("operation", ["get_recent_concepts", "list_hierarchy"])
def test_an_unknown_branch_or_a_future_moment_is_refused(call: Knowing, operation: str) -> None:
    unknown = call.refusal(operation, branch="nowhere")
    future = call.refusal(operation, as_of="2999-01-01T00:00:00Z")

    assert (unknown["error"], future["error"]) == ("branch_not_found", "validation_error")


@proves("knowledge:merged-cycle")
def test_a_merge_says_which_cycle_it_makes_and_which_call_breaks_it(call: Knowing) -> None:
    a, b, c, d = call.concepts("Lists", "Sorting", "Heaps", "Trees")
    call.relate(a, b, "prerequisite")
    call.relate(d, a, "prerequisite")
    call.fork("trial")
    call.relate(c, a, "prerequisite", branch="trial")
    call.relate(b, c, "prerequisite")
    new = call("create_concept", name="Graphs", explanation="e", branch="trial")["concept_id"]
    call.relate(c, new, "prerequisite", branch="trial")

    preview = call.merge("trial", preview=True)["notices"]
    notices = call.merge("trial")["notices"]

    assert preview == notices
    assert len(notices) == 1
    assert "Lists → Sorting → Heaps → Lists" in notices[0]
    assert f"source_id {c!r} and target_id {a!r}" in notices[0]
    assert call("get_prerequisites", concept_id=a)["cycle"]
    call("delete_relationship", source_id=c, target_id=a, relationship_type="prerequisite")
    assert "cycle" not in call("get_prerequisites", concept_id=a)


@proves("knowledge:merged-cycle")
def test_a_merge_that_makes_no_cycle_has_nothing_to_tell(call: Knowing) -> None:
    a, b, c = call.concepts("A", "B", "C")
    call.relate(a, b, "prerequisite")
    call.fork("trial")
    call.relate(b, c, "prerequisite", branch="trial")
    # Deleted on the source: what only leads through it makes no circle.
    call("delete_concept", concept_id=c, branch="trial")
    call.relate(c, a, "prerequisite")

    assert "notices" not in call.merge("trial")


@proves("knowledge:merge")
def test_a_diff_and_a_conflict_call_concepts_by_their_names(call: Knowing) -> None:
    concept = call.concept("Ann leads Acme", valid_from="2015")
    call.fork("trial")
    call("update_concept", concept_id=concept, valid_from="2016", branch="trial")
    call("update_concept", concept_id=concept, valid_from="2017")
    call("confirm_concept", concept_id=concept, source="the register", branch="trial")
    call("mark_known", concepts=[concept], learner="Mia", branch="trial")

    changes = call("strata_branch", action="diff", compare="trial")["results"]
    conflict = call.merge("trial", preview=True)["conflicts"][0]
    refused = call.refusal("strata_branch", action="merge", source="trial")["details"]["conflicts"]
    decided = call.merge(
        "trial", decisions={conflict["id"]: {"value": {"valid_from": "2018-01-01T00:00:00Z"}}}
    )

    assert {(each["kind"], each["title"]) for each in changes} == {
        ("concept", "Ann leads Acme"),
        ("concept_evidence", "Ann leads Acme"),
        ("known_concept", "Ann leads Acme"),
    }
    assert conflict in refused
    assert (conflict["title"], conflict["path"]) == ("Ann leads Acme", "$.valid_from")
    assert conflict["ours"].startswith("2017-01-01T")
    assert decided["resolved"] == 1
    assert call.get(concept)["valid_from"].startswith("2018-01-01T")
    call.fork("other")
    call("update_concept", concept_id=concept, valid_from="2016", branch="other")
    call("update_concept", concept_id=concept, valid_from="2017")
    wrong = {conflict["id"]: {"value": {"valid_from": "soon"}}}
    said = call.refusal("strata_branch", action="merge", source="other", decisions=wrong)
    assert said["details"]["field"] == "valid_from"
