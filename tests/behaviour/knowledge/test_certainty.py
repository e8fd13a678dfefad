from __future__ import annotations

from typing import Any

from tests.behaviour.knowledge.conftest import Knowing
from tests.manifest import proves


@proves("certainty:computed")
def test_a_computed_certainty_says_so(call: Knowing) -> None:
    computed = call("create_concept", name="C", explanation="e")
    given = call("create_concept", name="G", explanation="e", certainty_score=60)

    assert (computed["certainty_score"], computed["certainty_source"]) == (60, "computed")
    assert "certainty_source" not in given
    assert call.get(computed["concept_id"])["certainty_source"] == "computed"
    assert "certainty_source" not in call.get(given["concept_id"])


@proves("certainty:evidence")
def test_the_length_of_an_explanation_says_nothing(call: Knowing) -> None:
    short = call.concept("Short", "s")
    long = call.concept("Long", "word " * 2_000)

    assert call.get(short)["certainty_score"] == call.get(long)["certainty_score"]


@proves("certainty:evidence", "certainty:given")
def test_evidence_moves_a_computed_certainty_and_only_that(call: Knowing) -> None:
    computed, given, other, doubt, third = (
        call.concept("C"),
        call.concept("G", certainty_score=50),
        call.concept("O"),
        call.concept("D"),
        call.concept("T"),
    )
    scores = [call.get(computed)["certainty_score"]]
    for label, source in (("confirms", other), ("contradicts", doubt), ("supersedes", third)):
        call.relate(source, computed, label)
        call.relate(source, given, label)
        scores.append(call.get(computed)["certainty_score"])

    assert scores[0] < scores[1] > scores[2] > scores[3]
    assert call.get(given)["certainty_score"] == 50


@proves("certainty:evidence")
def test_a_stronger_confirmation_counts_more(call: Knowing) -> None:
    weak, strong, source = call.concepts("Weak", "Strong", "Source")

    call.relate(source, weak, "confirms", strength=0.2)
    call.relate(source, strong, "confirms", strength=1.0)

    assert 60 < call.get(weak)["certainty_score"] < call.get(strong)["certainty_score"]


@proves("certainty:evidence")
def test_who_is_more_certain_contradicts_more(call: Knowing) -> None:
    names = ("Weak", "Untried", "Strong")
    doubted = call.concepts(*(f"D{each}" for each in names))
    weak = call.concept("Weak", certainty_score=1)
    untried = call.concept("Untried")
    strong = call.concept("Strong", certainty_score=99)
    for source, target in zip((weak, untried, strong), doubted, strict=True):
        call.relate(source, target, "contradicts")

    scores = [call.get(each)["certainty_score"] for each in doubted]
    call("update_concept", concept_id=strong, certainty_score=1)
    weakened = call.get(doubted[2])["certainty_score"]
    call("update_concept", concept_id=strong, certainty_score=None)

    assert scores[0] > scores[1] > scores[2]
    assert weakened == scores[0]
    assert call.get(doubted[2])["certainty_score"] == scores[1]
    assert call.get(strong)["certainty_source"] == "computed"


@proves("certainty:current")
def test_certainty_follows_when_evidence_goes_and_comes_back(call: Knowing) -> None:
    concept, other = call.concepts("C", "O")
    before = call.get(concept)["certainty_score"]
    call.relate(other, concept, "contradicts")
    doubted = call.get(concept)["certainty_score"]

    call("delete_concept", concept_id=other)
    alone = call.get(concept)["certainty_score"]
    call("restore_concept", concept_id=other)
    again = call.get(concept)["certainty_score"]
    call("delete_relationship", source_id=other, target_id=concept, relationship_type="contradicts")

    assert (alone, again) == (before, doubted)
    assert doubted < before == call.get(concept)["certainty_score"]


@proves("certainty:evidence")
def test_linking_alone_makes_nothing_certain(call: Knowing) -> None:
    center = call.concept("Center")
    for number in range(30):
        call.relate(center, call.concept(str(number)))

    assert call.get(center)["certainty_score"] < 75


@proves("certainty:current")
def test_filters_see_the_computed_certainty(call: Knowing) -> None:
    concept, other = call.concepts("C", "O")
    call.relate(other, concept, "supersedes")

    assert call.names("search_concepts_exact", min_certainty=60) == ["O"]
    assert call.names("get_concepts_by_certainty", max_certainty=50) == ["C"]


