from __future__ import annotations

import random
from collections import deque
from itertools import pairwise

import pytest

from stratagem import limits
from tests.behaviour.knowledge.conftest import Knowing
from tests.manifest import proves


@proves("graph:related")
def test_both_ends_of_a_relationship_see_it(call: Knowing) -> None:
    whole, part = call.concepts("Whole", "Part")
    relationship = call.relate(whole, part, "includes", strength=0.5, notes="Half of it.")

    outgoing = call("get_related_concepts", concept_id=whole)["results"]
    incoming = call("get_related_concepts", concept_id=part)["results"]

    assert outgoing == [
        {
            "concept_id": part,
            "name": "Part",
            "relationship_type": "INCLUDES",
            "direction": "outgoing",
            "strength": 0.5,
            "relationship_id": relationship,
            "notes": "Half of it.",
        }
    ]
    assert (
        incoming[0] | {"concept_id": part, "name": "Part", "direction": "outgoing"} == (outgoing[0])
    )


@proves("graph:related")
def test_related_concepts_are_filtered_and_the_strongest_come_first(call: Knowing) -> None:
    center, weak, strong, before = call.concepts("Center", "Weak", "Strong", "Before")
    call.relate(center, weak, strength=0.1)
    call.relate(center, strong, strength=0.9)
    call.relate(before, center, "prerequisite", strength=0.5)

    def related(**options: object) -> list[str]:
        return call.names("get_related_concepts", concept_id=center, **options)

    assert related() == ["Strong", "Before", "Weak"]
    assert related(direction="outgoing") == ["Strong", "Weak"]
    assert related(direction="incoming") == ["Before"]
    assert related(relationship_type="prerequisite") == ["Before"]
    assert related(relationship_type="PREREQUISITE") == ["Before"]
    assert related(direction="outgoing", relationship_type="prerequisite") == []
    assert call("get_related_concepts", concept_id=center, limit=2)["truncated"] is True


@proves("graph:many")
def test_a_well_connected_concept_gives_a_bounded_answer(call: Knowing) -> None:
    center = call.concept("Center")
    for number in range(60):
        call.relate(center, call.concept(f"N{number}"))

    answer = call("get_related_concepts", concept_id=center, limit=50)

    assert (answer["total"], answer["truncated"]) == (50, True)


@proves("graph:prerequisites")
def test_a_prerequisite_is_named_once_at_its_smallest_depth(call: Knowing) -> None:
    goal, near, far = call.concepts("Goal", "Near", "Far")
    call.relate(near, goal, "prerequisite")
    call.relate(far, near, "prerequisite")
    call.relate(far, goal, "prerequisite")
    call.relate(goal, call.concept("After"), "prerequisite")
    call.relate(goal, call.concept("Beside"), "relates_to")

    found = call("get_prerequisites", concept_id=goal)["prerequisites"]

    assert {each["name"]: each["depth"] for each in found} == {"Near": 1, "Far": 1}
    assert len(found) == 2


@proves("graph:prerequisites")
def test_prerequisites_end_at_the_depth_that_is_asked_for(call: Knowing) -> None:
    chain = call.concepts(*"ABCDEFG")
    for before, after in zip(chain[1:], chain, strict=False):
        call.relate(before, after, "prerequisite")

    for depth in (1, 3, 5):
        found = call("get_prerequisites", concept_id=chain[0], depth=depth)["prerequisites"]
        assert [each["name"] for each in found] == list("BCDEF")[:depth]
    assert call("get_prerequisites", concept_id=chain[0])["total"] == 3


@proves("graph:deleted")
def test_walks_and_paths_do_not_pass_through_a_deleted_concept(call: Knowing) -> None:
    a, b, c, d, e = call.concepts(*"ABCDE")
    for before, after in ((a, b), (b, c), (a, d), (d, e), (e, c)):
        call.relate(before, after, "prerequisite")
    call("delete_concept", concept_id=b)

    path = call("get_concept_chain", start_concept_id=a, end_concept_id=c)
    found = call("get_prerequisites", concept_id=c)["prerequisites"]

    assert [step["name"] for step in path["path"]] == list("ADEC")
    assert [each["name"] for each in found] == list("EDA")
    call("restore_concept", concept_id=b)
    assert call("get_concept_chain", start_concept_id=a, end_concept_id=c)["length"] == 2


