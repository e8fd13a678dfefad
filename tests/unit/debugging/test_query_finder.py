"""Incidents that are found by words."""

from __future__ import annotations

import stratagem

_LINUX = {"os": "linux"}


def test_an_incident_with_hundreds_of_fixes_pushes_no_other_one_out_of_the_results() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        made = [
            db.debugging.add_incident(
                title=title, steps=[steps], env=_LINUX, worked=True
            ).incident_id
            for title, steps in (
                ("The pump is loud", "turn the valve 0"),
                ("The boiler is cold", f"turn the valve. {'Wait for a while. ' * 90}"),
            )
        ]
        for number in range(1, 210):
            db.debugging.add_solution(
                incident_id=made[0], steps=[f"turn the valve {number}"], env=_LINUX
            )

        found = db.call("strata_search", {"query": "valve", "kinds": ["incident"]})["results"]

    assert {hit["key"] for hit in found} == set(made)
