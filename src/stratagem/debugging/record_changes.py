"""The new versions of records that editing, retiring, restoring and merging write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from stratagem.debugging import kinds
from stratagem.debugging.found_records import (
    Content,
    FoundRecord,
    amendment_of,
    find_record,
    past_of,
    refuse_merged,
    resolve,
)
from stratagem.debugging.records import IncidentRecords, solution_of, steps_key
from stratagem.debugging.service import refuse_retired
from stratagem.engine.events import Draft
from stratagem.errors import RecordRetired, ValidationFailed

__all__ = [
    "UNSIGNED",
    "RecordChange",
    "edit_incident",
    "edit_steps",
    "merge",
    "restore",
    "restore_version",
    "retire",
]

# What an incident is besides its error signature, and what follows from that.
UNSIGNED: Final = frozenset(
    {
        *("incident_id", "at", "title", "summary", "tags", "lookup_id", "origin"),
        *("retired", "merged_into", "split_from"),
    }
)


class RecordChange:
    """The events of a change, with the new version of the record first."""

    def __init__(
        self,
        found: FoundRecord,
        event: str,
        content: Content,
        *,
        also: Sequence[Draft] = (),
        evidence: str | None = None,
        note: str | None = None,
        known: Content | None = None,
    ) -> None:
        self.found = found
        self.did = past_of(event)
        self.evidence = evidence
        self.note = note
        self.also = [str(each.key) for each in also]
        if found.kind != kinds.OUTCOME:
            known = found.content
        # Records of earlier releases do not say when they were added; their first event does.
        dated = content if found.kind == kinds.OUTCOME else {"at": found.hit.at, **content}
        self.drafts = [] if content == known else [Draft(event, dated, found.space, found.id)]
        self.drafts += also


def edit_incident(old: Content, kept: Content, given: Mapping[str, Any]) -> Content:
    """Return an incident with the fields that were given, and without those given as empty."""
    new = {
        name: value
        for name, value in old.items()
        if not (name in given and given[name] is not None)
        and not (name not in UNSIGNED and given["error_signature"] is not None)
    }
    for name, value in kept.items():
        signed = name not in UNSIGNED and given["error_signature"]
        if signed or given.get(name) is not None:
            new[name] = value
    return new


def edit_steps(
    records: IncidentRecords, found: FoundRecord, steps: list[str], evidence: str | None
) -> RecordChange:
    """Return the change of a fix's steps; its evidence is kept where their words are the same.

    Raises:
        RecordRetired: A fix with these steps was retired.
    """
    old, key = found.content, steps_key(steps)
    if steps == old["steps"] and evidence != "reset":
        return RecordChange(found, kinds.SOLUTION_EDITED, old)
    alike = key == steps_key(old["steps"])
    choice = evidence or ("keep" if alike else "reset")
    if not alike:
        refuse_retired(records, records.resolve_incident(old["incident_id"]), key)
    solution = solution_of(old, found.hit.sequence)
    counted = len(records.outcomes([solution]))
    # Both sides of a merge change it whenever they change the steps, so that it goes with them.
    revision = f"rev_{records.reader.log.head().sequence + 1}_{key[:8]}"
    revisions = [*solution.revisions, revision] if choice == "keep" else [revision]
    content = {**old, "steps": steps, "evidence_revisions": revisions}
    also = []
    if choice == "reset":
        # Evidence of records merged into it is for the old steps, too.
        also = [
            Draft(
                kinds.SOLUTION_EDITED,
                {**records.content(kinds.SOLUTIONS, each), "evidence_revisions": [revision]},
                kinds.SOLUTIONS,
                each,
            )
            for each in records.merged_into(kinds.SOLUTIONS, found.id)[1:]
        ]
    return RecordChange(
        found,
        kinds.SOLUTION_EDITED,
        content,
        also=also,
        evidence=choice,
        note=_evidence_note(choice, counted, asked=evidence is not None, alike=alike),
    )


def _evidence_note(choice: str, counted: int, *, asked: bool, alike: bool) -> str:
    outcomes = f"{counted} outcome{'' if counted == 1 else 's'}"
    if choice == "keep":
        why = "" if asked or not alike else " (the words are the same)"
        return f"The evidence was kept{why}: {outcomes} still count."
    said = f"The evidence starts again: {outcomes} of the old steps no longer count."
    return (
        said
        if asked
        else f"{said} To keep it, restore the version before, or pass evidence='keep'."
    )


def retire(records: IncidentRecords, found: FoundRecord, reason: str) -> RecordChange:
    """Return the change that withdraws a record, a fix with those of the same steps."""
    retired = {"reason": reason, "at": _now(records)}
    if found.kind == kinds.OUTCOME:
        amendment = amendment_of(records, found)
        if amendment.get("retired", {}).get("reason") == reason:
            retired = amendment["retired"]
        new = {**amendment, "retired": retired}
        return RecordChange(found, kinds.OUTCOME_AMENDED, new, known=amendment)
    refuse_merged(records, found)
    old = found.content
    if old.get("retired", {}).get("reason") == reason:
        return RecordChange(found, kinds.INCIDENT_RETIRED, old)
    if found.kind == kinds.INCIDENT:
        return RecordChange(found, kinds.INCIDENT_RETIRED, {**old, "retired": retired})
    variants = [
        each.solution_id
        for each in records.variants(solution_of(old, found.hit.sequence))
        if each.solution_id != found.id and not each.retired
    ]
    also = [
        Draft(
            kinds.SOLUTION_RETIRED,
            {**records.content(kinds.SOLUTIONS, each), "retired": retired},
            kinds.SOLUTIONS,
            each,
        )
        for each in variants
    ]
    note = "Solutions with the same steps were retired with it." if also else None
    return RecordChange(
        found, kinds.SOLUTION_RETIRED, {**old, "retired": retired}, also=also, note=note
    )


def restore(records: IncidentRecords, found: FoundRecord) -> RecordChange:
    """Return the change that takes back a retirement, a merge or a split.

    Raises:
        ValidationFailed: There is nothing of the kind to take back.
    """
    if found.kind == kinds.OUTCOME:
        amendment = amendment_of(records, found)
        if not {"retired", "moved_to"} & amendment.keys():
            raise _nothing_to_restore(found)
        own = {"outcome_id": found.id, "solution_id": amendment["solution_id"]}
        return RecordChange(found, kinds.OUTCOME_AMENDED, own)
    old = found.content
    event = kinds.INCIDENT_RESTORED if found.kind == kinds.INCIDENT else kinds.SOLUTION_RESTORED
    if {"retired", "merged_into"} & old.keys():
        new = {name: each for name, each in old.items() if name not in {"retired", "merged_into"}}
        also = _retired_with(records, found) if found.kind == kinds.SOLUTION else []
        return RecordChange(found, event, new, also=also)
    origin = old.get("split_from")
    if origin is not None and records.current(kinds.INCIDENTS, origin) is not None:
        note = f"The split was undone: it was merged into {origin} again."
        return RecordChange(found, kinds.INCIDENT_MERGED, {**old, "merged_into": origin}, note=note)
    raise _nothing_to_restore(found)


def _retired_with(records: IncidentRecords, found: FoundRecord) -> list[Draft]:
    """Return what brings the fixes back that were retired together with one."""
    retired = found.content.get("retired")
    if retired is None:
        return []
    drafts = []
    for each in records.variants(solution_of(found.content, found.hit.sequence)):
        content = records.content(kinds.SOLUTIONS, each.solution_id)
        if each.solution_id != found.id and content.pop("retired", None) == retired:
            drafts.append(
                Draft(kinds.SOLUTION_RESTORED, content, kinds.SOLUTIONS, each.solution_id)
            )
    return drafts


def restore_version(records: IncidentRecords, found: FoundRecord, version: int) -> RecordChange:
    """Return the change that restores an earlier version of a record.

    Its incident stays the same.
    """
    versions = records.reader.records.history(
        records.view.lineage, found.space, found.id, before=version + 1, limit=1
    )
    earlier = versions[0] if versions else None
    if earlier is None or earlier.sequence != version or earlier.payload is None:
        raise ValidationFailed(
            f"{found.id!r} has no version {version} that could be restored.",
            field="version",
            hint=f"show_record {found.id} lists its versions.",
        )
    event = {
        kinds.INCIDENT: kinds.INCIDENT_RESTORED,
        kinds.SOLUTION: kinds.SOLUTION_RESTORED,
    }.get(found.kind, kinds.OUTCOME_AMENDED)
    return RecordChange(found, event, orjson.loads(earlier.payload))


def _nothing_to_restore(found: FoundRecord) -> ValidationFailed:
    return ValidationFailed(
        f"{found.id!r} was not retired, merged away or split off.",
        field="record_id",
        hint="To undo an edit, give the version to restore: show_record lists them.",
    )


def merge(records: IncidentRecords, duplicate: FoundRecord, into: FoundRecord) -> RecordChange:
    """Return the change by which a record points to its replacement.

    Raises:
        RecordRetired: One of them was retired.
        ValidationFailed: They are not of one kind, or fixes of two incidents.
    """
    if duplicate.kind != into.kind or duplicate.kind == kinds.OUTCOME:
        raise ValidationFailed(
            "An incident is merged into an incident, and a solution into a solution; "
            f"{duplicate.id!r} is of kind {duplicate.kind}, {into.id!r} of kind {into.kind}.",
            field="into",
        )
    refuse_merged(records, duplicate)
    stays = find_record(records, resolve(records, into))
    if stays.id == duplicate.id:
        raise ValidationFailed(
            f"{duplicate.id!r} cannot be merged into itself.",
            field="into",
            hint=f"{into.id} was merged into {stays.id} already." if into.id != stays.id else None,
        )
    for each in (duplicate, stays):
        if "retired" in each.content:
            raise RecordRetired(
                f"{each.id!r} was retired: {each.content['retired']['reason']}",
                field="record_id" if each is duplicate else "into",
                record_id=each.id,
                hint=f"Restore it first: restore_record {each.id}.",
            )
    if duplicate.kind == kinds.SOLUTION:
        _require_same_incident(records, duplicate, stays)
    event = kinds.INCIDENT_MERGED if duplicate.kind == kinds.INCIDENT else kinds.SOLUTION_MERGED
    return RecordChange(
        duplicate,
        event,
        {**duplicate.content, "merged_into": stays.id},
        note="From now on its id means the other record, until it is restored.",
    )


def _require_same_incident(records: IncidentRecords, one: FoundRecord, other: FoundRecord) -> None:
    owners = [records.resolve_incident(each.content["incident_id"]) for each in (one, other)]
    if owners[0] != owners[1]:
        raise ValidationFailed(
            f"They are fixes of two incidents, {owners[0]} and {owners[1]}: what helped against "
            "one problem is not evidence for another.",
            field="into",
            hint=f"If these are one problem, merge them first: merge_records {owners[0]} into "
            f"{owners[1]}.",
        )


def _now(records: IncidentRecords) -> int:
    assert isinstance(records.view.time, int)
    return records.view.time
