"""Developer mode: granular tools over the same entries, events, branches and transactions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.contracts.samples import Clock
from tests.manifest import proves


@proves("developer:entries")
def test_what_is_put_is_an_entry_that_no_search_finds(call: Call) -> None:
    put = call.kv_put(key="city", value="Oslo harbour")
    call.kv_put(key="found", value="Bergen harbour", index=True)

    assert put["status"] == "created"
    assert call.value("city") == call.kv_get(key="city")["value"] == "Oslo harbour"
    assert call.keys("harbour") == ["found"]
    assert call.kv_get(key="nothing") == {"found": False}


@proves("developer:entries")
def test_entries_are_listed_by_key_page_by_page_at_any_moment(call: Call) -> None:
    version = call.kv_put_many(items=[{"key": key, "value": key} for key in ("b", "a", "c", "x")])
    first = call.kv_list(limit=2)
    call.kv_delete(key="c")

    second = call.kv_list(limit=2, cursor=first["next"])
    begun = call.kv_list(prefix="c")
    past = call.kv_list(prefix="c", as_of=f"@{version['version']}")

    assert [each["key"] for each in (*first["results"], *second["results"])] == list("abcx")
    assert (begun["results"], [each["key"] for each in past["results"]]) == ([], ["c"])


@proves("developer:entries")
def test_several_values_are_read_and_deleted_together(call: Call) -> None:
    call.kv_put_many(items=[{"key": "a", "value": 1}, {"key": "b", "value": 2}])

    found = call.kv_get_many(keys=["a", "z"])
    deleted = call.kv_delete_many(keys=["a", "b", "z"])
    history = call.kv_history(key="a")["results"]

    assert ([each["value"] for each in found["results"]], found["missing"]) == ([1], ["z"])
    assert (deleted["keys"], deleted["missing"]) == (["a", "b"], ["z"])
    assert [each["deleted"] for each in history] == [True, False]


@proves("developer:json")
def test_a_place_of_a_document_is_changed_in_one_step(call: Call) -> None:
    call.json_set(key="p", path="$.name", value="Ada")
    call.json_append(key="p", path="$.tags", value="a")
    call.json_append(key="p", path="$.tags", value="b")
    counted = call.json_increment(key="p", path="$.visits", by=2)
    counted = call.json_increment(key="p", path="$.visits", by=0.5)
    gone = call.json_delete(key="p", path="$.tags[0]")
    again = call.json_delete(key="p", path="$.tags[5]")

    assert counted["value"] == 2.5
    assert (gone["deleted"], again["deleted"]) == (True, False)
    assert call.json_get(key="p")["value"] == {"name": "Ada", "tags": ["b"], "visits": 2.5}
    assert call.json_get(key="p", path="$.tags[0]")["value"] == "b"
    assert call.json_get(key="p", path="$.no") == {"found": False}
    assert call.json_delete(key="p")["deleted"]
    assert call.json_get(key="p") == {"found": False}


@proves("developer:cells")
def test_a_cell_is_written_only_at_the_counter_that_was_read(call: Call) -> None:
    first = call.state_init(cell="lead", value=None)
    kept = call.state_init(cell="lead", value="late")
    won = call.state_cas(cell="lead", value="me", expected_counter=first["counter"])
    lost = call.refusal("strata_state_cas", cell="lead", value="you", expected_counter=1)

    assert (first["written"], kept["written"], kept["counter"]) == (True, False, first["counter"])
    assert lost["error"] == "version_conflict"
    assert (lost["details"]["counter"], lost["details"]["value"]) == (won["counter"], "me")
    cell = call.state_get(cell="lead")
    assert (cell["value"], cell["counter"]) == ("me", won["counter"])
    before = call.state_get(cell="lead", as_of=f"@{first['counter']}")
    assert before["value"] is None


@proves("developer:cells")
def test_cells_are_apart_from_entries_on_every_branch(call: Call) -> None:
    call.kv_put(key="lead", value="entry")
    call.state_set(cell="lead", value="cell")
    call.branch_fork(name="trial")
    call.state_set(cell="lead", value="theirs", branch="trial")

    call.branch_merge(source="trial")
    deleted = call.state_delete(cell="lead")
    listed = call.state_list(branch="trial")["results"]
    history = call.state_history(cell="lead")["results"]

    assert call.value("lead") == "entry"
    assert deleted["deleted"]
    assert [each["value"] for each in listed] == ["theirs"]
    assert [each.get("value") for each in history] == [None, "theirs", "cell"]
    assert call.state_get(cell="lead") == {"found": False}


@proves("developer:events")
def test_events_are_read_by_sequence_and_counted(call: Call) -> None:
    first = call.event_append(event_type="a", payload={"n": 1})["sequence"]
    call.event_append(event_type="b", payload=2)
    call.log(event="a", data=3)

    assert call.event_get(sequence=first)["data"] == {"n": 1}
    assert call.event_get(sequence=first + 100) == {"found": False}
    after = call.event_list(after_sequence=first)["results"]
    assert [each["event"] for each in after] == ["b", "a"]
    assert [each["data"] for each in call.event_list(event_type="a")["results"]] == [{"n": 1}, 3]
    assert (call.event_len()["count"], call.event_len(event_type="a")["count"]) == (3, 2)
    assert call.event_len(as_of=f"@{first}")["count"] == 1


@proves("developer:places")
def test_branches_have_a_tool_for_each_thing(call: Call) -> None:
    call.kv_put(key="k", value=1)
    call.branch_create(name="empty")
    call.branch_fork(name="trial")
    call.kv_put(key="k", value=2, branch="trial")

    diff = call.branch_diff(compare="trial")
    preview = call.branch_merge(source="trial", preview=True)
    merged = call.branch_merge(source="trial")
    call.branch_delete(name="empty")

    assert (diff["changed"], preview["merged"], merged["merged"]) == (1, 1, 1)
    assert call.value("k") == 2
    assert call.branch_get(name="trial")["parent"] == "default"
    assert call.branch_get(name="empty") == {"found": False}
    assert call.branch_exists(name="trial")["exists"]
    assert [each["name"] for each in call.branch_list()["results"]] == ["default", "trial"]
    assert call.branch_current() == {"branch": "default"}


@proves("developer:places")
def test_a_space_exists_while_it_is_empty_and_is_emptied_by_force(call: Call) -> None:
    call.space_create(name="work")
    created = call.space_exists(name="work")["exists"]
    call.kv_put(key="k", value=1, namespace="work")
    call.state_set(cell="c", value=1, namespace="work")

    refused = call.refusal("strata_space_delete", name="work")
    deleted = call.space_delete(name="work", force=True)
    listed = [each["name"] for each in call.space_list()["results"]]

    assert created
    assert refused["details"]["field"] == "force"
    assert (deleted["entries"], deleted["cells"]) == (1, 1)
    assert listed == ["default"]
    assert call.value("k", namespace="work", as_of=deleted["before"]) == 1
    assert call.refusal("strata_space_delete", name="default")["error"] == "validation_error"


@proves("developer:transactions")
def test_calls_with_an_id_are_stored_together(call: Call) -> None:
    begun = call.txn_begin()
    name = begun["transaction"]
    call.kv_put(key="a", value=1, transaction=name)
    call.state_set(cell="c", value=2, transaction=name)
    call.event_append(event_type="t", payload=3, transaction=name)

    inside = call.kv_get(key="a", transaction=name)
    outside = call.kv_get(key="a")
    active = call.txn_is_active(transaction=name)["active"]
    done = call.txn_commit(transaction=name)

    assert (inside["value"], outside, active) == (1, {"found": False}, True)
    assert (done["records"], done["events"]) == (2, 1)
    assert call.value("a") == 1
    assert call.state_get(cell="c")["value"] == 2
    assert not call.txn_is_active(transaction=name)["active"]
    assert call.branch_list()["results"][-1]["name"] == "default"


@proves("developer:transactions")
def test_what_somebody_else_changed_meanwhile_is_a_conflict(call: Call) -> None:
    call.state_set(cell="c", value=0)
    name = call.txn_begin()["transaction"]
    call.state_set(cell="c", value=1, transaction=name)
    call.kv_put(key="k", value=1, transaction=name)
    call.state_set(cell="c", value=2)

    refused = call.failure("strata_txn_commit", transaction=name)

    assert refused["error"] == "transaction_conflict"
    assert call.value("k") is ...
    assert call.failure("strata_kv_put", key="k", value=1, transaction=name)["error"] == (
        "transaction_ended"
    )


@proves("developer:transactions")
def test_a_transaction_ends_by_being_rolled_back_or_by_its_time(call: Call, clock: Clock) -> None:
    first, second = (call.txn_begin(time_limit=each)["transaction"] for each in (5, 6))
    call.kv_put(key="k", value=1, transaction=first)
    call.kv_put(key="k", value=2, transaction=second)

    rolled = call.txn_rollback(transaction=first)
    clock.advance(10)
    late = call.failure("strata_txn_commit", transaction=second)
    ended = call.failure("strata_txn_info", transaction=second)

    assert (rolled["rolled_back"], late["error"]) == (True, "transaction_ended")
    assert ended["error"] == "transaction_ended"
    assert not call.txn_rollback(transaction=first)["rolled_back"]
    assert call.value("k") is ...


@proves("developer:transactions")
def test_a_transaction_that_reads_refuses_to_write(call: Call) -> None:
    call.kv_put(key="k", value=1)
    begun = call.txn_begin(read_only=True)
    call.kv_put(key="k", value=2)

    read = call.kv_get(key="k", transaction=begun["transaction"])
    refused = call.failure("strata_kv_put", key="k", value=3, transaction=begun["transaction"])

    assert (begun["read_only"], read["value"], refused["error"]) == (True, 1, "read_only")
    assert "transaction" in refused["message"]
    assert "without read_only" in refused["hint"]
    assert call.txn_info(transaction=begun["transaction"])["read_only"]


@proves("developer:transactions")
def test_calls_of_every_system_are_part_of_a_transaction_by_its_id(call: Call) -> None:
    inside = {"transaction": call.txn_begin()["transaction"]}
    concept = {"name": "Fjord", "explanation": "An arm of the sea."}

    call("create_concept", **concept, **inside)
    call("strata_store", key="k", value=1, **inside)

    hidden = call.failure("get_concept", concept_id="Fjord")
    seen = call("get_concept", concept_id="Fjord", **inside)
    refused = call.failure("purge_knowledge", record_id="Fjord", **inside)
    call.txn_commit(**inside)
    assert (hidden["error"], refused["error"]) == ("concept_not_found", "not_in_transaction")
    assert seen["concept"]["name"] == "Fjord"
    assert call("get_concept", concept_id="Fjord")["concept"]["name"] == "Fjord"
    assert call.value("k") == 1
    late = call.failure("create_concept", **concept, **inside)
    assert late["error"] == "transaction_ended"


@proves("developer:bad-input")
def test_bounds_and_lengths_are_refused_under_their_own_names(call: Call) -> None:
    short = call.failure("strata_txn_begin", time_limit=0)
    no_length = call.failure("strata_retention_apply", older_than="banana")

    assert "above 0" in short["message"]
    assert no_length["details"]["field"] == "older_than"
    assert "`older_than`" in no_length["message"]
    assert "keep the entry" not in no_length["hint"]


@proves("developer:search")
def test_search_takes_primitives_and_modes(call: Call) -> None:
    call.kv_put(key="k", value="red fox", index=True)
    call.log(event="seen", data="red fox")

    assert call.keys("fox", kinds=["kv"], mode="lexical") == ["k"]
    assert call.keys("fox", kinds=["event"]) == ["seen"]
    assert call.refusal("strata_search", query="fox", kinds=["no"])["details"]["field"] == "kinds"


@proves("developer:bad-input")
@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [
        ("strata_kv_put", {"key": "", "value": 1}, "key"),
        ("strata_kv_list", {"cursor": "nonsense"}, "cursor"),
        ("strata_json_set", {"key": "k", "path": "$.a[*]", "value": 1}, "path"),
        ("strata_json_append", {"key": "text", "path": "$", "value": 1}, "path"),
        ("strata_json_increment", {"key": "text", "path": "$"}, "path"),
        ("strata_state_cas", {"cell": "c", "value": 1, "expected_counter": -1}, "expected_counter"),
        ("strata_state_set", {"cell": "a\nb", "value": 1}, "cell"),
        ("strata_event_append", {"event_type": "", "payload": 1}, "event_type"),
        ("strata_event_get", {"sequence": 0}, "sequence"),
        ("strata_space_create", {"name": ""}, "name"),
        ("strata_txn_begin", {"time_limit": 0}, "time_limit"),
        ("strata_kv_put", {"key": "k", "value": 1, "transaction": "no"}, "transaction"),
    ],
)
def test_bad_input_names_its_field(
    call: Call, name: str, arguments: dict[str, Any], field: str
) -> None:
    call.kv_put(key="text", value="words")

    refused = call.refusal(name, **arguments)

    assert refused["details"]["field"] == field
