from __future__ import annotations

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