@proves("graph:deleted")
def test_many_deleted_concepts_do_not_hide_a_path(call: Knowing) -> None:
    start, end, middle, last = call.concepts("Start", "End", "Middle", "Last")
    for number in range(12):
        between = call.concept(f"Gone {number}")
        call.relate(start, between)
        call.relate(between, end)
        call("delete_concept", concept_id=between)
    call.relate(start, middle)
    call.relate(middle, last)
    call.relate(last, end)

    path = call("get_concept_chain", start_concept_id=start, end_concept_id=end)

    assert [step["name"] for step in path["path"]] == ["Start", "Middle", "Last", "End"]


@proves("graph:path")
def test_a_path_says_which_way_each_relationship_leads(call: Knowing) -> None:
    a, b, c = call.concepts(*"ABC")
    call.relate(b, a, "includes")
    call.relate(b, c, "contradicts")

    path = call("get_concept_chain", start_concept_id=a, end_concept_id=c)["path"]

    assert [
        (step["name"], step["relationship_to_next"], step.get("direction_to_next")) for step in path
    ] == [("A", "INCLUDES", "incoming"), ("B", "CONTRADICTS", "outgoing"), ("C", None, None)]


@proves("graph:path")
def test_a_path_to_itself_has_one_concept_and_no_length(call: Knowing) -> None:
    a = call.concept("A")

    path = call("get_concept_chain", start_concept_id=a, end_concept_id=a)

    assert (len(path["path"]), path["length"]) == (1, 0)
    assert path["message"] == "Found path of length 0"


@proves("graph:path")
def test_where_there_is_no_path_that_is_said(call: Knowing) -> None:
    a, b, c, d = call.concepts(*"ABCD")
    call.relate(a, b)
    call.relate(b, c)

    apart = call.refusal("get_concept_chain", start_concept_id=a, end_concept_id=d)
    too_far = call.refusal("get_concept_chain", start_concept_id=a, end_concept_id=c, max_depth=1)

    assert apart["error"] == too_far["error"] == "path_not_found"
    assert call("get_concept_chain", start_concept_id=a, end_concept_id=c, max_depth=2)["length"]


@proves("graph:path")
def test_a_shortest_path_is_as_short_as_a_plain_search_finds(call: Knowing) -> None:
    draw = random.Random(4)
    ids = call.concepts(*(str(number) for number in range(30)))
    near: dict[str, set[str]] = {each: set() for each in ids}
    for _ in range(40):
        one, other = draw.sample(ids, 2)
        if other not in near[one]:
            call.relate(one, other)
            near[one].add(other)
            near[other].add(one)

    for _ in range(40):
        one, other = draw.sample(ids, 2)
        expected = _distance(near, one, other)
        if expected is None or expected > 10:
            refused = call.refusal(
                "get_concept_chain", start_concept_id=one, end_concept_id=other, max_depth=10
            )
            assert refused["error"] == "path_not_found"
            continue
        path = call("get_concept_chain", start_concept_id=one, end_concept_id=other, max_depth=10)
        steps = [step["concept_id"] for step in path["path"]]
        assert path["length"] == expected == len(steps) - 1
        assert (steps[0], steps[-1]) == (one, other)
        assert all(after in near[before] for before, after in pairwise(steps))


def _distance(near: dict[str, set[str]], start: str, end: str) -> int | None:
    seen, queue = {start}, deque([(start, 0)])
    while queue:
        node, distance = queue.popleft()
        if node == end:
            return distance
        for other in near[node] - seen:
            seen.add(other)
            queue.append((other, distance + 1))
    return None


@proves("graph:cycle")
def test_a_prerequisite_that_would_close_a_cycle_is_refused_and_the_cycle_shown(
    call: Knowing,
) -> None:
    a, b, c = call.concepts(*"ABC")
    call.relate(a, b, "prerequisite")
    call.relate(b, c, "prerequisite")

    refused = call.refusal(
        "create_relationship", source_id=c, target_id=a, relationship_type="prerequisite"
    )

    assert refused["error"] == "validation_error"
    assert refused["details"]["cycle"] == [c, a, b, c]
    assert "C → A → B → C" in refused["message"]
    call.relate(c, a, "relates_to")


