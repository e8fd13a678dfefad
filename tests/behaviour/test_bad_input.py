"""Bad input gets an error that names the parameter, the limit and the next step; nothing is written.

`call.refusal` checks each time that the error has all its parts and that the log did not move.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call, Opener
from tests.manifest import proves

HALF = "\ud800"


def nested(depth: int, *, of: type = list) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if of is list else {"a": value}
    return value


@pytest.fixture
def call(call: Call) -> Call:
    """A memory that has something in it, so that every look-up reaches the database."""
    call.store(key="k", value={"a": 1}, tags=["t"])
    call.log(event="e", data=1)
    call.branch(action="fork", name="trial")
    return call


NAMES = {
    "empty": "",
    "blank": "  \u3000",
    "a line break": "a\nb",
    "a nul": "a\0b",
    "a control character": "a\x9fb",
    "half a surrogate pair": f"a{HALF}",
}
TOO_LONG = {"key": 512, "namespace": 128, "name": 128, "event": 128, "session": 256, "tags": 128}


@proves("input:keys")
@pytest.mark.parametrize("key", [*NAMES.values(), "k" * 513], ids=[*NAMES, "too long"])
def test_a_key_that_cannot_be_one_is_refused_everywhere(call: Call, key: str) -> None:
    for name, arguments in (
        ("strata_store", {"key": key, "value": 1}),
        ("strata_store", {"items": [{"key": key, "value": 1}]}),
        ("strata_recall", {"key": key}),
        ("strata_recall", {"key": key, "as_of": "@2"}),
        ("strata_recall", {"keys": ["k", key]}),
        ("strata_forget", {"key": key}),
        ("strata_forget", {"keys": ["k", key]}),
        ("strata_history", {"key": key}),
        ("strata_purge", {"key": key}),
    ):
        refused = call.refusal(name, **arguments)
        details = refused["details"]
        # Of several entries the path says which one it is.
        path = "items[0].key" if "items" in arguments else "key"
        assert (refused["error"], details.get("path", details["field"])) == (
            "validation_error",
            path,
        ), name


@proves("input:limits")
def test_an_error_for_something_too_long_names_the_limit(call: Call) -> None:
    for name, arguments, field in (
        ("strata_store", {"key": "k" * 513, "value": 1}, "key"),
        ("strata_store", {"key": "k", "value": 1, "namespace": "n" * 129}, "namespace"),
        ("strata_store", {"key": "k", "value": 1, "session": "s" * 257}, "session"),
        ("strata_store", {"key": "k", "value": 1, "tags": ["t" * 129]}, "tags"),
        ("strata_log", {"event": "e" * 129, "data": 1}, "event"),
        ("strata_branch", {"action": "create", "name": "b" * 129}, "name"),
    ):
        refused = call.refusal(name, **arguments)
        assert refused["details"]["field"] == field
        assert refused["details"]["limit"] == TOO_LONG[field]
        assert str(TOO_LONG[field]) in refused["message"]


@proves("input:names")
def test_a_parameter_that_another_reading_operation_takes_is_named_with_it(call: Call) -> None:
    refused = call.refusal("strata_search", query="the trip", session="trip")

    named = ("strata_history", "`stratagem history`")
    assert refused["hint"].endswith(tuple(f"{name} takes `session`." for name in named))


@proves("input:names")
@pytest.mark.parametrize("text", list(NAMES.values())[1:], ids=list(NAMES)[1:])
def test_namespaces_labels_sessions_tags_and_new_names_are_checked(call: Call, text: str) -> None:
    for name, arguments, field in (
        ("strata_store", {"key": "k", "value": 1, "namespace": text}, "namespace"),
        ("strata_store", {"key": "k", "value": 1, "session": text}, "session"),
        ("strata_store", {"key": "k", "value": 1, "tags": ["fine", text]}, "tags"),
        ("strata_recall", {"key": "k", "namespace": text}, "namespace"),
        ("strata_search", {"query": "k", "namespace": text}, "namespace"),
        ("strata_search", {"query": "k", "tags": [text]}, "tags"),
        ("strata_forget", {"key": "k", "namespace": text}, "namespace"),
        ("strata_history", {"key": "k", "namespace": text}, "namespace"),
        ("strata_purge", {"key": "k", "namespace": text}, "namespace"),
        ("strata_log", {"event": text, "data": 1}, "event"),
        ("strata_log", {"event": "e", "data": 1, "namespace": text}, "namespace"),
        ("strata_branch", {"action": "create", "name": text}, "name"),
        ("strata_branch", {"action": "fork", "name": text}, "name"),
    ):
        refused = call.refusal(name, **arguments)
        assert refused["error"] == "validation_error", (name, arguments)
        assert refused["details"]["field"] == field, (name, arguments)


@proves("input:names")
@pytest.mark.parametrize("text", list(NAMES.values())[1:], ids=list(NAMES)[1:])
def test_a_branch_that_no_branch_can_be_named_is_refused_everywhere(call: Call, text: str) -> None:
    for name, arguments, field in (
        ("strata_store", {"key": "k", "value": 1, "branch": text}, "branch"),
        ("strata_recall", {"key": "k", "branch": text}, "branch"),
        ("strata_recall", {"key": "k", "branch": text, "as_of": "@2"}, "branch"),
        ("strata_search", {"query": "k", "branch": text}, "branch"),
        ("strata_forget", {"key": "k", "branch": text}, "branch"),
        ("strata_log", {"event": "e", "data": 1, "branch": text}, "branch"),
        ("strata_history", {"key": "k", "branch": text}, "branch"),
        ("strata_history", {"branch": text}, "branch"),
        ("strata_branch", {"action": "fork", "branch": text}, "branch"),
        ("strata_branch", {"action": "switch", "name": text}, "name"),
        ("strata_branch", {"action": "delete", "name": text}, "name"),
        ("strata_branch", {"action": "restore", "name": text}, "name"),
        ("strata_branch", {"action": "merge", "source": text}, "source"),
        ("strata_branch", {"action": "diff", "compare": text}, "compare"),
    ):
        refused = call.refusal(name, **arguments)
        assert refused["error"] == "validation_error", (name, arguments)
        assert refused["details"]["field"] == field, (name, arguments)


VALUES: dict[str, tuple[Any, str]] = {
    "half a surrogate pair": (f"a{HALF}", "$"),
    "half a surrogate pair inside": ({"a": [1, HALF]}, "$.a[1]"),
    "half a surrogate pair in a field": ({HALF: 1}, "$"),
    "too deep": (nested(65), "$" + "[0]" * 64),
    "far too deep": (nested(150, of=dict), "$" + ".a" * 64),
    "an integer beyond 64 bits": ({"n": 2**64}, "$.n"),
    "a negative one": ([-(2**63) - 1], "$[0]"),
}


@proves("input:values")
@pytest.mark.parametrize(("value", "place"), VALUES.values(), ids=VALUES)
def test_a_value_that_cannot_be_kept_exactly_is_refused_and_the_place_is_named(
    call: Call, surface: str, value: Any, place: str
) -> None:
    if surface == "mcp" and isinstance(value, dict) and HALF in value:
        pytest.skip("the official client cannot send such a field")
    for name, arguments in (
        ("strata_store", {"key": "k", "value": value}),
        ("strata_store", {"items": [{"key": "k", "value": value}]}),
        ("strata_store", {"key": "k", "value": value, "path": "$.b"}),
        ("strata_log", {"event": "e", "data": value}),
    ):
        refused = call.refusal(name, **arguments)
        assert refused["error"] == "validation_error"
        assert refused["details"]["place"] == place
    assert call.value("k") == {"a": 1}


@proves("input:values")
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")], ids=repr)
def test_a_number_that_json_has_none_for_is_refused(
    call: Call, surface: str, number: float
) -> None:
    if surface != "embedded":
        pytest.skip("JSON cannot carry it here")
    for name, arguments in (
        ("strata_store", {"key": "k", "value": number}),
        ("strata_store", {"key": "k", "value": {"a": [number]}}),
        ("strata_log", {"event": "e", "data": [number]}),
        ("strata_store", {"key": "k", "value": 1, "ttl": number}),
    ):
        refused = call.refusal(name, **arguments)
        assert refused["error"] == "validation_error"


@proves("input:values")
def test_a_depth_bomb_is_refused(call: Call, surface: str) -> None:
    if surface != "embedded":
        pytest.skip("no JSON reader takes it this far")

    refused = call.refusal("strata_store", key="k", value=nested(100_000))

    assert refused["details"]["limit"] == 64


@proves("input:values")
def test_what_is_no_json_is_refused(call: Call, surface: str) -> None:
    if surface != "embedded":
        pytest.skip("JSON cannot carry it here")
    circle: list[Any] = []
    circle.append(circle)

    for value in ({1, 2}, b"bytes", {1: 2}, object(), circle, iter([1]), 1j):
        for name, arguments in (
            ("strata_store", {"key": "k", "value": value}),
            ("strata_log", {"event": "e", "data": value}),
            ("strata_store", {"items": [{"key": "k", "value": [value]}]}),
        ):
            refused = call.refusal(name, **arguments)
            assert refused["error"] == "validation_error"


@proves("input:values")
@pytest.mark.parametrize("shape", ["text", "list", "object"])
def test_an_oversized_value_is_refused_with_the_limit(call: Call, shape: str) -> None:
    large: Any = "x" * (4 * 1024 * 1024)
    value = {"text": large, "list": [large], "object": {"a": {"b": large}}}[shape]

    stored = call.refusal("strata_store", key="k", value=value)
    logged = call.refusal("strata_log", event="e", data=value)

    for refused in (stored, logged):
        assert refused["error"] == "validation_error"
        assert refused["details"]["limit"] == 4 * 1024 * 1024


@proves("input:branches")
@pytest.mark.parametrize(
    ("given", "similar"),
    [("trail", ["trial"]), ("Trial", ["trial"]), ("defualt", ["default"]), ("zzz", [])],
)
def test_an_unknown_branch_is_refused_and_near_names_are_suggested(
    call: Call, given: str, similar: list[str]
) -> None:
    for name, arguments in (
        ("strata_store", {"key": "k", "value": 1, "branch": given}),
        ("strata_recall", {"key": "k", "branch": given}),
        ("strata_recall", {"key": "k", "branch": given, "as_of": "@2"}),
        ("strata_search", {"query": "k", "branch": given}),
        ("strata_forget", {"key": "k", "branch": given}),
        ("strata_log", {"event": "e", "data": 1, "branch": given}),
        ("strata_history", {"key": "k", "branch": given}),
        ("strata_history", {"branch": given}),
        ("strata_branch", {"action": "fork", "branch": given}),
        ("strata_branch", {"action": "delete", "name": given}),
        ("strata_branch", {"action": "merge", "source": given}),
        ("strata_branch", {"action": "merge", "source": "trial", "branch": given}),
        ("strata_branch", {"action": "diff", "compare": given}),
    ):
        refused = call.refusal(name, **arguments)
        assert refused["error"] == "branch_not_found", name
        assert refused["details"]["branch"] == given
        assert refused["details"]["similar"] == similar
        assert all(near in refused["hint"] for near in similar)


@proves("input:branches", "branch:switch")
def test_switching_to_a_branch_that_is_not_there_is_refused(call: Call) -> None:
    call.branch(action="switch", name="trial")

    refused = call.refusal("strata_branch", action="switch", name="trail")

    assert (refused["error"], refused["details"]["similar"]) == ("branch_not_found", ["trial"])
    assert call.status()["branch"] == "trial"


@proves("input:branches")
def test_a_name_that_is_taken_is_refused(call: Call) -> None:
    for action in ("create", "fork"):
        refused = call.refusal("strata_branch", action=action, name="trial")
        assert (refused["error"], refused["details"]["branch"]) == ("branch_exists", "trial")


@proves("input:branches")
@pytest.mark.parametrize("action", ["switch", "delete", "restore"])
def test_an_action_that_needs_a_name_says_so(call: Call, action: str) -> None:
    for arguments in ({}, {"name": ""}):
        refused = call.refusal("strata_branch", action=action, **arguments)
        assert (refused["error"], refused["details"]["field"]) == ("missing_required", "name")


@proves("input:choices")
def test_an_unknown_strategy_or_action_is_refused_with_the_known_ones(call: Call) -> None:
    strategy = call.refusal("strata_branch", action="merge", source="trial", strategy="ours")
    action = call.refusal("strata_branch", action="rename", name="trial")

    assert strategy["details"]["field"] == "strategy"
    assert "source_wins" in strategy["message"] + strategy["hint"]
    assert action["details"]["field"] == "action"
    assert "restore" in action["message"] + action["hint"]


@proves("input:counts")
@pytest.mark.parametrize("k", [0, -1, -(2**70), 51, 2**70, "many", 1.5, []], ids=repr)
def test_a_number_of_results_out_of_range_is_refused(call: Call, k: Any) -> None:
    searched = call.refusal("strata_search", query="k", k=k)
    limit = call.refusal("strata_history", key="k", limit=101 if k == 51 else k)

    assert (searched["error"], searched["details"]["field"]) == ("validation_error", "k")
    assert (limit["error"], limit["details"]["field"]) == ("validation_error", "limit")


@proves("input:counts")
def test_too_many_keys_or_tags_are_refused_with_the_limit(call: Call) -> None:
    keys = [f"k{number}" for number in range(1_001)]
    tags = [f"t{number}" for number in range(65)]

    for name, arguments, limit in (
        ("strata_recall", {"keys": keys}, 1_000),
        ("strata_forget", {"keys": keys}, 1_000),
        ("strata_store", {"key": "k", "value": 1, "tags": tags}, 64),
        ("strata_log", {"event": "e", "data": 1, "tags": tags}, 64),
    ):
        refused = call.refusal(name, **arguments)
        assert refused["details"]["limit"] == limit
    assert call.refusal("strata_forget", keys=[])["details"]["field"] == "keys"


@proves("input:shape")
def test_of_two_parameters_that_exclude_each_other_one_is_given(call: Call) -> None:
    refused = [
        call.refusal(name, key="a", keys=["b"]) for name in ("strata_recall", "strata_forget")
    ]
    neither = call.refusal("strata_forget")
    empty = call.refusal("strata_recall", keys=[])

    assert {each["error"] for each in refused} == {"validation_error"}
    assert all("Leave one of them out" in each["hint"] for each in refused)
    assert neither["error"] == "missing_required"
    assert "both" not in neither["message"]
    assert (empty["error"], empty["details"]["field"]) == ("validation_error", "keys")


@proves("input:choices")
def test_a_missing_choice_is_named_with_what_there_is_to_choose(call: Call) -> None:
    refused = call.refusal("strata_branch")

    assert refused["error"] == "missing_required"
    assert "create" in refused["hint"]
    assert "merge" in refused["hint"]


@proves("input:query")
@pytest.mark.parametrize("query", ["", " \n\t", "q" * 10_001, HALF], ids=repr)
def test_a_query_that_asks_nothing_is_refused(call: Call, query: str) -> None:
    refused = call.refusal("strata_search", query=query)

    assert (refused["error"], refused["details"]["field"]) == ("validation_error", "query")


@proves("input:shape")
@pytest.mark.parametrize(
    ("name", "arguments", "error", "field"),
    [
        ("strata_store", {}, "missing_required", "key"),
        ("strata_store", {"key": "k"}, "missing_required", "value"),
        ("strata_store", {"value": 1}, "missing_required", "key"),
        ("strata_store", {"key": True, "value": 1}, "validation_error", "key"),
        ("strata_store", {"key": "k", "value": 1, "tags": [{}]}, "validation_error", "tags"),
        ("strata_recall", {"path": "$.a"}, "missing_required", "key"),
        ("strata_recall", {"key": "k", "keys": ["k"]}, "validation_error", "keys"),
        ("strata_recall", {"key": {"k": 1}}, "validation_error", "key"),
        ("strata_recall", {"keys": {"k": 1}}, "validation_error", "keys"),
        ("strata_recall", {"key": "k", "as_of": 1.5}, "validation_error", "as_of"),
        ("strata_search", {}, "missing_required", "query"),
        ("strata_search", {"query": ["k", "e"]}, "validation_error", "query"),
        ("strata_forget", {}, "missing_required", "key"),
        ("strata_log", {"event": "e"}, "missing_required", "data"),
        ("strata_log", {"data": 1}, "missing_required", "event"),
        ("strata_branch", {}, "missing_required", "action"),
        ("strata_status", {"verbose": True}, "validation_error", "verbose"),
        ("strata_purge", {}, "missing_required", "key"),
        ("strata_purge", {"key": "k", "sequence": 2}, "validation_error", "sequence"),
        ("strata_purge", {"sequence": 0}, "validation_error", "sequence"),
        ("strata_purge", {"sequence": 2**70}, "validation_error", "sequence"),
        ("strata_purge", {"sequence": 999}, "validation_error", "sequence"),
    ],
    ids=lambda part: str(part)[:40],
)
def test_arguments_of_the_wrong_shape_are_refused_and_the_parameter_is_named(
    call: Call, name: str, arguments: dict[str, Any], error: str, field: str
) -> None:
    refused = call.refusal(name, **arguments)

    assert (refused["error"], refused["details"]["field"].split(".")[0]) == (error, field)


@proves("input:shape")
def test_a_parameter_that_resembles_several_is_named_with_the_right_ones(call: Call) -> None:
    refused = call.refusal("strata_store", key="k", value=1, indexes="other")

    assert "index" in refused["hint"]


TEXTS = [
    "'; DROP TABLE events; --",
    '" OR "1"="1',
    "SELECT * FROM subjects WHERE key = 'k'",
    "NEAR(a b, 5) AND NOT body:c* ^d",
    "title : {body} + - * ( ) \" '",
    "%_\\%",
    "{{7*7}} ${jndi:ldap://x} <script>alert(1)</script>",
    "\u202eright to left",
]


@proves("input:syntax")
@pytest.mark.parametrize("text", TEXTS)
def test_text_in_the_syntax_of_sql_or_fts_is_stored_and_found_as_text(
    call: Call, text: str
) -> None:
    call.store(key=text, value=text, tags=[text], namespace=text[:100], session=text)
    call.log(event=text[:100], data=text, tags=[text])
    call.branch(action="fork", name=text)

    answer = call.recall(key=text, namespace=text[:100], branch=text)
    found = call.search(query=text, tags=[text], branch=text)["results"]

    assert (answer["value"], answer["tags"]) == (text, [text])
    assert len(found) == 2
    assert {hit["value"] for hit in found} == {text}
    assert call.status()["keys"] == 2


@proves("input:syntax")
@pytest.mark.parametrize(
    "query", ["*", '"', "k*", "k OR e", "NOT k", 'a" OR "k', "key:k", "^k", "( k", "k NEAR e", "-k"]
)
def test_no_operator_of_a_query_breaks_or_widens_it(call: Call, query: str) -> None:
    call.store(key="unrelated", value="something else entirely")

    found = call.search(query=query)["results"]

    assert "unrelated" not in {hit.get("key") for hit in found}


@proves("input:read-only")
def test_a_database_opened_for_reading_refuses_writes_and_answers_reads(opened: Opener) -> None:
    opened().store(key="k", value="fjord")
    reading = opened(read_only=True)

    for name, arguments in (
        ("strata_store", {"key": "k", "value": 2}),
        ("strata_forget", {"key": "k"}),
        ("strata_log", {"event": "e", "data": 1}),
        ("strata_branch", {"action": "fork", "name": "b"}),
        ("strata_branch", {"action": "delete", "name": "b"}),
        ("strata_purge", {"key": "k"}),
    ):
        assert reading.refusal(name, **arguments)["error"] == "read_only", name

    assert reading.value("k") == "fjord"
    assert reading.keys("fjord") == ["k"]
    assert reading.status()["read_only"] is True


@proves("input:values")
def test_an_error_of_what_only_reads_says_nothing_of_writing(call: Call) -> None:
    read = call.refusal("strata_search", query="x", min_score=3)
    written = call.refusal("strata_store", key="k", value=1, expected_version="x")

    assert read["hint"] == "Correct the parameter and call again."
    assert written["hint"].endswith("nothing was written.")
