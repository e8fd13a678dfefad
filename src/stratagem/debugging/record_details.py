"""A record of debugging with what belongs to it, and what was done to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.debugging import kinds, record_lists
from stratagem.debugging.found_records import SPACES, FoundRecord, find_record, past_of
from stratagem.debugging.models import RecordDetails, RecordVersion
from stratagem.debugging.record_lists import ListFilter
from stratagem.debugging.records import IncidentRecords
from stratagem.engine import moments
from stratagem.engine.lineage import OPEN_END
from stratagem.storage.contract import EventContent

__all__ = ["details_of", "list_item"]

_VERSIONS_SHOWN: Final = 100


def list_item(records: IncidentRecords, found: FoundRecord) -> Any:
    """Return a record as lists show it."""
    make: Mapping[str, Callable[[IncidentRecords, EventContent], Any]] = {
        kinds.INCIDENT: record_lists.incident_item,
        kinds.SOLUTION: record_lists.solution_item,
        kinds.OUTCOME: record_lists.outcome_item,
    }
    return make[found.kind](records, found.hit)


def details_of(records: IncidentRecords, found: FoundRecord) -> RecordDetails:
    """Return a record with what belongs to it, and its versions."""
    details = RecordDetails(found.kind, found.id, _versions(records, found))
    if found.kind == kinds.INCIDENT:
        details.incident = record_lists.incident_item(records, found.hit)
        details.error_signature = found.content.get("error_signature")
        details.incident.summary = found.content.get("summary")
        solutions = [
            find_record(records, each.solution_id) for each in records.every_solution(found.id)
        ]
        details.solutions = [record_lists.solution_item(records, each.hit) for each in solutions]
    elif found.kind == kinds.SOLUTION:
        details.solutions = [record_lists.solution_item(records, found.hit)]
        wanted = ListFilter(solution_id=found.id)
        details.outcomes = record_lists.find_outcomes(
            records, wanted, before=OPEN_END, limit=limits.RECORDS_LISTED_MAX
        ).results
    else:
        details.outcomes = [record_lists.outcome_item(records, found.hit)]
    merged = records.merged_into(found.space, found.id)[1:] if found.kind in SPACES else []
    details.merged_from = merged or None
    return details


def _versions(records: IncidentRecords, found: FoundRecord) -> list[RecordVersion]:
    history = records.reader.records.history(
        records.view.lineage, found.space, found.id, before=OPEN_END, limit=_VERSIONS_SHOWN
    )
    listed = []
    for place, version in enumerate(history):
        content = orjson.loads(version.payload) if version.payload else {}
        did = past_of(version.kind) if version.payload else "purged"
        if did == "added" and place < len(history) - 1:
            did = "merged from a branch"
        reason = content.get("retired", {}).get("reason") if did == "retired" else None
        if did == "merged":
            reason = f"into {content.get('merged_into')}"
        listed.append(
            RecordVersion(version.sequence, moments.iso(version.at), version.actor, did, reason)
        )
    if found.kind == kinds.OUTCOME:
        hit = found.hit
        listed.append(RecordVersion(hit.sequence, moments.iso(hit.at), hit.actor, "reported"))
    return listed
