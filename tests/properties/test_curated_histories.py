"""Random curation on several branches: nothing is counted twice, and branches come to agree.

Whatever is edited, retired, restored, merged and split, on whichever branches, and in whatever
order these are merged: each outcome is listed once and counts at most once, what lists say of
incidents is what they say of their outcomes, and branches that know the same show the same.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

import stratagem
from stratagem import Stratagem
from stratagem.errors import RecordRetired, ValidationFailed

LINUX = {"os": "linux", "python": "3.12"}
ERRORS = [f"ModuleNotFoundError: No module named 'module{name}'" for name in "abc"]


def every(db: Stratagem, kind: str, branch: str) -> list[Any]:
    list_page = getattr(db.debugging, f"list_{kind}")
    page = list_page(limit=7, branch=branch)
    found = list(page.results)
    while page.next:
        page = list_page(limit=7, branch=branch, cursor=page.next)
        found += page.results
    return found


def add(db: Stratagem, draw: random.Random, branch: str) -> None:
    incidents = every(db, "incidents", branch)
    if len(incidents) < 3 or draw.random() < 0.3:
        db.debugging.add_incident(
            f"problem {draw.randrange(100)}",
            [f"step {draw.randrange(3)}"],
            LINUX,
            draw.random() < 0.5,
            error_signature=draw.choice(ERRORS),
            distinct=True,
            branch=branch,
        )
    else:
        db.debugging.add_solution(
            draw.choice(incidents).incident_id, [f"step {draw.randrange(3)}"], LINUX, branch=branch
        )


def report(db: Stratagem, draw: random.Random, branch: str) -> None:
    solution = draw.choice(every(db, "solutions", branch))
    lookup = db.debugging.ranked_solutions(draw.choice(ERRORS), LINUX, branch=branch)
    db.debugging.record_outcome(
        solution.solution_id,
        draw.random() < 0.5,
        LINUX,
        lookup_id=draw.choice((None, lookup.lookup_id)),
        branch=branch,
    )


def edit(db: Stratagem, draw: random.Random, branch: str) -> None:
    if draw.random() < 0.5:
        incident = draw.choice(every(db, "incidents", branch))
        db.debugging.edit_incident(
            incident.incident_id, title=f"title {draw.randrange(100)}", branch=branch
        )
        return
    solution = draw.choice(every(db, "solutions", branch))
    db.debugging.edit_solution(
        solution.solution_id,
        [f"step {draw.randrange(5)}"],
        evidence=draw.choice((None, "keep", "reset")),
        branch=branch,
    )


def some_id(db: Stratagem, draw: random.Random, branch: str) -> str:
    kind = draw.choice(("incident", "solution", "outcome"))
    chosen: str = getattr(draw.choice(every(db, f"{kind}s", branch)), f"{kind}_id")
    return chosen


def retire(db: Stratagem, draw: random.Random, branch: str) -> None:
    db.debugging.retire_record(some_id(db, draw, branch), draw.choice("xyz"), branch=branch)


def restore(db: Stratagem, draw: random.Random, branch: str) -> None:
    db.debugging.restore_record(some_id(db, draw, branch), branch=branch)


def merge(db: Stratagem, draw: random.Random, branch: str) -> None:
    kind = draw.choice(("incident", "solution"))
    one, other = (
        getattr(draw.choice(every(db, f"{kind}s", branch)), f"{kind}_id") for _ in range(2)
    )
    db.debugging.merge_records(one, other, branch=branch)


def split(db: Stratagem, draw: random.Random, branch: str) -> None:
    outcome = draw.choice(every(db, "outcomes", branch))
    taken: dict[str, Any] = draw.choice(
        ({"solutions": [outcome.solution_id]}, {"outcomes": [outcome.outcome_id]})
    )
    db.debugging.split_incident(outcome.incident_id, "split off", branch=branch, **taken)


STEPS = (add, report, report, edit, retire, restore, merge, split)


def check(db: Stratagem, branch: str) -> dict[str, Any]:
    incidents, solutions, outcomes = (
        every(db, kind, branch) for kind in ("incidents", "solutions", "outcomes")
    )
    for listed, name in ((incidents, "incident"), (solutions, "solution"), (outcomes, "outcome")):
        counts = Counter(getattr(each, f"{name}_id") for each in listed)
        assert set(counts.values()) <= {1}
    standing = {
        each.solution_id for each in solutions if each.standing not in {"retired", "merged"}
    }
    counted = Counter(
        (each.incident_id, each.worked)
        for each in outcomes
        if each.standing in {"counted", "claim"} and each.solution_id in standing
    )
    for each in incidents:
        own = (0, 0) if each.standing == "merged" else (each.worked, each.failed)
        expected = (counted[each.incident_id, True], counted[each.incident_id, False])
        assert own == expected, each
    return {
        "incidents": {
            each.incident_id: (each.title, each.standing, each.worked, each.failed)
            for each in incidents
        },
        "solutions": {
            each.solution_id: (tuple(each.steps), each.standing, each.worked, each.failed)
            for each in solutions
        },
        "outcomes": {each.outcome_id: (each.solution_id, each.incident_id) for each in outcomes},
    }


@pytest.mark.parametrize("seed", range(4))
def test_curated_branches_count_each_outcome_once_and_come_to_agree(seed: int) -> None:
    draw = random.Random(seed)
    with stratagem.open(":memory:", embedder="none") as db:
        for _ in range(3):
            add(db, draw, "default")
        branches = ["default", "b1", "b2"]
        for name in branches[1:]:
            db.memory.branch("fork", name=name)

        for _ in range(45):
            branch = draw.choice(branches)
            if draw.random() < 0.1:
                source = draw.choice([each for each in branches if each != branch])
                db.memory.branch("merge", source=source, branch=branch, strategy="source_wins")
            else:
                with suppress(ValidationFailed, RecordRetired):
                    draw.choice(STEPS)(db, draw, branch)
        for branch in branches:
            check(db, branch)
        for source in branches[1:]:
            db.memory.branch("merge", source=source, branch="default", strategy="source_wins")
        for branch in branches[1:]:
            db.memory.branch("merge", source="default", branch=branch, strategy="source_wins")

        shown = [check(db, branch) for branch in branches]
        assert shown[0] == shown[1] == shown[2]
        assert db.runtime.foundation.store.examine(lambda *_: None, None) == []
