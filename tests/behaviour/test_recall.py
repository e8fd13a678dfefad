from __future__ import annotations

from tests.behaviour.conftest import Call
from tests.manifest import proves


@proves("recall:answer")
def test_a_recall_answers_with_the_entry(call: Call) -> None:
    stored = call.store(key="city", value={"name": "Oslo"}, tags=["norway"])

    answer = call.recall(key="city")

    assert answer.pop("actor")
    assert answer == {
        "found": True,
        "key": "city",
        "value": {"name": "Oslo"},
        "version": stored["version"],
        "timestamp": stored["timestamp"],
        "namespace": "default",
        "tags": ["norway"],
    }


@proves("recall:miss")
def test_a_miss_is_an_answer_and_no_error(call: Call) -> None:
    assert call.recall(key="city")["found"] is False
    assert call.recall(key="city", namespace="nowhere")["found"] is False


@proves("recall:near")
def test_a_miss_says_that_a_key_is_the_id_of_a_concept_or_an_incident(call: Call) -> None:
    concept = call("create_concept", name="Fjord", explanation="An inlet")["concept_id"]
    fix = {"steps": "wait", "env": {"os": "linux"}, "worked": True}
    incident = call("add_incident", title="The fjord is frozen", **fix)["incident_id"]

    missed = [call.recall(key=key) for key in (concept, incident, "fjord")]
    several = call.recall(keys=["fjord", concept])
    call("delete_concept", concept_id=concept)

    assert [each.get("id_of") for each in missed] == ["concept", "incident", None]
    assert [each["id_of"] for each in several["misses"]] == ["concept"]
    assert "id_of" not in call.recall(key=concept)


@proves("recall:miss")
def test_a_stored_null_is_no_miss(call: Call) -> None:
    call.store(key="k", value=None)

    answer = call.recall(key="k")

    assert answer["found"] is True
    assert answer["value"] is None


@proves("recall:keys")
def test_several_keys_are_recalled_in_the_order_asked_and_misses_are_named(call: Call) -> None:
    for key in "abc":
        call.store(key=key, value=key.upper())

    answer = call.recall(keys=["c", "x", "a", "y"])

    assert answer["found"] is True
    assert [entry["key"] for entry in answer["results"]] == ["c", "a"]
    assert answer["missing"] == ["x", "y"]
    assert answer["truncated"] is False


@proves("recall:keys")
def test_keys_that_are_all_missing_are_not_found(call: Call) -> None:
    answer = call.recall(keys=["x", "y"])

    assert (answer["found"], answer["results"], answer["missing"]) == (False, [], ["x", "y"])


@proves("recall:keys")
def test_several_keys_are_recalled_from_one_view(call: Call) -> None:
    then = call.store(items=[{"key": "a", "value": 1}, {"key": "b", "value": 1}])["version"]
    call.branch(action="fork", name="trial")
    call.store(items=[{"key": "a", "value": 2}, {"key": "b", "value": 2}], branch="trial")
    call.store(key="a", value=3)

    def values(**view: object) -> list[object]:
        return [entry["value"] for entry in call.recall(keys=["a", "b"], **view)["results"]]

    assert values() == [3, 1]
    assert values(branch="trial") == [2, 2]
    assert values(as_of=f"@{then}") == [1, 1]


@proves("recall:keys", "path:recall")
def test_one_place_of_several_entries_is_recalled(call: Call) -> None:
    call.store(key="a", value={"n": 1})
    call.store(key="b", value={"m": 2})

    answer = call.recall(keys=["a", "b"], path="$.n")

    assert [(entry["key"], entry["value"]) for entry in answer["results"]] == [("a", 1)]
    assert answer["missing"] == ["b"]


@proves("recall:views")
def test_a_recall_names_its_branch_and_moment(call: Call) -> None:
    first = call.store(key="k", value="first")
    call.branch(action="fork", name="trial")
    call.store(key="k", value="second")
    call.store(key="k", value="third", branch="trial")

    assert call.value("k") == "second"
    assert call.value("k", branch="trial") == "third"
    assert call.value("k", as_of=f"@{first['version']}") == "first"
    assert call.value("k", branch="trial", as_of=f"@{first['version']}") == "first"
    assert call.recall(key="k", as_of="@1")["found"] is False


@proves("recall:answer")
def test_an_event_is_recalled_as_a_search_heads_it(call: Call) -> None:
    logged = call.log(event="bug report", data="it broke")
    call.store(key="note @2", value="an entry")

    read = call.recall(key=f"bug report @{logged['sequence']}")

    assert (read["found"], read["value"]) == (True, "it broke")
    assert call.recall(key="note @2")["value"] == "an entry"
    assert not call.recall(key=f"mail@{logged['sequence']}")["found"]
    assert call.recall(key="bug report @999")["latest_sequence"] == 3
    assert "latest_sequence" not in call.recall(key="bug report @1")


@proves("recall:answer")
def test_a_key_with_other_words_before_a_number_names_no_event(call: Call) -> None:
    logged = call.log(event="bug report", data="it broke")

    missed = call.recall(key=f"standup @{logged['sequence']}")

    assert not missed["found"]


@proves("recall:answer")
def test_a_miss_says_which_version_a_number_names(call: Call) -> None:
    stored = call.store(key="city", value="Oslo", namespace="work")
    call.store(key="city", value="Bergen", namespace="work")
    logged = call.log(event="bug report", data={"cause": "disk"})
    number = f"@{stored['version']}"

    missed = call.recall(key=number)
    within = call.recall(key=f"@{logged['sequence']}", path="reason")

    assert (missed["version_of"], missed["version_namespace"]) == ("city", "work")
    assert call.recall(key=number, namespace="work")["version_of"] == "city"
    assert "version_of" not in call.recall(key=number, as_of="@1")
    assert call.value("city", as_of=number, namespace="work") == "Oslo"
    assert (within["reason"], within["there"]) == ("path", "the fields cause")


@proves("recall:answer")
def test_a_number_that_names_what_a_caller_cannot_see_is_not_explained(call: Call) -> None:
    call.branch(action="fork", name="trial")
    stored = call.store(key="city", value="Oslo", branch="trial")

    missed = call.recall(key=f"@{stored['version']}")

    assert "version_of" not in missed