@proves("certainty:valid-time")
def test_certainty_counts_what_held_at_the_time_in_question(call: Knowing) -> None:
    claim = call.concept("Coal is the main fuel")
    doubt = call.concept("Wind is the main fuel")
    old = call.concept("Survey of 1990", valid_from="1990", valid_to="2000")
    call.relate(doubt, claim, "contradicts", valid_from="2010")
    call.relate(old, claim, "confirms")

    scores = {year: call.get(claim, valid_at=year) for year in ("1980", "1995", "2005", "2015")}
    certain = {year: each["certainty_score"] for year, each in scores.items()}

    assert certain["1980"] == certain["2005"] == 60
    assert certain["1995"] > 60 > certain["2015"]
    assert call.get(claim)["certainty_score"] == certain["2015"]
    assert "evidence" not in scores["2005"]
    assert scores["1995"]["evidence"].items() >= {"confirming": 1, "contradicting": 0}.items()
    assert scores["2015"]["evidence"].items() >= {"confirming": 0, "contradicting": 1}.items()
    for year, score in certain.items():
        exact = call("search_concepts_exact", name="coal", valid_at=year)["results"]
        listed = call("get_concepts_by_certainty", valid_at=year)["results"]
        assert exact[0]["certainty_score"] == score
        assert {each["name"]: each["certainty_score"] for each in listed}[
            claim_name(exact)
        ] == score
        assert [each["certainty_score"] for each in listed] == sorted(
            each["certainty_score"] for each in listed
        )
    assert call.names("get_concepts_by_certainty", min_certainty=certain["1995"]) == []
    certain_then = call.names(
        "get_concepts_by_certainty", min_certainty=certain["1995"], valid_at="1995"
    )
    assert certain_then == ["Coal is the main fuel"]


def claim_name(results: list[dict[str, Any]]) -> str:
    name: str = results[0]["name"]
    return name


@proves("certainty:valid-time")
def test_certainty_follows_when_a_period_is_changed(call: Knowing) -> None:
    claim, doubt = call.concepts("Claim", "Doubt")
    call.relate(doubt, claim, "contradicts")
    doubted = call.get(claim)["certainty_score"]

    call("update_concept", concept_id=doubt, valid_to="2000")
    now = call.get(claim)["certainty_score"]
    then = call.get(claim, valid_at="1999")["certainty_score"]
    call("update_concept", concept_id=doubt, valid_to=None)

    assert (now, then) == (60, doubted)
    assert call.get(claim)["certainty_score"] == doubted


@proves("certainty:valid-time")
def test_who_was_more_certain_then_contradicted_more_then(call: Knowing) -> None:
    claim, doubt, proof = call.concepts("Claim", "Doubt", "Proof")
    call.relate(doubt, claim, "contradicts")
    call.relate(proof, doubt, "confirms", valid_from="2000", valid_to="2010")

    before, within, after = (
        call.get(claim, valid_at=year)["certainty_score"] for year in ("1999", "2005", "2010")
    )

    assert before == after > within


@proves("certainty:valid-time", "certainty:current")
def test_a_merge_brings_the_certainty_of_every_moment(call: Knowing) -> None:
    claim, doubt = call.concepts("Claim", "Doubt")
    branch = call.fork("trial")
    call.relate(doubt, claim, "contradicts", valid_to="2000", branch=branch)

    call.merge(branch)

    assert call.get(claim)["certainty_score"] == 60
    assert call.get(claim, valid_at="1999")["certainty_score"] < 60


@proves("certainty:valid-time")
def test_only_the_strongest_that_hold_count(call: Knowing) -> None:
    center, plain = call.concepts("Center", "Plain")
    for number in range(12):
        other = call.concept(f"Old {number}")
        call.relate(center, other, strength=1.0, valid_to="2000")
        newer = call.concept(f"New {number}")
        call.relate(center, newer, strength=0.5)
        call.relate(plain, newer, strength=0.5)

    assert call.get(center)["certainty_score"] == call.get(plain)["certainty_score"]
    assert call.get(center)["evidence"]["links"] == 10
    assert call.get(center, valid_at="1999")["certainty_score"] > call.get(plain)["certainty_score"]
