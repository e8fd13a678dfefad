from __future__ import annotations

from tests.behaviour.conftest import Call
from tests.contracts.samples import Clock
from tests.manifest import proves


@proves("memory:overviews")
def test_activity_counts_every_event_in_its_stretch_of_time(call: Call, clock: Clock) -> None:
    call.store(key="first", value=1)
    clock.advance(3600)
    for place in range(5):
        call.store(key=f"later{place}", value=1)

    answer = call("strata_activity", buckets=4)

    counts = [each["events"] for each in answer["results"]]
    assert sum(counts) == answer["events"] == answer["head"]
    assert counts[-1] == 5
    assert counts[1:3] == [0, 0]
    assert answer["results"][-1]["version"] == answer["head"]


@proves("memory:overviews")
def test_facets_count_entries_by_author_kind_and_day(call: Call) -> None:
    call.store(key="city", value="Oslo")
    call.store(key="count", value=3)
    call.store(key="gone", value="x")
    call.forget(key="gone")

    answer = call("strata_facets")

    assert answer["entries"] == 2
    assert {each["name"]: each["count"] for each in answer["kinds"]} == {"text": 1, "number": 1}
    assert sum(each["count"] for each in answer["authors"]) == 2
    assert len(answer["days"]) == 1


@proves("memory:overviews")
def test_a_list_is_narrowed_by_kind_author_and_time(call: Call, clock: Clock) -> None:
    for place in range(12):
        call.store(key=f"k{place:02}", value=place if place % 2 else str(place))
    clock.advance(86_400 * 2)
    call.store(key="late", value="today")

    numbers = call("strata_list", kind="number", limit=4)
    rest = call("strata_list", kind="number", limit=4, cursor=numbers["next"])
    by_key = call("strata_list", kind="text", order="key", limit=3)
    late = call("strata_list", since="1 day ago")
    early = call("strata_list", until="1 day ago", limit=50)

    assert [each["key"] for each in numbers["results"]] == ["k11", "k09", "k07", "k05"]
    assert [each["key"] for each in rest["results"]] == ["k03", "k01"]
    assert [each["key"] for each in by_key["results"]] == ["k00", "k02", "k04"]
    assert [each["key"] for each in late["results"]] == ["late"]
    assert len(early["results"]) == 12
    unwritten = call("strata_list", actor="nobody")
    assert (unwritten["results"], unwritten.get("elsewhere")) == ([], None)


@proves("memory:overviews")
def test_sessions_are_listed_with_how_they_began(call: Call) -> None:
    call.log(event="message", data={"role": "user", "content": "Where is it?"}, session="one")
    call.log(event="message", data={"role": "assistant", "content": "In Oslo."}, session="one")
    call.log(event="noted", data="x")
    call.log(event="message", data="hello", session="two")

    answer = call("strata_sessions")

    assert [(each["session"], each["events"]) for each in answer["results"]] == [
        ("two", 1),
        ("one", 2),
    ]
    assert answer["results"][1]["title"] == "Where is it?"
    assert answer["events"] == 4


@proves("memory:why-found")
def test_a_search_explains_why_it_found_something(call: Call) -> None:
    call.store(key="city", value="The office is in Oslo")

    (hit,) = call("strata_explain_search", query="Oslo zeppelin", min_score=0)["results"]

    why = hit["why"]
    assert why["matched"] == ["oslo"]
    assert why["unmatched"] == ["zeppelin"]
    assert 0 < why["words"] < 1
    assert hit["score"] == round(1 - (1 - why["words"]) * (1 - why["meaning"]), 4)
    assert "why" not in call.search(query="Oslo")["results"][0]


@proves("memory:graph")
def test_the_graph_of_branches_has_forks_merges_and_deleted_branches(call: Call) -> None:
    call.store(key="city", value="Oslo")
    call.branch(action="fork", name="trial")
    call.store(key="city", value="Bergen", branch="trial")
    call.branch(action="merge", source="trial", branch="default")
    call.branch(action="delete", name="trial")

    graph = call("strata_branch_graph")

    trial = next(each for each in graph["results"] if each["name"] == "trial")
    (merge,) = graph["merges"]
    assert (trial["parent"], trial["deleted"]) == ("default", True)
    assert (merge["source"], merge["target"]) == ("trial", "default")
    assert trial["forked_at"] < merge["sequence"] <= graph["head"]


@proves("memory:compare")
def test_a_branch_is_compared_with_its_own_past(call: Call) -> None:
    before = call.store(key="city", value="Oslo")["version"]
    call.store(key="city", value="Bergen")
    call.store(key="new", value=1)

    answer = call("strata_compare", compare="default", as_of=f"@{before}")

    changes = {each["key"]: (each.get("before"), each.get("after")) for each in answer["results"]}
    assert changes == {"city": ("Oslo", "Bergen"), "new": (None, 1)}


@proves("memory:compare")
def test_what_expired_between_two_moments_differs_though_nobody_changed_it(
    call: Call, clock: Clock
) -> None:
    before = call.store(key="lease", value=1, ttl="10s")["version"]
    clock.advance(60)
    call.store(key="lasting", value=1)

    forth = call("strata_compare", compare="default", as_of=f"@{before}")
    back = call("strata_compare", compare="default", compare_as_of=f"@{before}")

    assert [(each["key"], each["change"]) for each in forth["results"]] == [
        ("lasting", "added"),
        ("lease", "removed"),
    ]
    assert [(each["key"], each["change"]) for each in back["results"]] == [
        ("lasting", "added"),
        ("lease", "added"),
    ]
    assert (forth["added"], forth["removed"], back["added"], back["ours"]) == (1, 1, 1, 1)


@proves("memory:compare")
def test_a_comparison_is_listed_by_pages_and_counts_all(call: Call) -> None:
    call.store(key="shared", value=0)
    call.branch(action="fork", name="trial")
    for number in range(5):
        call.store(key=f"k{number}", value=number, branch="trial")
    call.store(key="own", value=1)
    for branch in ("default", "trial"):
        call.store(key="shared", value=branch, branch=branch)

    pages = [
        call("strata_compare", compare="trial", side="theirs", limit=4, offset=offset)
        for offset in (0, 4, 8)
    ]
    ours = call("strata_compare", compare="trial", side="ours")

    assert [[each["key"] for each in page["results"]] for page in pages] == [
        ["k0", "k1", "k2", "k3"],
        ["k4", "shared"],
        [],
    ]
    assert {(page["added"], page["ours"], page["both"]) for page in pages} == {(5, 1, 1)}
    assert [each["key"] for each in ours["results"]] == ["own", "shared"]


@proves("knowledge:graph")
def test_the_graph_of_concepts_has_layers_by_prerequisites(call: Call) -> None:
    first = call("create_concept", name="Vectors", explanation="Arrows")["concept_id"]
    second = call("create_concept", name="Matrices", explanation="Grids")["concept_id"]
    call("create_relationship", source_id=first, target_id=second, relationship_type="prerequisite")

    graph = call("get_graph")

    places = {each["name"]: each for each in graph["concepts"]}
    assert places["Vectors"]["x"] < places["Matrices"]["x"]
    assert [(each["source"], each["target"]) for each in graph["links"]] == [(first, second)]
