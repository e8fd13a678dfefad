"""Calls of the default tools as models really make them are run as they were meant, or refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

import stratagem
from stratagem.errors import NotInTransaction, PermissionDenied, ValidationFailed
from tests.behaviour.conftest import Call
from tests.behaviour.wrong_calls import CALLS, DEFAULT_TOOLS, Seeded, outcome_of
from tests.manifest import proves

SUCCEEDING_MIN = 50


@proves("input:corrected")
def test_most_of_sixty_wrong_calls_succeed_and_none_is_silently_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcomes = [(each, outcome_of(each)) for each in CALLS]

    succeeded = sum(one.succeeded and not one.fault for _call, one in outcomes)
    wrongly = sum(one.succeeded and bool(one.fault) for _call, one in outcomes)
    with capsys.disabled():
        print(f"\n{succeeded} of {len(CALLS)} wrong calls succeed, {wrongly} wrongly")  # noqa: T201
    assert [(call, one.fault) for call, one in outcomes if one.fault] == []
    assert succeeded >= SUCCEEDING_MIN
    assert len(CALLS) == 60
    assert {each["tool"] for each in CALLS} == DEFAULT_TOOLS


@proves("input:corrected")
def test_a_wrong_call_is_corrected_on_every_surface(call: Call) -> None:
    call.store(key="city", value="Oslo", tags=["place"])

    found = call.search(q="Oslo", limit=1, tags="place")

    assert [hit["key"] for hit in found["results"]] == ["city"]
    assert "`limit` read as `k`" in found["correction"]


@proves("input:corrected")
@pytest.mark.parametrize("also", ["k", "top_k"])
def test_two_names_of_one_parameter_are_asked_about(seeded: Seeded, also: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        seeded.call("strata_search", {"query": "Oslo", "limit": 3, also: 5})

    assert refused.value.details["field"] == "limit"
    assert refused.value.hint.endswith("`k`, which takes one value: send only `k`.")
    assert "`top_k`" in refused.value.hint or also == "k"


@pytest.fixture
def seeded() -> Iterator[Seeded]:
    found = Seeded()
    with closing(found.runtime):
        yield found


@proves("input:corrected")
def test_a_corrected_call_needs_the_right_that_it_means(seeded: Seeded) -> None:
    seeded.caller.scopes = frozenset({"memory:read"})

    for arguments in (
        {"arguments": {"action": "merge", "source": "risky"}},
        {"operation": "merge", "from": "risky"},
        {"Action": "Delete", "name": "risky"},
    ):
        with pytest.raises(PermissionDenied):
            seeded.call("strata_branch", arguments)
    listed = seeded.call("strata_branch", {"operation": "list"})
    assert {each["name"] for each in listed["results"]} == {"default", "risky"}


@proves("input:corrected")
def test_a_corrected_call_reaches_no_branch_that_is_not_the_callers() -> None:
    with stratagem.open(":memory:", embedder="none") as db, db.transaction():
        for arguments in (
            {"input": {"key": "k", "value": 1, "branch": "other"}},
            {"key": "k", "content": 1, "Branch": "other"},
        ):
            with pytest.raises(NotInTransaction):
                db.call("strata_store", arguments)


@proves("input:corrected")
def test_the_policy_of_corrections_holds_for_the_default_tools(seeded: Seeded) -> None:
    settings = {"settings": {"enabled": False}, "toolName": "strata_search"}
    seeded.call_as_operator("auto_correction_configure", settings)

    with pytest.raises(ValidationFailed, match="limit"):
        seeded.call("strata_search", {"query": "London", "limit": 1})
    assert seeded.call("strata_recall", {"name": "draft"})["found"] is True


@proves("input:corrected")
def test_a_tool_called_through_the_gateway_takes_the_same_names(seeded: Seeded) -> None:
    sent = {"toolName": "strata_search", "arguments": {"query": "London", "limit": 1}}

    answer = seeded.runtime.call("tool_execute", sent, seeded.caller)

    assert len(answer["result"]["results"]) == 1


@proves("input:corrected")
def test_what_is_stored_is_never_taken_apart(seeded: Seeded) -> None:
    value = {"tags": ["x"], "path": "p", "key": "b", "value": 1}

    for sent in (
        {"key": "k", "data": value},
        {"key": "k", "value": value, "tag": "t"},
        {"items": [{"key": "k", "content": value}]},
    ):
        seeded.call("strata_store", sent)
        assert seeded.call("strata_recall", {"key": "k"})["value"] == value


@proves("input:corrected")
def test_a_refusal_says_what_may_have_been_meant(seeded: Seeded) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        seeded.call("strata_search", {"query": "London", "k": "five"})

    assert '{"query":"London","k":5}' in refusal.value.hint


@proves("input:corrected")
def test_a_call_that_is_right_does_not_load_the_correction() -> None:
    code = (
        "import sys, stratagem\n"
        "db = stratagem.open(':memory:', embedder='none')\n"
        "db.call('strata_store', {'key': 'k', 'value': 1})\n"
        "assert not [each for each in sys.modules if each.startswith('stratagem.gateway.corr')]\n"
    )

    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)

    assert done.returncode == 0, done.stderr
