from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.contracts.samples import Clock
from tests.manifest import proves

LINUX = {"os": "linux", "python": "3.12"}
WINDOWS = {"os": "windows", "python": "3.12"}
NUMPY = "ModuleNotFoundError: No module named 'numpy'"
TORCH = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
DAY = 24 * 3600


def add(call: Call, title: str, error: str | None = None, **changes: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = {"title": title, "steps": [f"mend {title}"], "env": LINUX}
    if error is not None:
        arguments["error_signature"] = error
    return call("add_incident", **{**arguments, "worked": True, "distinct": True, **changes})


def recommended(call: Call, error: str, **options: Any) -> list[str]:
    answer = call("ranked_solutions", query_text=error, env=LINUX, **options)
    return [each["solution_id"] for each in answer["ranked_solutions"]]


def evidence(call: Call, solution_id: str, **view: Any) -> tuple[int, int]:
    [shown] = call("show_record", record_id=solution_id, **view)["solutions"]
    return shown["worked"], shown["failed"]


def ids(answer: dict[str, Any], name: str = "incident_id") -> list[str]:
    return [each[name] for each in answer["results"]]


@proves("curate:list")
def test_incidents_are_listed_by_what_they_are(call: Call, clock: Clock) -> None:
    old = add(call, "numpy is missing", NUMPY, tags=["python"])
    clock.advance(40 * DAY)
    new = add(call, "no memory", TORCH, env=WINDOWS, worked=False)

    def found(**wanted: Any) -> list[str]:
        return ids(call("list_incidents", **wanted))

    assert found() == [new["incident_id"], old["incident_id"]]
    assert found(text="NUMPY") == found(tag="python") == [old["incident_id"]]
    assert found(environment="windows") == found(since="30 days ago") == [new["incident_id"]]
    assert found(standing="solved") == found(until="30 days ago") == [old["incident_id"]]
    assert found(standing="open") == [new["incident_id"]]
    assert found(text="numpy", environment="windows") == []


@proves("curate:list")
def test_solutions_and_outcomes_are_listed_with_what_became_of_them(call: Call) -> None:
    added = add(call, "numpy is missing", NUMPY)
    tried = call("add_solution", incident_id=added["incident_id"], steps="pray", env=WINDOWS)
    failed = call(
        "record_outcome", solution_id=tried["solution_id"], worked=False, env=WINDOWS, notes="No."
    )

    solutions = call("list_solutions", incident_id=added["incident_id"])["results"]
    outcomes = call("list_outcomes", solution_id=tried["solution_id"])["results"]

    assert [(each["steps"], each["standing"]) for each in solutions] == [
        (["pray"], "failing"),
        (["mend numpy is missing"], "working"),
    ]
    assert [(each["outcome_id"], each["notes"]) for each in outcomes] == [
        (failed["outcome_id"], "No.")
    ]
    assert [each["standing"] for each in call("list_outcomes")["results"]] == ["counted", "claim"]


@proves("curate:list")
def test_pages_show_everything_once_whatever_is_written_meanwhile(call: Call) -> None:
    added = [add(call, f"problem {number}")["incident_id"] for number in range(7)]

    page = call("list_incidents", limit=3)
    seen = ids(page)
    call("edit_incident", incident_id=added[0], title="problem zero")
    add(call, "problem 8")
    while page.get("next"):
        page = call("list_incidents", limit=3, cursor=page["next"])
        seen += ids(page)

    assert seen == added[::-1]
    assert ids(call("list_incidents", limit=2))[1] == added[0]


@proves("curate:edit")
def test_an_edited_incident_is_found_by_its_new_words_and_keeps_its_history(call: Call) -> None:
    added = add(call, "it fails", summary="Nothing works.", tags=["old"])["incident_id"]

    edited = call(
        "edit_incident", incident_id=added, title="The volcano erupts", summary="", tags=["new"]
    )

    shown = call("show_record", record_id=added)
    assert [each["did"] for each in shown["versions"]] == ["edited", "added"]
    assert (shown["incident"]["title"], shown["incident"]["tags"]) == (
        "The volcano erupts",
        ["new"],
    )
    assert "summary" not in shown["incident"]
    past = call("show_record", record_id=added, as_of=f"@{edited['version'] - 1}")
    assert past["incident"]["title"] == "it fails"
    call("restore_record", record_id=added, version=shown["versions"][-1]["version"])
    assert call("show_record", record_id=added)["incident"]["summary"] == "Nothing works."


@proves("curate:edit")
@pytest.mark.parametrize(
    ("steps", "evidence_given", "kept"),
    [
        (["MEND  numpy"], None, True),
        (["pip install numpy"], None, False),
        (["pip install numpy"], "keep", True),
        (["MEND  numpy"], "reset", False),
    ],
)
def test_evidence_of_other_steps_is_kept_or_begins_anew(
    call: Call, steps: list[str], evidence_given: str | None, kept: bool
) -> None:
    solution = add(call, "numpy", NUMPY)["solution_id"]
    call("record_outcome", solution_id=solution, worked=True, env=LINUX)
    chosen = {} if evidence_given is None else {"evidence": evidence_given}

    edited = call("edit_solution", solution_id=solution, steps=steps, **chosen)
    counted = evidence(call, solution)
    call("record_outcome", solution_id=solution, worked=False, env=LINUX)

    assert edited["evidence"] == ("keep" if kept else "reset")
    assert "2 outcomes" in edited["note"]
    assert counted == ((2, 0) if kept else (0, 0))
    assert evidence(call, solution) == ((2, 1) if kept else (0, 1))


@proves("curate:retire")
def test_a_retired_fix_is_recommended_no_more_until_it_is_restored(call: Call) -> None:
    added = add(call, "numpy", NUMPY, steps="rm -rf /")
    twin = call("add_solution", incident_id=added["incident_id"], steps="rm  -rf /", env=WINDOWS)
    both = {added["solution_id"], twin["solution_id"]}

    retired = call("retire_record", record_id=added["solution_id"], reason="It deletes everything")
    after = recommended(call, NUMPY)
    refused = call.refusal(
        "add_solution", incident_id=added["incident_id"], steps="rm -rf /", env=LINUX
    )
    listed = call("list_solutions", standing="retired")["results"]
    call("restore_record", record_id=added["solution_id"])

    assert retired["also"] == [twin["solution_id"]]
    assert after == []
    assert refused["error"] == "record_retired"
    assert "It deletes everything" in refused["message"]
    assert {each["solution_id"] for each in listed} == both
    assert listed[0]["retired"]["reason"] == "It deletes everything"
    assert set(recommended(call, NUMPY)) <= both
    assert recommended(call, NUMPY)


@proves("curate:retire")
def test_a_retired_incident_is_found_no_more_and_can_be_looked_at(call: Call) -> None:
    added = add(call, "numpy is missing", NUMPY)
    before = call.head().split(":")[0]

    call("retire_record", record_id=added["incident_id"], reason="Fixed upstream")
    answer = call("ranked_solutions", query_text=NUMPY, env=LINUX)
    past = recommended(call, NUMPY, as_of=f"@{before}")

    assert answer["incidents"] == answer["ranked_solutions"] == []
    assert past == [added["solution_id"]]
    assert ids(call("list_incidents", standing="retired")) == [added["incident_id"]]
    call("restore_record", record_id=added["incident_id"])
    assert recommended(call, NUMPY) == [added["solution_id"]]


@proves("curate:retire")
def test_a_retired_outcome_no_longer_counts(call: Call) -> None:
    solution = add(call, "numpy", NUMPY)["solution_id"]
    wrong = call("record_outcome", solution_id=solution, worked=False, env=LINUX)["outcome_id"]

    call("retire_record", record_id=wrong, reason="Another machine")
    without = evidence(call, solution)
    call("restore_record", record_id=wrong)

    assert (without, evidence(call, solution)) == ((1, 0), (1, 1))


@proves("curate:merge")
def test_merged_incidents_are_one_with_all_their_evidence(call: Call) -> None:
    one = add(call, "numpy is missing", NUMPY, steps="pip install numpy")
    other = add(call, "cannot import numpy", steps="pip install numpy", worked=False)

    call("merge_records", record_id=other["incident_id"], into=one["incident_id"])
    answer = call("ranked_solutions", query_text="cannot import numpy", env=LINUX)
    call("record_outcome", solution_id=other["solution_id"], worked=True, env=LINUX)

    [incident] = answer["incidents"]
    [best] = answer["ranked_solutions"]
    assert incident["incident_id"] == one["incident_id"]
    assert best["overall"] == {"worked": 1, "failed": 1}
    shown = call("show_record", record_id=other["incident_id"])
    assert shown["id"] == one["incident_id"]
    assert shown["merged_from"] == [other["incident_id"]]
    assert (shown["incident"]["worked"], shown["incident"]["failed"]) == (2, 1)
    added = call("add_solution", incident_id=other["incident_id"], steps="conda", env=LINUX)
    assert added["incident_id"] == one["incident_id"]

    call("restore_record", record_id=other["incident_id"])
    alone = call("show_record", record_id=other["incident_id"])["incident"]
    assert (alone["incident_id"], alone["worked"], alone["failed"]) == (other["incident_id"], 1, 1)


@proves("curate:merge")
def test_merged_solutions_join_their_evidence_once(call: Call) -> None:
    one = add(call, "numpy", NUMPY, steps="pip install numpy")
    other = call(
        "add_solution", incident_id=one["incident_id"], steps="python -m pip install numpy",
        env=LINUX,
    )["solution_id"]  # fmt: skip
    lookup = call("ranked_solutions", query_text=NUMPY, env=LINUX)["lookup_id"]
    for solution in (one["solution_id"], other):
        call("record_outcome", solution_id=solution, worked=True, env=LINUX, lookup_id=lookup)

    merged = call("merge_records", record_id=other, into=one["solution_id"])
    late = call("record_outcome", solution_id=other, worked=False, env=LINUX)

    assert merged["merged_into"] == one["solution_id"]
    # The claim, one report for the lookup that tried what is one fix now, and the late failure.
    assert (late["stats"]["worked"], late["stats"]["failed"]) == (2, 1)
    assert f"was merged into {one['solution_id']}" in late["note"]
    assert recommended(call, NUMPY) == [one["solution_id"]]


@proves("curate:split")
def test_part_of_an_incident_becomes_one_of_its_own_and_comes_back(call: Call) -> None:
    added = add(call, "two problems", NUMPY, steps="pip install numpy")
    torch = call(
        "add_solution", incident_id=added["incident_id"], steps="Halve the batch", env=LINUX
    )["solution_id"]
    call("record_outcome", solution_id=torch, worked=True, env=LINUX)
    lost = call("record_outcome", solution_id=added["solution_id"], worked=False, env=LINUX)

    split = call(
        "split_incident",
        incident_id=added["incident_id"],
        title="CUDA is out of memory",
        error_signature=TORCH,
        solutions=[torch],
        outcomes=[lost["outcome_id"]],
    )

    assert evidence(call, added["solution_id"]) == (1, 0)
    assert recommended(call, NUMPY) == [added["solution_id"]]
    new = call("show_record", record_id=split["incident_id"])
    assert (new["incident"]["worked"], new["incident"]["failed"]) == (1, 1)
    assert torch in recommended(call, TORCH)
    back = call("restore_record", record_id=split["incident_id"])
    assert back["merged_into"] == added["incident_id"]
    whole = call("show_record", record_id=added["incident_id"])["incident"]
    assert (whole["worked"], whole["failed"]) == (2, 1)


@proves("curate:branches")
def test_curation_stays_on_its_branch_and_merges_field_by_field(call: Call) -> None:
    added = add(call, "numpy", NUMPY)
    call("strata_branch", action="fork", name="trial")

    call("retire_record", record_id=added["solution_id"], reason="Wrong", branch="trial")
    call("edit_incident", incident_id=added["incident_id"], title="Numpy", branch="trial")
    call("edit_incident", incident_id=added["incident_id"], tags=["python"])
    before = recommended(call, NUMPY)
    call("strata_branch", action="merge", source="trial")

    assert before == [added["solution_id"]]
    assert recommended(call, NUMPY) == []
    shown = call("show_record", record_id=added["incident_id"])["incident"]
    assert (shown["title"], shown["tags"]) == ("Numpy", ["python"])


@proves("curate:branches")
def test_two_branches_that_merged_two_records_crosswise_agree(call: Call) -> None:
    one, other = add(call, "one", NUMPY), add(call, "other", TORCH, worked=False)
    call("strata_branch", action="fork", name="trial")

    call("merge_records", record_id=one["incident_id"], into=other["incident_id"])
    call("merge_records", record_id=other["incident_id"], into=one["incident_id"], branch="trial")
    call("strata_branch", action="merge", source="trial")
    call("strata_branch", action="merge", source="default", branch="trial")

    stands = min(one["incident_id"], other["incident_id"])
    for branch in ("default", "trial"):
        shown = [
            call("show_record", record_id=each["incident_id"], branch=branch)
            for each in (one, other)
        ]
        assert {each["id"] for each in shown} == {stands}
        assert (shown[0]["incident"]["worked"], shown[0]["incident"]["failed"]) == (1, 1)
        assert len(recommended(call, NUMPY, branch=branch)) == 2


@proves("curate:purge")
def test_a_purged_incident_is_gone_from_everywhere(call: Call) -> None:
    added = add(call, "the password is hippopotamus", NUMPY, summary="hippopotamus")
    kept = add(call, "no memory", TORCH)
    call("edit_incident", incident_id=added["incident_id"], title="numpy is missing")
    version = call.head().split(":")[0]
    call("strata_branch", action="fork", name="trial")
    call(
        "add_solution", incident_id=added["incident_id"], steps="hippopotamus", env=LINUX,
        branch="trial",
    )  # fmt: skip

    planned = call("purge_record", record_id=added["incident_id"])
    assert recommended(call, NUMPY) == [added["solution_id"]]
    erased = call("purge_record", record_id=added["incident_id"], confirm=True)

    assert (planned["purged"], erased["purged"]) == (False, True)
    assert (erased["incidents"], erased["solutions"], erased["outcomes"]) == (1, 2, 1)
    for view in ({}, {"branch": "trial"}, {"as_of": f"@{version}"}):
        assert ids(call("list_incidents", **view)) == [kept["incident_id"]]
        assert ids(call("list_solutions", text="hippopotamus", **view)) == []
        assert added["solution_id"] not in recommended(call, NUMPY, **view)
    assert call.refusal("show_record", record_id=added["incident_id"])["error"] == (
        "incident_not_found"
    )


@proves("curate:purge")
@pytest.mark.parametrize("kind", ["solution_id", "outcome_id"])
def test_a_fix_or_an_outcome_is_purged_alone(call: Call, kind: str) -> None:
    added = add(call, "numpy", NUMPY, notes="hippopotamus")

    call("purge_record", record_id=added[kind], confirm=True)

    assert ids(call("list_incidents")) == [added["incident_id"]]
    assert ids(call("list_outcomes"), "outcome_id") == []
    assert len(call("list_solutions")["results"]) == (kind == "outcome_id")


@proves("curate:refusals")
@pytest.mark.parametrize(
    ("name", "arguments", "error", "field"),
    [
        ("edit_incident", {"incident_id": "{inc}"}, "missing_required", "title"),
        ("edit_incident", {"incident_id": "{sol}", "title": "t"}, "validation_error",
         "incident_id"),
        ("retire_record", {"record_id": "out_0", "reason": "r"}, "outcome_not_found", "record_id"),
        ("retire_record", {"record_id": "{inc}", "reason": " "}, "validation_error", "reason"),
        ("restore_record", {"record_id": "{inc}"}, "validation_error", "record_id"),
        ("restore_record", {"record_id": "{inc}", "version": 1}, "validation_error", "version"),
        ("merge_records", {"record_id": "{inc}", "into": "{inc}"}, "validation_error", "into"),
        ("merge_records", {"record_id": "{inc}", "into": "{sol}"}, "validation_error", "into"),
        ("merge_records", {"record_id": "{sol}", "into": "{other}"}, "validation_error", "into"),
        ("split_incident", {"incident_id": "{inc}", "title": "t"}, "missing_required",
         "solutions"),
        ("split_incident", {"incident_id": "{inc}", "title": "t", "solutions": ["{other}"]},
         "validation_error", "solutions"),
        ("purge_record", {"record_id": "sol_0", "confirm": True}, "solution_not_found",
         "record_id"),
        ("list_incidents", {"cursor": "17"}, "validation_error", "cursor"),
        ("list_incidents", {"since": "soonish"}, "validation_error", "since"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_with_its_field(
    call: Call, name: str, arguments: dict[str, Any], error: str, field: str
) -> None:
    added, other = add(call, "numpy", NUMPY), add(call, "no memory", TORCH)
    known = {
        "{inc}": added["incident_id"],
        "{sol}": added["solution_id"],
        "{other}": other["solution_id"],
    }
    given = {
        key: [known[each] for each in value] if isinstance(value, list) else known.get(value, value)
        for key, value in arguments.items()
    }

    refused = call.refusal(name, **given)

    assert (refused["error"], refused["details"]["field"]) == (error, field)


@proves("debug:statistics")
def test_what_was_promised_is_set_against_what_happened(call: Call, clock: Clock) -> None:
    added = add(call, "numpy", NUMPY)
    for worked in (True, False, False):
        lookup = call("ranked_solutions", query_text=NUMPY, env=LINUX)
        call(
            "record_outcome", solution_id=added["solution_id"], worked=worked, env=LINUX,
            lookup_id=lookup["lookup_id"],
        )  # fmt: skip
        clock.advance(31 * DAY)
    missed = call("ranked_solutions", query_text="the coffee machine is broken", env=LINUX)
    made = add(call, "coffee", lookup_id=missed["lookup_id"])

    found = call("debugging_statistics")

    assert (found["lookups"], found["automatic"], found["no_match"]) == (4, 0, 1)
    assert (found["answered"], found["hit_rate"]) == (3, 0.3333)
    assert 0 < found["promised"] < 1
    assert [each["answered"] for each in found["by_month"] if each["answered"]] == [1, 1, 1]
    assert all(0 < each["promised"] < 1 for each in found["by_month"] if each["answered"])
    assert sum(each["answered"] for each in found["calibration"]) == 3
    assert [each["incident_id"] for each in found["no_match_then_added"]] == [made["incident_id"]]
    [stopped] = found["stopped_working"]
    assert (stopped["solution_id"], stopped["failures_since"]) == (added["solution_id"], 2)
