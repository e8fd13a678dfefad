"""Incidents without a fix, recorded so that somebody looks at them."""

from __future__ import annotations

from collections.abc import Sequence

from stratagem import limits
from stratagem.debugging import kinds
from stratagem.debugging.drafts import new_id
from stratagem.debugging.signatures import VERSION, fingerprint
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
    """Add an incident without a solution; return its id, or None where its signature is known."""
    signature = mask(error_signature, foundation.redaction)[: limits.SIGNATURE_CHARS_MAX]
    print_of = fingerprint(signature)

    def work(transaction: Transaction) -> str | None:
        view = foundation.views.view(transaction, caller.branch)
        # What somebody has retired must not come back by itself.
        for facet in (kinds.facet_signature, kinds.facet_retired_signature):
            if print_of and transaction.catalogue.with_facet(view, facet(print_of), limit=1):
                return None
        incident_id = new_id("inc", transaction)
        content = {
            "incident_id": incident_id,
            "at": transaction.wall,
            "title": mask(title, foundation.redaction)[: limits.TITLE_CHARS_MAX],
            "error_signature": signature,
            "fingerprint": print_of,
            "signature_version": VERSION,
            "tags": list(tags),
        }
        draft = Draft(kinds.INCIDENT_ADDED, content, kinds.INCIDENTS, incident_id)
        transaction.append(view.branch, [draft])
        return incident_id

    return foundation.write(caller, work)
