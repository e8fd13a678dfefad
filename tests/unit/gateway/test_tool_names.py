"""Names that look alike, and names for tools whose own is taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem.gateway.registry.tool_names import TakenNames, skeleton


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("calculator", "Calculator"),
        ("calculator", "calcu1ator"),
        ("calculator", "caIculator"),
        ("strata_recall", "strata_recaII"),
        ("strata_recall", "strata-recall"),
        ("strata_recall", "strata__recall"),
        ("strata_recall", "strata.recall"),
        ("tool_execute", "t00l_execute"),
        ("date_time", "date_tirne"),
        ("web_view", "vveb_view"),
        ("strata_recall", "stratarecall"),
        ("strata_recall", "strata_reca11"),
        ("strata_search", "s_trata.search"),
        ("strata_search", "5trata_search"),
        ("calculator", "calcvlator"),
        ("code_executor", "cocle_executor"),
        ("tools_pipeline", "t0ols_p1pel1ne"),
        ("workflow_plan", "vvorkfIow_plan"),
        ("pay", "рау"),
        ("cafe", "café"),
        ("search", "ｓｅａｒｃｈ"),
    ],
)
def test_names_that_look_alike_have_one_skeleton(name: str, other: str) -> None:
    assert skeleton(name) == skeleton(other)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("read", "write"),
        ("add_user", "add_users"),
        ("list_a", "list_b"),
        ("v2_get", "v3_get"),
        ("read_file", "read_files"),
        ("get_issue", "get_issues"),
        ("search_code", "search_repositories"),
    ],
)
def test_other_names_do_not(name: str, other: str) -> None:
    assert skeleton(name) != skeleton(other)


def test_only_names_of_others_can_be_mistaken() -> None:
    taken = TakenNames([("calculator", None), ("read_file", "ann")])

    assert taken.twin_of("Calculator", "ann") == "calculator"
    assert taken.twin_of("read-file", "ann") is None
    assert taken.twin_of("read-file", "ben") == "read_file"


@pytest.mark.parametrize(
    "name",
    ["calculater", "calculator_", "calculators", "calclator", "clacu1ator", "acalculator"],
)
def test_a_name_that_is_a_built_in_one_but_for_a_letter_is_taken_for_it(name: str) -> None:
    taken = TakenNames([("calculator", None), ("ping", None), ("list_issues", "ann")])

    assert taken.twin_of(name, "ann") == "calculator"
    assert taken.free("sums", name, "source:sums") == f"sums_{name}"


@pytest.mark.parametrize("name", ["pong", "list_issue", "calculate", "unit_calculator", "convert"])
def test_an_honest_name_is_free(name: str) -> None:
    taken = TakenNames([("calculator", None), ("ping", None), ("list_issues", "ann")])

    assert taken.free("sums", name, "source:sums") == name


def test_a_name_that_is_taken_gets_that_of_its_source_and_then_a_number() -> None:
    taken = TakenNames([(name, "ann") for name in ("read", "files_read", "x" * 64)])

    assert taken.free("files", "read", "source:files") == "files_read_2"
    assert taken.free("files", "write", "source:files") == "write"
    assert taken.free("files", "Read", "source:files") == "files_read_2".replace("read", "Read")
    long = taken.free("files", "x" * 64, "source:files")
    assert long is not None
    assert long.startswith("files_xxx")
    assert len(long) == 64


@given(st.text(max_size=80))
def test_a_skeleton_is_its_own(name: str) -> None:
    assert skeleton(skeleton(name)) == skeleton(name)
