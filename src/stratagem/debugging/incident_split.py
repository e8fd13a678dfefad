"""Taking part of an incident out into a new one."""

from __future__ import annotations

from typing import Any

from stratagem.debugging import kinds
from stratagem.debugging.drafts import new_id
from stratagem.debugging.found_records import (
    Content,
    amendment_of,
    find_record,
    refuse_merged,
    require_kind,
)
from stratagem.debugging.ranking import Solution
from stratagem.debugging.record_changes import UNSIGNED
from stratagem.debugging.records import IncidentRecords
from stratagem.engine.events import Draft
from stratagem.engine.lineage import View
from stratagem.errors import MissingRequired, ValidationFailed
from stratagem.storage.contract import Transaction

__all__ = ["IncidentSplitter"]


class IncidentSplitter:
    """Takes part of an incident out into a new one, in one transaction."""

    def __init__(
        self, transaction: Transaction, view: View, incident_id: str, kept: Content
    ) -> None:
        self._transaction = transaction
        self._view = view
        self._records = IncidentRecords(transaction, view)
        self._old = require_kind(self._records, incident_id, kinds.INCIDENT)
        refuse_merged(self._records, self._old)
        self._kept = kept
        self._id = new_id("inc", transaction)
        self._drafts: list[Draft] = []

    def run(self, *, solutions: list[str], outcomes: list[str]) -> dict[str, Any]:
        """Write the new incident and what moves to it; return the answer."""
        takes_error = self._takes_error()
        if not (solutions or outcomes or takes_error):
            raise MissingRequired(
                "There is nothing to split off: give solutions, outcomes or the error signature.",
                field="solutions",
            )
        self._write_incidents(takes_error=takes_error)
        for solution_id in dict.fromkeys(solutions):
            self._move_solution(solution_id)
        self._move_outcomes(list(dict.fromkeys(outcomes)), set(solutions))
        self._transaction.append(self._view.branch, self._drafts)
        notes = ["The old incident no longer has this error signature."] if takes_error else []
        notes.append("Restoring the new one undoes the split.")
        return {
            "incident_id": self._id,
            "split_from": self._old.id,
            "solutions": [str(each.key) for each in self._drafts if each.space == kinds.SOLUTIONS],
            "outcomes": list(dict.fromkeys(outcomes)),
            "note": " ".join(notes),
        }

    def _takes_error(self) -> bool:
        own = self._kept.get("fingerprint")
        return own is not None and own == self._old.content.get("fingerprint")

    def _write_incidents(self, *, takes_error: bool) -> None:
        content = {
            "incident_id": self._id,
            "at": self._transaction.wall,
            **self._kept,
            "split_from": self._old.id,
        }
        self._drafts.append(Draft(kinds.INCIDENT_ADDED, content, kinds.INCIDENTS, self._id))
        if takes_error:
            old = {name: each for name, each in self._old.content.items() if name in UNSIGNED}
            self._drafts.append(Draft(kinds.INCIDENT_EDITED, old, kinds.INCIDENTS, self._old.id))

    def _move_solution(self, solution_id: str) -> None:
        found = require_kind(self._records, solution_id, kinds.SOLUTION)
        self._require_own(found.content["incident_id"], "solutions", solution_id)
        # Where it goes it stands for itself, whatever it was merged into here.
        content = {name: each for name, each in found.content.items() if name != "merged_into"}
        content["incident_id"] = self._id
        self._drafts.append(Draft(kinds.SOLUTION_MOVED, content, kinds.SOLUTIONS, solution_id))

    def _move_outcomes(self, outcomes: list[str], moved: set[str]) -> None:
        copies: dict[str, str] = {}
        for outcome_id in outcomes:
            found = find_record(self._records, outcome_id, field="outcomes")
            if found.kind != kinds.OUTCOME:
                raise ValidationFailed(
                    f"{outcome_id!r} is not an outcome; it is of the kind {found.kind}.",
                    field="outcomes",
                )
            amendment = amendment_of(self._records, found)
            owner = self._records.resolve_solution(
                amendment.get("moved_to") or amendment["solution_id"]
            )
            solution = self._records.solution(owner)
            self._require_own(solution.incident_id, "outcomes", outcome_id)
            if owner in moved:
                continue
            if owner not in copies:
                copies[owner] = self._copy_solution(solution, len(copies))
            self._drafts.append(
                Draft(
                    kinds.OUTCOME_AMENDED,
                    {**amendment, "moved_to": copies[owner]},
                    kinds.AMENDMENTS,
                    outcome_id,
                )
            )

    def _copy_solution(self, solution: Solution, number: int) -> str:
        """Add the fix that some outcomes belong to to the new incident as well."""
        copy_id = new_id(f"sol{number}", self._transaction).replace(f"sol{number}_", "sol_", 1)
        old = self._records.content(kinds.SOLUTIONS, solution.solution_id)
        content = {
            **{name: each for name, each in old.items() if name != "lookup_id"},
            "solution_id": copy_id,
            "incident_id": self._id,
            "at": self._transaction.wall,
        }
        self._drafts.append(Draft(kinds.SOLUTION_ADDED, content, kinds.SOLUTIONS, copy_id))
        return copy_id

    def _require_own(self, incident_id: str, field: str, record_id: str) -> None:
        if self._records.resolve_incident(incident_id) != self._old.id:
            raise ValidationFailed(
                f"{record_id!r} does not belong to {self._old.id!r}.",
                field=field,
                hint=f"It belongs to {self._records.resolve_incident(incident_id)}.",
            )
