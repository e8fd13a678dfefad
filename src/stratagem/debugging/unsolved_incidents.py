"""Incidents without a fix, recorded so that somebody looks at them."""

from __future__ import annotations

from collections.abc import Sequence

from stratagem import limits
from stratagem.debugging import kinds
from stratagem.debugging.drafts import new_id
from stratagem.debugging.retrieval import Problem, find_exact
from stratagem.debugging.signatures import kept_headlines, signature_fields
from stratagem.engine.events import Draft
from stratagem.operation import Caller
from stratagem.redaction import mask
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction

__all__ = ["draft_incident"]


def draft_incident(
    foundation: Foundation,
    caller: Caller,
    *,
    title: str,
    error_signature: str,
    tags: Sequence[str] = (),
) -> str | None:
    """Add an incident without a solution; return its id, or None where its error is known."""
    signature = mask(error_signature, foundation.redaction)[: limits.SIGNATURE_CHARS_MAX]
    signed = signature_fields(signature, signature)
    problem = Problem(signature, title, signed["fingerprint"], kept_headlines(signed))

    def work(transaction: Transaction) -> str | None:
        view = foundation.views.view(transaction, caller.branch)
        if find_exact(transaction, view, problem):
            return None
        # What somebody has retired must not come back by itself.
        retired = kinds.facet_retired_signature(problem.fingerprint)
        if problem.fingerprint and transaction.catalogue.with_facet(view, retired, limit=1):
            return None
        incident_id = new_id("inc", transaction)
        content = {
            "incident_id": incident_id,
            "at": transaction.wall,
            "title": mask(title, foundation.redaction)[: limits.TITLE_CHARS_MAX],
            "error_signature": signature,
            **signed,
            "tags": list(tags),
        }
        draft = Draft(kinds.INCIDENT_ADDED, content, kinds.INCIDENTS, incident_id)
        transaction.append(view.branch, [draft])
        return incident_id

    return foundation.write(caller, work)
