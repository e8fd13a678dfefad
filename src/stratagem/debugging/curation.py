"""Maintenance of debug memory: listing, editing, retiring, merging, splitting and erasing.

Every change is a new version of a record, so it can be seen, undone, and merged between branches.
Evidence is never copied: a record that was merged away points to its replacement and is read with
it, and an outcome that was moved is read where it was moved to (`records`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from stratagem import limits
from stratagem.debugging import checks, erasure, kinds, record_changes, record_lists
from stratagem.debugging.found_records import find_record, refuse_merged, require_kind, resolve
from stratagem.debugging.incident_split import IncidentSplitter
from stratagem.debugging.models import (
    IncidentSplit,
    ListedIncidents,
    ListedOutcomes,
    ListedSolutions,
    RecommendationStatistics,
    RecordChanged,
    RecordDetails,
    RecordPurged,
)
from stratagem.debugging.record_changes import RecordChange
from stratagem.debugging.record_details import details_of, list_item
from stratagem.debugging.record_lists import ListFilter, ListPage, page_cursor, read_page_cursor
from stratagem.debugging.records import IncidentRecords
from stratagem.debugging.service import Debugging, Steps
from stratagem.debugging.statistics import statistics
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import moments, values
from stratagem.engine.lineage import OPEN_END
from stratagem.errors import (
    MissingRequired,
)
from stratagem.parameters import AsOf, BranchName, Param, RequestId
from stratagem.storage.contract import Transaction

__all__ = ["CuratedDebugging"]

Content = dict[str, Any]

Text = Annotated[str | None, Param("Only those with this text, whatever its case")]
Tag = Annotated[str | None, Param("Only incidents with this tag, and what belongs to them")]
EnvironmentPart = Annotated[
    str | None, Param("Only in environments with these parts: windows, linux|py3")
]
Since = Annotated[
    str | int | None, Param("Only what was added since: 30 days ago, yesterday, 2026-03-01")
]
Until = Annotated[str | int | None, Param("Only what was added until then")]
Limit = Annotated[int, Param("Results", ge=1, le=limits.RECORDS_LISTED_MAX)]
ListCursor = Annotated[str | None, Param("`next` of the last answer")]
RecordId = Annotated[str, Param("An incident, a solution or an outcome")]
OfIncident = Annotated[str | None, Param("Only those of this incident")]
Evidence = Annotated[
    Literal["keep", "reset"] | None,
    Param(
        "Whether earlier outcomes still count when steps change; by default those of steps "
        "with the same words do"
    ),
]


Listed = TypeVar("Listed", ListedIncidents, ListedSolutions, ListedOutcomes)


class _PageRequest(NamedTuple):
    """Which list is read, where, and from where on."""

    listed: str
    branch: str | None
    as_of: str | int | None
    cursor: str | None
    limit: int


class CuratedDebugging(Debugging):
    """Debugging, with the operations that maintain its records."""

    def list_incidents(
        self,
        text: Text = None,
        *,
        tag: Tag = None,
        environment: EnvironmentPart = None,
        since: Since = None,
        until: Until = None,
        standing: Annotated[
            Literal["open", "solved", "retired", "merged"] | None,
            Param("Only those with this standing"),
        ] = None,
        limit: Limit = limits.RECORDS_LISTED_DEFAULT,
        cursor: ListCursor = None,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> ListedIncidents:
        """List incidents, those that were changed last first."""
        wanted = self._filter(text, tag, environment, since, until, standing=standing)
        page = _PageRequest("incidents", branch, as_of, cursor, limit)
        return self._list(ListedIncidents, record_lists.find_incidents, wanted, page)

    def list_solutions(
        self,
        text: Text = None,
        *,
        incident_id: OfIncident = None,
        tag: Tag = None,
        environment: EnvironmentPart = None,
        since: Since = None,
        until: Until = None,
        standing: Annotated[
            Literal["working", "failing", "untested", "retired", "merged"] | None,
            Param("Only those with this standing"),
        ] = None,
        limit: Limit = limits.RECORDS_LISTED_DEFAULT,
        cursor: ListCursor = None,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> ListedSolutions:
        """List fixes, those that were changed last first."""
        wanted = self._filter(
            text, tag, environment, since, until, standing=standing, incident_id=incident_id
        )
        page = _PageRequest("solutions", branch, as_of, cursor, limit)
        return self._list(ListedSolutions, record_lists.find_solutions, wanted, page)

    def list_outcomes(
        self,
        text: Text = None,
        *,
        incident_id: OfIncident = None,
        solution_id: Annotated[str | None, Param("Only those of this solution")] = None,
        worked: Annotated[bool | None, Param("Only successes, or only failures")] = None,
        tag: Tag = None,
        environment: EnvironmentPart = None,
        since: Since = None,
        until: Until = None,
        standing: Annotated[
            Literal["counted", "claim", "repeated", "reset", "retired"] | None,
            Param("Only those with this standing"),
        ] = None,
        limit: Limit = limits.RECORDS_LISTED_DEFAULT,
        cursor: ListCursor = None,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> ListedOutcomes:
        """List outcomes, those that were written last first."""
        wanted = self._filter(
            text,
            tag,
            environment,
            since,
            until,
            standing=standing,
            incident_id=incident_id,
            solution_id=solution_id,
            worked=worked,
        )
        page = _PageRequest("outcomes", branch, as_of, cursor, limit)
        return self._list(ListedOutcomes, record_lists.find_outcomes, wanted, page)

    def show_record(
        self,
        record_id: RecordId,
        *,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> RecordDetails:
        """Show an incident, a fix or an outcome with what belongs to it, and what was done to it.

        An id that was merged away shows its replacement.
        """
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            records = IncidentRecords(reader, view, snapshot=True)
            asked = find_record(records, record_id)
            shown = find_record(records, resolve(records, asked))
            details = details_of(records, shown)
        if shown.id != asked.id:
            details.note = "What you named was merged into this, which is shown instead."
        return details

    def edit_incident(
        self,
        incident_id: Annotated[str, Param("The incident to edit", quiet=True)],
        *,
        title: Annotated[str | None, Param("What went wrong, in a line")] = None,
        summary: Annotated[str | None, Param('More about the problem; "" removes it')] = None,
        tags: Annotated[Sequence[str] | None, Param("All labels that it should have")] = None,
        error_signature: Annotated[
            str | None, Param('Error text or stack trace; "" removes it')
        ] = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> RecordChanged:
        """Change the words of an incident: a new version, and the old one stays in its history."""
        given = {
            "title": title,
            "summary": summary,
            "tags": tags,
            "error_signature": error_signature,
        }
        _require_some(given)
        kept = self._incident_content(
            "unchanged" if title is None else title, error_signature, summary, tags, None
        )

        def work(records: IncidentRecords) -> RecordChange:
            found = require_kind(records, incident_id, kinds.INCIDENT)
            refuse_merged(records, found)
            return RecordChange(
                found,
                kinds.INCIDENT_EDITED,
                record_changes.edit_incident(found.content, kept, given),
            )

        return self._change(
            "edit_incident", work, {"incident_id": incident_id, **given}, branch, request_id
        )

    def edit_solution(
        self,
        solution_id: Annotated[str, Param("The solution to edit", quiet=True)],
        steps: Steps,
        *,
        evidence: Evidence = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> RecordChanged:
        """Change the steps of a fix: a new version, with or without the old evidence."""
        listed = self._mask_steps(checks.steps(steps))

        def work(records: IncidentRecords) -> RecordChange:
            found = require_kind(records, solution_id, kinds.SOLUTION)
            refuse_merged(records, found)
            return record_changes.edit_steps(records, found, listed, evidence)

        given = {"solution_id": solution_id, "steps": listed, "evidence": evidence}
        return self._change("edit_solution", work, given, branch, request_id)

    def retire_record(
        self,
        record_id: RecordId,
        reason: Annotated[str, Param("Why it should no longer be used")],
        *,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> RecordChanged:
        """Withdraw an incident or a fix from recommendations, or an outcome from the evidence.

        It stays in lists and in history, and can be restored. Fixes of the incident with the same
        steps are the same fix, and are retired with it.
        """
        said = self._mask(checks.line(reason, "reason", limits.TITLE_CHARS_MAX))

        def work(records: IncidentRecords) -> RecordChange:
            return record_changes.retire(records, find_record(records, record_id), said)

        given = {"record_id": record_id, "reason": said}
        return self._change("retire_record", work, given, branch, request_id)

    def restore_record(
        self,
        record_id: RecordId,
        *,
        version: Annotated[
            int | None, Param("Restore this version (show_record lists them)")
        ] = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> RecordChanged:
        """Undo: of what was retired, merged away or split off, or of edits since a version."""

        def work(records: IncidentRecords) -> RecordChange:
            found = find_record(records, record_id)
            if version is not None:
                return record_changes.restore_version(records, found, version)
            return record_changes.restore(records, found)

        given = {"record_id": record_id, "version": version}
        return self._change("restore_record", work, given, branch, request_id)

    def merge_records(
        self,
        record_id: Annotated[str, Param("The duplicate: an incident or a solution")],
        into: Annotated[str, Param("The one that stays, of the same kind")],
        *,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> RecordChanged:
        """Merge a duplicate into another incident or solution; each outcome still counts once.

        The duplicate points to its replacement from then on, and its id still works.
        """

        def work(records: IncidentRecords) -> RecordChange:
            return record_changes.merge(
                records, find_record(records, record_id), find_record(records, into, field="into")
            )

        given = {"record_id": record_id, "into": into}
        return self._change("merge_records", work, given, branch, request_id)

    def split_incident(
        self,
        incident_id: Annotated[str, Param("The incident that holds two problems", quiet=True)],
        title: Annotated[str, Param("What the new incident is called", quiet=True)],
        *,
        solutions: Annotated[
            Sequence[str] | None, Param("Solutions that belong to the new one, with their outcomes")
        ] = None,
        outcomes: Annotated[
            Sequence[str] | None,
            Param("Outcomes that belong to it; their fixes are then in both"),
        ] = None,
        error_signature: Annotated[
            str | None, Param("The new one's error; if it was the old one's, it moves")
        ] = None,
        summary: Annotated[str | None, Param("More about the problem", quiet=True)] = None,
        tags: Annotated[Sequence[str] | None, Param("Labels", quiet=True)] = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> IncidentSplit:
        """Take solutions, outcomes or the error of an incident out into a new incident."""
        kept = self._incident_content(title, error_signature, summary, tags, None)
        name = branch or self._caller.branch
        taken = {"solutions": list(solutions or ()), "outcomes": list(outcomes or ())}

        def work(transaction: Transaction) -> dict[str, Any]:
            view = self._views.view(transaction, name)
            return IncidentSplitter(transaction, view, incident_id, kept).run(**taken)

        answer = self._write(
            work,
            request_id,
            "split_incident",
            {"incident_id": incident_id, **kept, **taken, "branch": name},
        )
        return IncidentSplit(**answer)

    def purge_record(
        self,
        record_id: RecordId,
        *,
        confirm: Annotated[
            bool, Param("true: erase it; otherwise only show what would be erased")
        ] = False,
    ) -> RecordPurged:
        """Erase an incident, a fix or an outcome for good, with all that belongs to it.

        It goes from the log, every branch, every past moment and the index. An incident goes with
        its solutions, a solution with its outcomes.
        """
        values.check_text(record_id, field="record_id", chars_max=limits.KEY_CHARS_MAX)
        return erasure.purge(self._foundation, self._caller, record_id, confirmed=confirm)

    def statistics(
        self,
        *,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> RecommendationStatistics:
        """Return how well recommendations did: promised, happened, and what needs attention."""
        with self._store.snapshot() as reader:
            return statistics(
                reader, self._views.view(reader, branch or self._caller.branch, as_of)
            )

    def _filter(
        self,
        text: str | None,
        tag: str | None,
        environment: str | None,
        since: str | int | None,
        until: str | int | None,
        **more: Any,
    ) -> ListFilter:
        return ListFilter(
            text=text,
            tag=tag,
            environment=environment or None,
            since=self._time(since, "since"),
            until=self._time(until, "until"),
            **more,
        )

    def _time(self, expression: str | int | None, field: str) -> int | None:
        """Return the time that words stand for."""
        if expression is None:
            return None
        now = self._store.now()
        moment = moments.parse(expression, now=now, zone=self._views.zone, field=field)
        if isinstance(moment, moments.AtTime):
            return moment.at
        if isinstance(moment, moments.Latest):
            return now
        return self._store.reader().log.wall_of(moment.sequence) or now

    def _list(
        self,
        answer: type[Listed],
        find: Callable[..., ListPage[Any]],
        wanted: ListFilter,
        asked: _PageRequest,
    ) -> Listed:
        """Return a page of a list, as the log was up to the sequence that its first page showed."""
        as_of, before = asked.as_of, OPEN_END
        with self._store.snapshot() as reader:
            head = reader.log.head().sequence
            if asked.cursor is not None:
                upto, before = read_page_cursor(asked.listed, asked.cursor)
                as_of = f"@{min(upto, head)}"
            view = self._views.view(reader, asked.branch or self._caller.branch, as_of)
            records = IncidentRecords(reader, view, snapshot=True)
            page = find(records, wanted, before=before, limit=asked.limit)
        upto = min(view.limit, head)
        following = page_cursor(asked.listed, upto, page.before) if page.before else None
        return answer(
            page.results,
            f"@{upto}",
            truncated=True if following else None,
            next=following,
            note=_note_on_scan(page, following) if following and not page.results else None,
        )

    def _change(
        self,
        operation: str,
        work: Callable[[IncidentRecords], RecordChange],
        given: Mapping[str, Any],
        branch: str | None,
        request_id: str | None,
    ) -> RecordChanged:
        """Write the new versions of a change, and report the result."""
        name = branch or self._caller.branch

        def write(transaction: Transaction) -> dict[str, Any]:
            view = self._views.view(transaction, name)
            change = work(IncidentRecords(transaction, view))
            version = change.found.hit.sequence
            if change.drafts:
                version = transaction.append(view.branch, change.drafts)[0].sequence
            return {
                "kind": change.found.kind,
                "id": change.found.id,
                "did": change.did,
                "version": version,
                "also": change.also or None,
                "evidence": change.evidence,
                "note": change.note
                if change.drafts
                else "Nothing changed: it was already in this state.",
            }

        answer = self._write(write, request_id, operation, {**given, "branch": name})
        return self._describe_change(answer, name)

    def _describe_change(self, answer: Mapping[str, Any], branch: str) -> RecordChanged:
        with self._store.snapshot() as reader:
            records = IncidentRecords(reader, self._views.view(reader, branch), snapshot=True)
            found = find_record(records, answer["id"])
            item: Any = list_item(records, found)
        return RecordChanged(
            **answer,
            standing=item.standing,
            merged_into=getattr(item, "merged_into", None),
        )


def _note_on_scan(page: ListPage[Any], following: str) -> str:
    return (
        f"{page.scanned:,} records were searched; call again with cursor={following!r} to continue."
    )


def _require_some(given: Mapping[str, object]) -> None:
    if all(value is None for value in given.values()):
        raise MissingRequired(
            f"There is nothing to change: give {', '.join(list(given)[:-1])} or {list(given)[-1]}.",
            field=next(iter(given)),
        )
