"""What curation leaves to others: exports, drafts, statistics, retries, repeated reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from stratagem import Stratagem
from stratagem.advice import DebuggingAdvisor
from stratagem.debugging.models import IncidentAdded
from stratagem.debugging.transfer import export_file, import_file
from stratagem.errors import ValidationFailed
from stratagem.operation import Caller

LINUX = {"os": "linux", "python": "3.12"}
ERROR = "ValueError: the order has no card"


def add(db: Stratagem, title: str = "No card", **changes: Any) -> IncidentAdded:
    given: dict[str, Any] = {"title": title, "steps": "Ask for a card", "env": LINUX}
    given |= {"worked": True, "distinct": True, "error_signature": ERROR}
    return db.debugging.add_incident(**{**given, **changes})


def test_lookups_that_the_gateway_makes_are_counted_apart(db: Stratagem) -> None:
    add(db)
    db.debugging.ranked_solutions(ERROR, LINUX)

    DebuggingAdvisor(db.runtime.foundation).known_fix(ERROR, "shop", "default", Caller())
    found = db.debugging.statistics()

    assert (found.lookups, found.automatic) == (1, 1)


def test_lookups_of_the_gateway_from_before_they_said_so_are_told_by_their_actor(
    db: Stratagem,
) -> None:
    from stratagem.debugging import kinds
    from stratagem.engine.events import Draft
    from stratagem.storage.contract import WriteRequest

    def keep(actor: str) -> None:
        content = {
            "lookup_id": f"look_{actor}",
            "query": "q",
            "env_bucket": "linux",
            "incidents": [],
            "solutions": [],
        }

        def work(transaction: Any) -> None:
            branch = transaction.branches.by_name("default")
            draft = Draft(kinds.SOLUTIONS_RANKED, content, kinds.LOOKUPS)
            transaction.append(branch, [draft])

        db.runtime.foundation.store.write(work, WriteRequest(actor))

    keep("gateway")
    keep("alice")
    found = db.debugging.statistics()

    assert (found.lookups, found.automatic, found.no_match) == (1, 1, 1)
    assert found.promised is None


def test_a_retired_problem_is_not_drafted_anew(db: Stratagem) -> None:
    advisor = DebuggingAdvisor(db.runtime.foundation)
    drafted = advisor.draft(ERROR, "shop", "default")
    assert drafted is not None

    db.debugging.retire_record(drafted, "Nobody's fault")

    assert advisor.draft(ERROR, "shop", "default") is None
    assert [each.title for each in db.debugging.list_incidents().results] == [ERROR]


def test_an_export_has_what_stands_and_each_outcome_once(
    db: Stratagem, other: Stratagem, tmp_path: Path
) -> None:
    kept, merged = add(db), add(db, "Card is gone", worked=False)
    retired = add(db, "Wrong", steps="Give up", error_signature="KeyError: 'x'")
    assert retired.incident_id
    db.debugging.merge_records(merged.incident_id, kept.incident_id)
    db.debugging.retire_record(retired.incident_id, "Wrong")
    gone = db.debugging.add_solution(kept.incident_id, "Pay in cash", LINUX)
    db.debugging.retire_record(gone.solution_id, "Nobody has cash")

    exported = export_file(db.runtime.foundation, tmp_path / "d.jsonl", branch="default")
    import_file(other.runtime.foundation, Caller(), tmp_path / "d.jsonl")

    assert (exported.incidents, exported.solutions, exported.outcomes) == (1, 2, 2)
    [incident] = other.debugging.list_incidents().results
    assert (incident.incident_id, incident.worked, incident.failed) == (kept.incident_id, 1, 1)
    assert b"cash" not in (tmp_path / "d.jsonl").read_bytes()


def test_an_outcome_for_the_old_steps_from_another_branch_does_not_count_for_the_new(
    db: Stratagem,
) -> None:
    solution = add(db).solution_id
    assert solution is not None
    db.memory.branch("fork", name="trial")

    db.debugging.edit_solution(solution, "Ask for another card")
    db.debugging.record_outcome(solution, True, LINUX, branch="trial")
    db.debugging.record_outcome(solution, False, LINUX)
    db.memory.branch("merge", source="trial")

    [shown] = db.debugging.list_solutions().results
    outcomes = db.debugging.list_outcomes(solution_id=solution).results
    assert (shown.worked, shown.failed) == (0, 1)
    assert sorted(each.standing for each in outcomes) == ["counted", "reset", "reset"]


def test_what_was_merged_into_a_fix_begins_anew_with_it(db: Stratagem) -> None:
    added = add(db)
    assert added.solution_id is not None
    twin = db.debugging.add_solution(added.incident_id, "Ask for cards", LINUX)
    db.debugging.record_outcome(twin.solution_id, True, LINUX)
    db.debugging.merge_records(twin.solution_id, added.solution_id)

    changed = db.debugging.edit_solution(added.solution_id, "Ask for a cheque", evidence="reset")
    db.debugging.record_outcome(twin.solution_id, False, LINUX)

    shown = db.debugging.show_record(added.solution_id)
    assert changed.also == [twin.solution_id]
    assert shown.solutions is not None
    assert (shown.solutions[0].worked, shown.solutions[0].failed) == (0, 1)


def test_a_repeated_change_is_written_once(db: Stratagem) -> None:
    incident = add(db).incident_id

    first = db.debugging.retire_record(incident, "Done", request_id="r1")
    again = db.debugging.retire_record(incident, "Done", request_id="r1")
    same = db.debugging.retire_record(incident, "Done")

    assert first == again
    assert same.note == "Nothing changed: it was already in this state."
    assert len(db.debugging.show_record(incident).versions) == 2


def test_reasons_and_new_words_are_masked(db: Stratagem) -> None:
    added = add(db)
    assert added.solution_id is not None
    secret = "password=hunter22"

    db.debugging.edit_incident(added.incident_id, title=secret, summary=secret, tags=[secret])
    db.debugging.edit_solution(added.solution_id, secret)
    db.debugging.retire_record(added.incident_id, secret)

    log = b"".join(each.payload or b"" for each in db.runtime.foundation.store.log())
    assert b"hunter22" not in log


def test_a_new_error_is_what_the_incident_is_found_by(db: Stratagem) -> None:
    incident = add(db).incident_id
    other = "KeyError: 'cart'"

    db.debugging.edit_incident(incident, error_signature=other)
    by_old, by_new = (db.debugging.ranked_solutions(each, LINUX) for each in (ERROR, other))

    assert not any(each.exact for each in by_old.incidents)
    assert [(each.incident_id, each.exact) for each in by_new.incidents] == [(incident, True)]
    db.debugging.edit_incident(incident, error_signature="")
    assert db.debugging.show_record(incident).error_signature is None


def test_a_split_can_take_the_error_with_it(db: Stratagem) -> None:
    incident = add(db).incident_id

    split = db.debugging.split_incident(incident, "The card", error_signature=ERROR)
    found = db.debugging.ranked_solutions(ERROR, LINUX)

    assert "no longer has" in (split.note or "")
    assert found.incidents[0].incident_id == split.incident_id
    assert found.incidents[0].exact


@pytest.mark.parametrize("cursor", ["", "x", "bm8", "WzEsMl0x", "[1,2]", "W10", "WzEsMF0"])
def test_a_made_up_cursor_is_refused(db: Stratagem, cursor: str) -> None:
    with pytest.raises(ValidationFailed, match="cursor"):
        db.debugging.list_incidents(cursor=cursor)


def test_a_list_in_the_past_goes_on_in_the_past(db: Stratagem) -> None:
    added = [add(db, f"No card {number}").incident_id for number in range(4)]
    [incident] = db.debugging.list_incidents(limit=1).results
    db.debugging.retire_record(added[0], "Done")

    past = db.debugging.list_incidents(limit=3, as_of=f"@{incident.version}")
    last = db.debugging.list_incidents(limit=3, cursor=past.next)

    assert past.next is not None
    assert [each.standing for each in last.results] == ["solved"]
    with pytest.raises(ValidationFailed, match="another list"):
        db.debugging.list_outcomes(cursor=past.next)


def test_records_written_before_there_was_curation_are_listed(db: Stratagem) -> None:
    from stratagem.debugging import kinds
    from stratagem.engine.events import Draft
    from stratagem.storage.contract import WriteRequest

    old = {"incident_id": "inc_1", "title": "old", "signature_version": 0}
    solution = {
        "solution_id": "sol_1",
        "incident_id": "inc_1",
        "steps": ["mend"],
        "steps_key": "k",
        "env": {},
        "env_bucket": "unknown",
    }

    def work(transaction: Any) -> None:
        transaction.append(
            transaction.branches.by_name("default"),
            [
                Draft(kinds.INCIDENT_ADDED, old, kinds.INCIDENTS, "inc_1"),
                Draft(kinds.SOLUTION_ADDED, solution, kinds.SOLUTIONS, "sol_1"),
            ],
        )

    db.runtime.foundation.store.write(work, WriteRequest("old"))
    [before] = db.debugging.list_incidents().results
    db.debugging.edit_incident("inc_1", title="new")
    db.debugging.record_outcome("sol_1", True, {})

    [listed] = db.debugging.list_incidents().results
    assert listed.added == before.added < listed.changed
    assert (listed.title, listed.standing) == ("new", "solved")
    assert orjson.dumps(listed)
