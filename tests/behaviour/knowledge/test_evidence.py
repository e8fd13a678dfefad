"""Evidence about concepts, what wants attention, and merging twins."""

from __future__ import annotations

from typing import Any

from tests.behaviour.knowledge.conftest import Knowing
from tests.manifest import proves


def names(items: list[dict[str, Any]]) -> list[str]:
    return [each["name"] for each in items]


@proves("certainty:tried")
def test_each_source_counts_once_for_or_against_a_concept(call: Knowing) -> None:
    concept = call.concept("Caching helps")

    first = call("confirm_concept", concept_id="caching helps", source="Ada", note="twice as fast")
    again = call("confirm_concept", concept_id=concept, source="Ada")
    second = call("confirm_concept", concept_id=concept, source="Grace")
    against = call("refute_concept", concept_id=concept, source="Ada", note="not for writes")

    assert 60 < first["certainty_score"] == again["certainty_score"] < second["certainty_score"]
    assert against["certainty_score"] < first["certainty_score"]
    assert (against["confirmed"], against["refuted"]) == (1, 1)
    shown = call.get(concept)
    assert shown["certainty_score"] == against["certainty_score"]
    assert shown["evidence"].items() >= {"confirmed": 1, "refuted": 1, "links": 0}.items()
    given = call.concept("Given", certainty_score=90)
    told = call("refute_concept", concept_id=given)
    assert (told["certainty_score"], told["refuted"]) == (90, 1)
    assert "certainty_score null" in told["note"]
    call("update_concept", concept_id=given, certainty_score=None)
    assert call.get(given)["certainty_score"] < 60


@proves("certainty:tried")
def test_evidence_of_a_branch_counts_there_and_after_the_merge(call: Knowing) -> None:
    concept = call.concept("C")
    branch = call.fork("trial")
    call("refute_concept", concept_id=concept, source="Ada", branch=branch)

    assert call.get(concept)["certainty_score"] == 60
    doubted = call.get(concept, branch=branch)["certainty_score"]
    call.merge(branch)
    assert call.get(concept)["certainty_score"] == doubted < 60


@proves("knowledge:review")
def test_a_review_names_what_wants_attention(meaning: Knowing) -> None:
    text = "A cache keeps the results of earlier work, so that it need not be done again."
    loops, looped, cache, memo, doubt = (
        meaning.concept("For loops", "Repeats for each item."),
        meaning.concept("for-loop", "An entirely different explanation of iterating."),
        meaning.concept("Cache", text),
        meaning.concept("Caching", text),
        meaning.concept("Doubt", "Nothing is certain in Oslo."),
    )
    meaning.relate(doubt, cache, "contradicts")
    meaning("refute_concept", concept_id=memo, source="Ada")

    answer = meaning("review_knowledge")

    assert set(names(answer["contested"])) == {"Cache", "Caching"}
    assert "refuted by Ada" in [each["why"] for each in answer["contested"]]
    assert set(names(answer["orphaned"])) == {"For loops", "for-loop", "Caching"}
    assert answer["stale"] == []
    groups = [{each["concept_id"] for each in group} for group in answer["duplicates"]]
    assert sorted(groups, key=sorted) == sorted([{loops, looped}, {cache, memo}], key=sorted)
    assert answer["counts"] == {"contested": 2, "stale": 0, "orphaned": 3, "duplicates": 2}


@proves("knowledge:merge-twins")
def test_merged_twins_are_one_concept_that_can_be_parted_again(call: Knowing) -> None:
    stays, goes, before, after = call.concepts("Loops", "loops", "Before", "After")
    call("update_concept", concept_id=goes, area="Programming")
    call.relate(before, goes, "prerequisite", notes="first")
    call.relate(goes, after, "prerequisite")
    call.relate(after, stays, "relates_to")
    call.relate(goes, stays, "relates_to")
    call("confirm_concept", concept_id=goes, source="Ada")

    merged = call("merge_concepts", keep=stays, merge=goes)

    assert (merged["concept_id"], merged["merged_id"], merged["related"]) == (stays, goes, 2)
    assert call.get("loops")["concept_id"] == stays
    assert call.get(stays)["area"] == "Programming"
    assert call.get(stays)["evidence"]["confirmed"] == 1
    related = call("get_related_concepts", concept_id=stays)["results"]
    assert {(each["name"], each["relationship_type"]) for each in related} == {
        ("Before", "PREREQUISITE"),
        ("After", "PREREQUISITE"),
        ("After", "RELATES_TO"),
    }
    assert "first" in {each.get("notes") for each in related}
    call("restore_concept", concept_id=goes)
    assert set(call.names("get_related_concepts", concept_id=goes)) == {"Before", "After", "Loops"}
    refused = call.refusal("merge_concepts", keep=stays, merge=stays)
    assert refused["details"]["field"] == "merge"


