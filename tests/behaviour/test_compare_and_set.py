from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.manifest import proves


@proves("cas:match")
def test_a_write_at_the_expected_version_is_made(call: Call) -> None:
    version = call.store(key="k", value="one")["version"]

    answer = call.store(key="k", value="two", expected_version=version)

    assert answer["version"] == version + 1
    assert call.value("k") == "two"


@proves("cas:mismatch")
def test_a_write_at_another_version_is_refused_and_says_which_it_is(call: Call) -> None:
    old = call.store(key="k", value="one")["version"]
    new = call.store(key="k", value="two")["version"]

    refused = call.refusal("strata_store", key="k", value="three", expected_version=old)

    assert refused["error"] == "version_conflict"
    details = {name: refused["details"][name] for name in ("key", "expected_version", "version")}
    assert details == {"key": "k", "expected_version": old, "version": new}
    assert call.value("k") == "two"


@proves("cas:new")
def test_zero_expects_that_nothing_is_there(call: Call) -> None:
    created = call.store(key="k", value="one", expected_version=0)
    refused = call.refusal("strata_store", key="k", value="two", expected_version=0)
    call.forget(key="k")
    again = call.store(key="k", value="three", expected_version=0)

    assert created["status"] == again["status"] == "created"
    assert refused["details"]["version"] == created["version"]


@proves("cas:mismatch")
def test_a_missing_or_forgotten_entry_is_at_no_version(call: Call) -> None:
    version = call.store(key="k", value="one")["version"]
    call.forget(key="k")

    forgotten = call.refusal("strata_store", key="k", value=1, expected_version=version)
    missing = call.refusal("strata_store", key="never", value=1, expected_version=5)

    assert forgotten["details"]["version"] == missing["details"]["version"] == 0
    for refused in (forgotten, missing):
        assert "To store a new entry, pass 0 as " in refused["hint"]
        assert "Recall" not in refused["hint"]
    assert call.store(key="never", value=1, expected_version=0)["version"]


@proves("cas:branch")
def test_a_version_borrowed_from_the_parent_is_the_forks_version(call: Call) -> None:
    version = call.store(key="k", value="one")["version"]
    call.branch(action="fork", name="trial")
    call.store(key="k", value="two")

    call.store(key="k", value="three", expected_version=version, branch="trial")
    refused = call.refusal("strata_store", key="k", value=4, expected_version=version)

    assert call.value("k", branch="trial") == "three"
    assert refused["error"] == "version_conflict"


@proves("cas:path")
def test_a_change_of_one_place_can_expect_a_version(call: Call) -> None:
    version = call.store(key="k", value={"n": 1})["version"]

    call.store(key="k", value=2, path="$.n", expected_version=version)
    refused = call.refusal("strata_store", key="k", value=3, path="$.n", expected_version=version)

    assert call.value("k") == {"n": 2}
    assert refused["error"] == "version_conflict"


@proves("cas:values", "input:values")
@pytest.mark.parametrize("version", [-1, "x", 1.5, [], 2**63, 2**70], ids=repr)
@pytest.mark.parametrize("request_id", [None, "r1"])
def test_a_version_that_cannot_be_one_is_refused(
    call: Call, version: Any, request_id: str | None
) -> None:
    options = {"request_id": request_id} if request_id else {}

    refused = call.refusal("strata_store", key="k", value=1, expected_version=version, **options)

    assert (refused["error"], refused["details"]["field"]) == (
        "validation_error",
        "expected_version",
    )