@proves("graph:cycle")
def test_a_cycle_is_found_however_many_prerequisites_there_are(
    call: Knowing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LINKS_READ_MAX", 2)
    start, end, *between = call.concepts("Start", "End", *(f"M{number}" for number in range(6)))
    for middle in between:
        call.relate(start, middle, "prerequisite")
    for number in range(6):
        call.relate(call.concept(f"Before {number}"), end, "prerequisite")
    call.relate(between[-1], end, "prerequisite")

    refused = call.refusal(
        "create_relationship", source_id=end, target_id=start, relationship_type="prerequisite"
    )

    assert refused["details"]["cycle"] == [end, start, between[-1], end]


@proves("graph:cycle", "concept:restore")
def test_a_restored_concept_brings_no_cycle_with_it(call: Knowing) -> None:
    a, b = call.concepts(*"AB")
    middle = call.concept("Middle")
    call.relate(a, middle, "prerequisite")
    call.relate(middle, b, "prerequisite")
    call("delete_concept", concept_id=middle)

    refused = call.refusal(
        "create_relationship", source_id=b, target_id=a, relationship_type="prerequisite"
    )

    assert refused["details"]["cycle"] == [b, a, middle, b]


@proves("relationship:once")
def test_the_same_relationship_is_not_made_twice(call: Knowing) -> None:
    a, b = call.concepts(*"AB")
    relationship_id = call.relate(a, b)

    refused = call.refusal(
        "create_relationship", source_id=a, target_id=b, relationship_type="relates_to"
    )

    assert refused["error"] == "validation_error"
    assert refused["details"]["resource_id"] == relationship_id
    assert call.relate(b, a) != relationship_id
    assert call.relate(a, b, "includes") != relationship_id


@proves("relationship:delete")
def test_a_deleted_relationship_can_be_made_again(call: Knowing) -> None:
    a, b = call.concepts(*"AB")
    first = call.relate(a, b, strength=0.2)
    call("delete_relationship", source_id=a, target_id=b, relationship_type="relates_to")
    gone = call.names("get_related_concepts", concept_id=a)

    again = call.relate(a, b, strength=0.8)

    assert gone == []
    assert again == first
    related = call("get_related_concepts", concept_id=a)["results"]
    assert [each["strength"] for each in related] == [0.8]


@proves("relationship:delete")
def test_a_relationship_that_is_not_there_cannot_be_deleted(call: Knowing) -> None:
    a, b = call.concepts(*"AB")
    call.relate(a, b)

    refused = call.refusal(
        "delete_relationship", source_id=b, target_id=a, relationship_type="relates_to"
    )

    assert refused["error"] == "relationship_not_found"


@proves("relationship:ends")
@pytest.mark.parametrize("end", ["source_id", "target_id"])
def test_both_ends_of_a_relationship_must_be_there(call: Knowing, end: str) -> None:
    a, b = call.concepts(*"AB")
    call("delete_concept", concept_id=b)
    ends = {"source_id": a, "target_id": a} | {end: b}

    refused = call.refusal("create_relationship", **ends, relationship_type="includes")

    assert refused["error"] == "concept_not_found"
    assert refused["details"]["field"] == end


@proves("relationship:types")
def test_supersedes_contradicts_and_confirms_are_relationships_too(call: Knowing) -> None:
    a, b = call.concepts(*"AB")

    call.relate(a, b, "supersedes")
    call.relate(a, b, "contradicts")
    call.relate(b, a, "confirms")

    found = call("get_related_concepts", concept_id=b)["results"]
    assert {each["relationship_type"] for each in found} == {
        "SUPERSEDES",
        "CONTRADICTS",
        "CONFIRMS",
    }
    for source, target, label in ((b, a, "supersedes"), (a, b, "confirms"), (b, a, "contradicts")):
        refused = call.refusal(
            "create_relationship", source_id=source, target_id=target, relationship_type=label
        )
        assert "would contradict" in refused["message"]
