"""What to learn before a concept, in which order, and what somebody knows already."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

from tests.behaviour.knowledge.conftest import Knowing
from tests.manifest import proves


def chain(call: Knowing, names: str) -> dict[str, str]:
    """Make concepts of which each is a prerequisite of the next; return their ids by name."""
    ids = dict(zip(names, call.concepts(*names), strict=True))
    for before, after in pairwise(names):
        call.relate(ids[before], ids[after], "prerequisite")
    return ids


def steps(path: dict[str, Any]) -> list[list[str]]:
    return [[each["name"] for each in step["concepts"]] for step in path["steps"]]


@proves("learning:order")
def test_prerequisites_below_the_depth_are_counted_and_can_be_read_on(call: Knowing) -> None:
    chain(call, "ABCDEFGHI")

    first = call("get_prerequisites", concept_id="I", depth=3)
    rest = call("get_prerequisites", concept_id="I", depth=3, cursor=first["next"])

    assert [each["name"] for each in first["prerequisites"]] == ["H", "G", "F"]
    assert (first["total"], first["left_out"], first["truncated"]) == (3, 5, True)
    assert first["message"] == "Found 3 of 8 prerequisites"
    assert [each["name"] for each in rest["prerequisites"]] == ["E", "D", "C", "B", "A"]
    assert "next" not in rest
    assert call("get_prerequisites", concept_id="B")["message"] == "Found 1 prerequisite"
    both = first["prerequisites"] + rest["prerequisites"]
    assert sorted((each["order"], each["requires"]) for each in both) == [
        (1, []),
        *((place, [place - 1]) for place in range(2, 9)),
    ]


@proves("learning:order")
def test_in_a_learning_path_everything_comes_after_what_it_needs(call: Knowing) -> None:
    dice = random.Random(5)
    ids = call.concepts(*(f"C{number:02}" for number in range(24)))
    needs = {
        (ids[low], ids[high])
        for high in range(1, 24)
        for low in dice.sample(range(high), min(high, 2))
    }
    for source, target in sorted(needs):
        call.relate(source, target, "prerequisite")

    path = call("get_learning_path", target=ids[-1])

    learnt: set[str] = set()
    for step in path["steps"]:
        here = {each["concept_id"] for each in step["concepts"]}
        assert all(source in learnt for source, target in needs if target in here)
        assert step["certainty"] == min(each["certainty_score"] for each in step["concepts"])
        learnt |= here
    assert path["steps"][-1]["concepts"][-1]["concept_id"] == ids[-1]
    closure = {ids[-1]}
    while more := {source for source, target in needs if target in closure} - closure:
        closure |= more
    assert learnt == closure
    assert path["total"] == len(learnt)
    pieces: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        piece = call("get_learning_path", target=ids[-1], max_chars=1_000, **cursor)
        pieces += [each["concept_id"] for step in piece["steps"] for each in step["concepts"]]
        if "next" not in piece:
            break
        cursor = {"cursor": piece["next"]}
    assert pieces == [each["concept_id"] for step in path["steps"] for each in step["concepts"]]


@proves("learning:known")
def test_what_is_known_is_left_out_with_what_only_that_requires(call: Knowing) -> None:
    ids = chain(call, "ABCD")
    other = call.concept("E")
    call.relate(other, ids["D"], "prerequisite")

    assert steps(call("get_learning_path", target="D")) == [["E", "A"], ["B"], ["C"], ["D"]]
    given = call("get_learning_path", target="d", known=["B"])
    assert steps(given) == [["C", "E"], ["D"]]
    assert given["known"] == ["B"]
    assert call("mark_known", concepts=["E", ids["B"]])["changed"] == 2
    assert call("mark_known", concepts=["E"])["changed"] == 0
    marked = call("get_learning_path", target="D")
    assert steps(marked) == [["C"], ["D"]]
    assert set(marked["known"]) == {"B", "E"}
    assert steps(call("get_learning_path", target="B")) == []
    assert steps(call("get_learning_path", target="B", learner="Mia")) == [["A"], ["B"]]


@proves("learning:known")
def test_what_a_learner_knows_branches_and_travels_in_time(call: Knowing) -> None:
    chain(call, "AB")
    call("mark_known", concepts=["A"], learner="Mia")
    before = call("strata_status")["head"].split(":")[0]
    branch = call.fork("trial")
    call("mark_known", concepts=["B"], learner="Mia", branch=branch)
    call("mark_known", concepts=["A"], learner="Mia", known=False)

    assert call.names("list_known", learner="Mia") == []
    assert call.names("list_known", learner="Mia", as_of=f"@{before}") == ["A"]
    assert call.names("list_known", learner="Mia", branch=branch) == ["B", "A"]
    call.merge(branch)
    assert call.names("list_known", learner="Mia") == ["B"]


@proves("learning:known")
def test_a_learner_who_is_misspelt_may_be_another(call: Knowing) -> None:
    chain(call, "AB")
    call("mark_known", concepts=["A"], learner="jonas")

    for answer in (
        call("list_known", learner="Jonsa"),
        call("get_learning_path", target="B", learner="Jonsa"),
        call("mark_known", concepts=["B"], learner="Jonsa", known=False),
    ):
        assert answer["note"] == "Nothing was known to 'Jonsa'. Did you mean 'jonas'?"
    for answer in (
        call("list_known"),
        call("list_known", learner="jonas"),
        call("list_known", learner="Mia"),
        call("mark_known", concepts=["B"], learner="jonas"),
    ):
        assert "note" not in answer


@proves("knowledge:names")
def test_a_name_stands_for_its_concept_and_an_ambiguous_one_is_asked_about(call: Knowing) -> None:
    loops = call.concept("For Loops")
    one, two = call.concepts("Match", "match")

    assert call.get("for loops")["concept_id"] == loops
    assert call.get(loops.upper())["concept_id"] == loops
    assert call.get("Match")["concept_id"] == one
    call.relate("For Loops", "match", "includes")
    assert call.names("get_related_concepts", concept_id=two) == ["For Loops"]
    ambiguous = call.refusal("get_concept", concept_id="MATCH")
    assert ambiguous["error"] == "ambiguous_name"
    assert {each["concept_id"] for each in ambiguous["details"]["candidates"]} == {one, two}
    missing = call.refusal("get_concept", concept_id="For Loop")
    assert missing["error"] == "concept_not_found"
    assert missing["details"]["similar"] == ["For Loops"]
    call("update_concept", concept_id="For Loops", explanation="Repeats.")
    call("delete_concept", concept_id="for loops")
    assert call.refusal("get_concept", concept_id="For Loops")["error"] == "concept_not_found"
