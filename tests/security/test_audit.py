"""How a report about dependencies is judged."""

from __future__ import annotations

from typing import Any

from tests.security.audit import judge, read_accepted


def report(*vulns: dict[str, Any]) -> dict[str, Any]:
    return {
        "dependencies": [
            {"name": "fine", "version": "1", "vulns": []},
            {"name": "odd", "version": "2", "vulns": list(vulns)},
            {"name": "unknown", "skip_reason": "not found"},
        ]
    }


NO_FIX: dict[str, Any] = {"id": "PYSEC-1", "fix_versions": []}
ACCEPTED = [{"package": "odd", "id": "PYSEC-1", "reason": "never called"}]


def test_nothing_found_is_no_problem() -> None:
    assert judge(report(), []) == ([], ["2 of 3 packages were checked."])


def test_what_has_a_fix_is_a_problem_even_where_it_is_accepted() -> None:
    fixed = {**NO_FIX, "fix_versions": ["3"]}

    assert judge(report(fixed), ACCEPTED).problems == ["odd 2: PYSEC-1 is mended in 3"]


def test_what_has_no_fix_needs_a_reason() -> None:
    assert "with a reason" in judge(report(NO_FIX), []).problems[0]
    accepted = judge(report(NO_FIX), ACCEPTED)
    assert accepted.problems == []
    assert "never called" in accepted.notes[1]


def test_a_reason_that_is_no_longer_needed_is_pointed_out() -> None:
    assert "no longer found" in judge(report(), ACCEPTED).notes[1]


def test_without_the_service_nothing_fails_and_it_says_so() -> None:
    skipped = {"dependencies": [{"name": "a", "skip_reason": "not found"}]}

    for given in (None, skipped):
        assert judge(given, ACCEPTED).problems == []
        assert "cannot be reached" in judge(given, ACCEPTED).notes[0]


def test_everything_accepted_has_a_reason() -> None:
    assert all(each["reason"].strip() for each in read_accepted())
