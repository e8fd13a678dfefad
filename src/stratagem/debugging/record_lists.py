"""Lists of incidents, solutions and outcomes, for those who look after them.

A list goes from what was written last to what was written first, and only as far as it is asked
for. A page continues exactly where the one before it ended: its cursor names the last version that
was looked at, and the state of the log that the first page showed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import orjson

from stratagem.answers import read_cursor
from stratagem.debugging import kinds
from stratagem.debugging.models import ListedIncident, ListedOutcome, ListedSolution
from stratagem.debugging.ranking import Outcome, Solution
from stratagem.debugging.records import IncidentRecords, environment_of, solution_of
from stratagem.debugging.signatures import headline
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import moments
from stratagem.engine.lineage import OPEN_END
from stratagem.storage.contract import EventContent
from stratagem.storage.list_cursors import ListAnchor, cursor_at, list_check, read_list_cursor

__all__ = [
    "ListFilter",
    "ListPage",
    "find_incidents",
    "find_outcomes",
    "find_solutions",
    "incident_item",
    "outcome_item",
    "page_cursor",
    "read_page_cursor",
    "solution_item",
]

T = TypeVar("T")
Content = Mapping[str, Any]

_BATCH: Final = 200
# So many records are looked at for one page: where few fit, the rest is for the next call.
_SCANNED_MAX: Final = 5_000
_ERROR_CHARS: Final = 200
_SUMMARY_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class ListFilter:
    """The filter of a list; None where a field does not matter.

    `text` is searched for in the texts of a record, in any case; `environment` are parts of a
    bucket, as `windows` or `linux|py3`; times are in microseconds.
    """

    text: str | None = None
    tag: str | None = None
    environment: str | None = None
    since: int | None = None
    until: int | None = None
    standing: str | None = None
    incident_id: str | None = None
    solution_id: str | None = None
    worked: bool | None = None

    def has_text(self, *texts: str | None) -> bool:
        """Whether any of some texts has in it what is looked for."""
        wanted = (self.text or "").casefold()
        return any(wanted in (text or "").casefold() for text in texts)

    def is_in_time(self, at: int) -> bool:
        """Whether something happened within the time that is asked about."""
        return (self.since is None or at >= self.since) and (self.until is None or at <= self.until)

    def is_in_environment(self, buckets: Iterator[str] | Sequence[str]) -> bool:
        """Whether any of some buckets has all parts that are asked for."""
        if self.environment is None:
            return True
        wanted = [part.strip().casefold() for part in self.environment.split("|")]
        return any(
            all(any(part.startswith(each) for part in bucket.split("|")) for each in wanted)
            for bucket in buckets
        )


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """Some of a list; `before` is the last version that was looked at, if there may be more."""

    results: list[T]
    before: int | None
    scanned: int


def page_cursor(listed: str, upto: int, before: int) -> str:
    """Return the cursor of the page that goes on before a version; `listed` names the list."""
    # Nothing here expires, so the time of the sequence will do.
    return cursor_at(ListAnchor(upto, 0, list_check(listed)).text, before)


def read_page_cursor(listed: str, cursor: str) -> tuple[int, int]:
    """Return up to which sequence a list shows the log, and before which version it goes on.

    Raises:
        ValidationFailed: No answer of this list has given it.
    """
    anchor, before = read_list_cursor(cursor, list_check(listed))
    return anchor.sequence, read_cursor(before, least=1, most=OPEN_END)


def find_incidents(
    records: IncidentRecords, wanted: ListFilter, *, before: int, limit: int
) -> ListPage[ListedIncident]:
    """Return a page of the incidents that fit."""

    def fit(hit: EventContent) -> ListedIncident | None:
        content = orjson.loads(hit.payload)
        texts = (content["title"], content.get("summary"), content.get("error_signature"))
        if not (
            wanted.has_text(*texts, content["incident_id"])
            and wanted.is_in_time(content.get("at", hit.at))
            and (wanted.tag is None or wanted.tag in content.get("tags", ()))
            and _may_stand(wanted.standing, content)
        ):
            return None
        item = incident_item(records, hit)
        fits = wanted.standing in {None, item.standing} and wanted.is_in_environment(
            item.environments
        )
        return item if fits else None

    return _page(records, kinds.INCIDENT, fit, before=before, limit=limit)


def find_solutions(
    records: IncidentRecords, wanted: ListFilter, *, before: int, limit: int
) -> ListPage[ListedSolution]:
    """Return a page of the solutions that fit."""
    incident = wanted.incident_id and records.resolve_incident(wanted.incident_id)

    def fit(hit: EventContent) -> ListedSolution | None:
        content = orjson.loads(hit.payload)
        if not (
            wanted.has_text(*content["steps"], content["solution_id"])
            and wanted.is_in_time(content.get("at", hit.at))
            and wanted.is_in_environment([environment_of(content).bucket])
            and _may_stand(wanted.standing, content)
            and (incident is None or records.resolve_incident(content["incident_id"]) == incident)
            and _has_tag(records, content, wanted.tag)
        ):
            return None
        item = solution_item(records, hit)
        return item if wanted.standing in {None, item.standing} else None

    return _page(records, kinds.SOLUTION, fit, before=before, limit=limit)


def find_outcomes(
    records: IncidentRecords, wanted: ListFilter, *, before: int, limit: int
) -> ListPage[ListedOutcome]:
    """Return a page of the outcomes that fit."""
    incident = wanted.incident_id and records.resolve_incident(wanted.incident_id)
    solution = wanted.solution_id and records.resolve_solution(wanted.solution_id)

    def fit(hit: EventContent) -> ListedOutcome | None:
        content = orjson.loads(hit.payload)
        if not (
            wanted.has_text(content.get("notes"), content["outcome_id"])
            and wanted.is_in_time(content.get("at", hit.at))
            and wanted.is_in_environment([environment_of(content).bucket])
            and wanted.worked in {None, content["worked"]}
        ):
            return None
        item = outcome_item(records, hit)
        fits = (
            wanted.standing in {None, item.standing}
            and incident in {None, item.incident_id}
            and solution in {None, item.solution_id}
            and _has_tag(records, {"incident_id": item.incident_id}, wanted.tag)
        )
        return item if fits else None

    return _page(records, kinds.OUTCOME, fit, before=before, limit=limit)


def incident_item(records: IncidentRecords, hit: EventContent) -> ListedIncident:
    """Return an incident as lists show it."""
    content = orjson.loads(hit.payload)
    incident_id = content["incident_id"]
    stands = records.resolve_incident(incident_id)
    merged = stands != incident_id
    solutions = [] if merged else records.solutions(incident_id)
    outcomes = records.outcomes(solutions)
    worked = sum(each.worked for each in outcomes)
    standing = _fate(content, merged=merged) or ("solved" if worked else "open")
    buckets = {each.environment.bucket for each in solutions}
    buckets |= {each.environment.bucket for each in outcomes}
    return ListedIncident(
        incident_id=incident_id,
        title=content["title"],
        standing=standing,
        solutions=len({each.steps_key for each in solutions}),
        worked=worked,
        failed=len(outcomes) - worked,
        environments=sorted(buckets),
        tags=list(content.get("tags", ())),
        added=moments.iso(content.get("at", hit.at)),
        changed=moments.iso(hit.at),
        version=hit.sequence,
        summary=(content.get("summary") or "")[:_SUMMARY_CHARS] or None,
        error=headline(content.get("error_signature") or "")[:_ERROR_CHARS] or None,
        merged_into=stands if merged else None,
        split_from=content.get("split_from"),
        retired=_retirement(content),
    )


def solution_item(records: IncidentRecords, hit: EventContent) -> ListedSolution:
    """Return a solution as lists show it."""
    content = orjson.loads(hit.payload)
    solution = solution_of(content, hit.sequence)
    stands = records.resolve_solution(solution.solution_id)
    merged = stands != solution.solution_id
    incident_id = records.resolve_incident(solution.incident_id)
    outcomes = [] if merged else records.outcomes([solution])
    worked = sum(each.worked for each in outcomes)
    return ListedSolution(
        solution_id=solution.solution_id,
        incident_id=incident_id,
        incident_title=records.content(kinds.INCIDENTS, incident_id).get("title", ""),
        standing=_fate(content, merged=merged) or _last_result(outcomes),
        steps=list(solution.steps),
        worked=worked,
        failed=len(outcomes) - worked,
        env_bucket=solution.environment.bucket,
        added=moments.iso(content.get("at", hit.at)),
        changed=moments.iso(hit.at),
        version=hit.sequence,
        merged_into=stands if merged else None,
        retired=_retirement(content),
    )


def outcome_item(records: IncidentRecords, hit: EventContent) -> ListedOutcome:
    """Return an outcome as lists show it."""
    content = orjson.loads(hit.payload)
    amendment = records.content(kinds.AMENDMENTS, content["outcome_id"])
    own = amendment.get("moved_to", content["solution_id"])
    stands = records.resolve_solution(own)
    solution = _find_solution(records, stands)
    incident_id = solution.incident_id if solution else content["incident_id"]
    return ListedOutcome(
        outcome_id=content["outcome_id"],
        solution_id=stands,
        incident_id=records.resolve_incident(incident_id),
        worked=content["worked"],
        standing=_outcome_standing(records, content, amendment, solution, hit.sequence),
        env_bucket=environment_of(content).bucket,
        at=moments.iso(content.get("at", hit.at)),
        version=hit.sequence,
        notes=content.get("notes"),
        lookup_id=content.get("lookup_id"),
        retired=_retirement(amendment),
    )


def _outcome_standing(
    records: IncidentRecords,
    content: Content,
    amendment: Content,
    solution: Solution | None,
    sequence: int,
) -> str:
    if "retired" in amendment:
        return "retired"
    counted = {each.sequence for each in records.outcomes([solution])} if solution else set()
    if sequence in counted:
        return "claim" if content.get("claim") else "counted"
    own = _find_solution(records, amendment.get("moved_to", content["solution_id"]))
    revision = content.get("revision", "")
    return "reset" if own is not None and revision not in own.revisions else "repeated"


def _find_solution(records: IncidentRecords, solution_id: str) -> Solution | None:
    version = records.current(kinds.SOLUTIONS, solution_id)
    if version is None:
        return None
    return solution_of(orjson.loads(version.payload or b""), version.sequence)


def _page(
    records: IncidentRecords,
    kind: str,
    fit: Callable[[EventContent], T | None],
    *,
    before: int,
    limit: int,
) -> ListPage[T]:
    """Read from the newest on until enough fit, or enough were looked at."""
    found: list[T] = []
    scanned, last = 0, before
    while True:
        sequences = records.reader.catalogue.with_facet(
            records.view, kinds.facet_listed(kind), limit=_BATCH, before=last
        )
        hits = records.reader.log.contents(sequences)
        for sequence in reversed(sequences):
            if len(found) == limit or scanned == _SCANNED_MAX:
                return ListPage(found, last, scanned)
            item = fit(hits[sequence])
            if item is not None:
                found.append(item)
            scanned, last = scanned + 1, sequence
        if len(sequences) < _BATCH:
            return ListPage(found, None, scanned)


def _may_stand(standing: str | None, content: Content) -> bool:
    """Whether a record can have a standing, as far as its own content tells."""
    if standing == "retired":
        return "retired" in content
    return standing != "merged" or "merged_into" in content


def _fate(content: Content, *, merged: bool) -> str | None:
    if merged:
        return "merged"
    return "retired" if "retired" in content else None


def _last_result(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return "untested"
    last = max(outcomes, key=lambda each: (each.at, each.sequence))
    return "working" if last.worked else "failing"


def _has_tag(records: IncidentRecords, content: Content, tag: str | None) -> bool:
    if tag is None:
        return True
    incident_id = records.resolve_incident(content["incident_id"])
    return tag in records.content(kinds.INCIDENTS, incident_id).get("tags", ())


def _retirement(content: Content) -> dict[str, Any] | None:
    retired = content.get("retired")
    if retired is None:
        return None
    return {"reason": retired["reason"], "at": moments.iso(retired["at"])}