@proves("knowledge:purge")
def test_a_purged_concept_is_nowhere_any_more(call: Knowing) -> None:
    secret = call.concept("Secret plan", "The password is swordfish.")
    other = call.concept("Other")
    call("update_concept", concept_id=secret, explanation="The password was swordfish.")
    relation = call.relate(other, secret, "relates_to", notes="swordfish again")
    call("confirm_concept", concept_id=secret, source="swordfish witness")
    call("mark_known", concepts=[secret])
    moment = call("strata_status")["head"].split(":")[0]
    branch = call.fork("trial")
    call("delete_concept", concept_id=secret)

    planned = call("purge_knowledge", record_id=secret)
    assert planned["purged"] is False
    assert call.get(secret, branch=branch)["name"] == "Secret plan"
    erased = call("purge_knowledge", record_id=secret, confirm=True)

    assert (
        erased["records"]
        == planned["records"]
        == {
            "concept": 1,
            "certainty": 1,
            "relationship": 1,
            "concept_evidence": 1,
            "known_concept": 1,
        }
    )
    for view in ({}, {"branch": branch}, {"as_of": f"@{moment}"}):
        gone = call.refusal("get_concept", concept_id=secret, **view)
        assert gone["error"] == "concept_not_found"
        assert call.names("search_concepts_exact", **view) == ["Other"]
        assert call.names("get_related_concepts", concept_id=other, **view) == []
        assert call.names("list_known", **view) == []
        assert call("strata_search", query="swordfish", kinds=["concept"], **view)["results"] == []
    assert call.refusal("restore_concept", concept_id=secret)["error"] == "concept_not_found"
    for missing, error in (("nothing", "concept_not_found"), ("rel-0", "relationship_not_found")):
        assert call.refusal("purge_knowledge", record_id=missing)["error"] == error
    again = call.relate(other, call.concept("Third"))
    call("purge_knowledge", record_id=again, confirm=True)
    assert call.names("get_related_concepts", concept_id=other) == []
    assert again != relation


@proves("knowledge:merge-twins")
def test_whoever_knows_a_merged_concept_knows_the_one_that_stays(call: Knowing) -> None:
    call.concepts("Loops", "Looping")
    call("mark_known", concepts=["Looping"], learner="Mia")
    call("mark_known", concepts=["Loops", "Looping"], learner="Tom")
    since = call("list_known", learner="Mia")["results"][0]["since"]

    call("merge_concepts", keep="Loops", merge="Looping")

    for learner in ("Mia", "Tom"):
        assert call.names("list_known", learner=learner) == ["Loops"]
    assert call("list_known", learner="Mia")["results"][0]["since"] == since


@proves("knowledge:names")
def test_a_relationship_is_deleted_by_names_that_are_clear(call: Knowing) -> None:
    call.concepts("Dup", "dup", "Other")
    call.relate("Dup", "Other")

    asked = call.refusal(
        "delete_relationship", source_id="DUP", target_id="Other", relationship_type="relates_to"
    )
    call("delete_relationship", source_id="Dup", target_id="Other", relationship_type="relates_to")

    assert (asked["error"], asked["details"]["field"]) == ("ambiguous_name", "source_id")
    assert call.names("get_related_concepts", concept_id="Other") == []


@proves("knowledge:merge-twins")
def test_a_source_that_judged_both_twins_counts_once_by_its_later_word(call: Knowing) -> None:
    stays, goes = call.concepts("Loops", "Looping")
    call("confirm_concept", concept_id=goes, source="Ada", note="at first")
    call("confirm_concept", concept_id=stays, source="Grace")
    call("refute_concept", concept_id=stays, source="Ada", note="on reflection")
    call("refute_concept", concept_id=goes, source="Grace", note="not always")
    call("confirm_concept", concept_id=stays, source="Alan")
    call("confirm_concept", concept_id=goes, source="Alan")
    latest = call.get(goes)["evidence"]["latest"]

    merged = call("merge_concepts", keep=stays, merge=goes)

    replaced = {each["source"]: each for each in merged["replaced"]}
    assert replaced.keys() == {"Ada", "Grace"}
    assert replaced["Ada"].items() >= {"verdict": "confirmed", "now": "refuted"}.items()
    assert replaced["Ada"]["note"] == "at first"
    assert replaced["Grace"].items() >= {"verdict": "confirmed", "now": "refuted"}.items()
    evidence = call.get(stays)["evidence"]
    assert (evidence["confirmed"], evidence["refuted"]) == (1, 2)
    assert evidence["latest"] == latest
    restored = call("restore_concept", concept_id=goes)["concept_id"]
    assert call.get(restored)["evidence"]["confirmed"] == 2


@proves("knowledge:merge-twins")
def test_merged_twins_have_the_period_of_one_of_them(call: Knowing) -> None:
    late = call.concept("Late", valid_from="2021")
    early = call.concept("Early", valid_to="2020")
    open_ended = call.concept("Open")

    call("merge_concepts", keep=late, merge=early)
    call("merge_concepts", keep=open_ended, merge=late)

    kept = call.get(open_ended)
    assert kept["valid_from"].startswith("2021-01-01")
    assert "valid_to" not in kept


@proves("knowledge:review")
def test_what_contradicted_at_another_time_contests_nothing(call: Knowing) -> None:
    claim, doubt = call.concepts("Claim", "Doubt")
    call.relate(doubt, claim, "contradicts", valid_to="2000")

    assert call("review_knowledge")["contested"] == []
