"""Writing the hooks' spool into the log, before anybody reads.

A batch of the spool is one transaction, with the batch's name as its idempotency key. Outcomes of
fixes in a batch are recorded afterwards, each under a key of its own, so that a repeat counts once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from stratagem.capture.kinds import DRAFT_KEPT, DRAFTS
from stratagem.capture.spool_files import Spool
from stratagem.debugging.automation import lookup_draft
from stratagem.debugging.service import Debugging
from stratagem.engine.events import Draft
from stratagem.errors import BranchExists, InvalidInput, StratagemError, ValidationFailed
from stratagem.memory.kinds import EVENT_LOGGED, TRUST, UNTRUSTED, logged_events
from stratagem.memory.service import Memory
from stratagem.operation import Caller
from stratagem.projects import is_address, tracked_files
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction
from stratagem.storage.views import find_branch

__all__ = ["CAPTURED_TAG", "take_spooled"]

logger = logging.getLogger(__name__)

ACTOR: Final = "hook"
CAPTURED_TAG: Final = "captured"
# Whoever wrote such a text may have written an instruction into it.
_UNTRUSTED_SOURCES: Final = frozenset({"tool", "web"})
# What is wrong with an item itself, and not with the place that it is written to.
_UNWRITABLE: Final = (ValidationFailed, InvalidInput, TypeError, ValueError, LookupError)


def take_spooled(foundation: Foundation, database: str) -> int:
    """Write what waits in the spool of a database; return how many things were written.

    What cannot be written now stays where it is.
    """
    spool = Spool(database)
    if spool.is_empty() or foundation.store.read_only:
        return 0
    if not is_address(database) and tracked_files(f"{database}-hooks"):
        # No hook of this user's left it: whoever wrote the repository would be taken for the user.
        logger.warning("The spool of %s is part of a repository, so it is not read.", database)
        return 0
    taken = 0
    with spool.batches() as batches:
        for name, items in batches:
            taken += _write_what_can_be(foundation, spool, name, items)
            spool.remove(name)
    return taken


def _write_what_can_be(
    foundation: Foundation, spool: Spool, name: str, items: Sequence[Mapping[str, Any]]
) -> int:
    """Write a batch; an item in it that can never be written is set aside.

    Otherwise one invalid text would block everything behind it for ever.
    """
    try:
        _write_batch(foundation, name, items)
    except _UNWRITABLE as error:
        if len(items) > 1:
            # Each under a name of its own: what was written before a crash is recognised.
            return sum(
                _write_what_can_be(foundation, spool, f"{name}-{place}", [item])
                for place, item in enumerate(items)
            )
        logger.warning("A hook's record cannot be written and is skipped: %r", error)
        for item in items:
            spool.set_aside(name, item)
        return 0
    return len(items)


def _write_batch(foundation: Foundation, name: str, items: Sequence[Mapping[str, Any]]) -> None:
    caller = Caller(ACTOR, can_switch=False)
    for branch in dict.fromkeys(item.get("branch") or "default" for item in items):
        _make_branch(foundation, caller, branch)
    written = [item for item in items if item.get("do") != "outcome"]

    def work(transaction: Transaction) -> int:
        for item in written:
            branch = find_branch(transaction.branches, item.get("branch") or "default")
            transaction.append(branch, [_draft_of(transaction, item)])
        return len(written)

    foundation.write(caller, work, request_id=name, operation="capture")
    for item in items:
        if item.get("do") == "outcome":
            _record_outcome(foundation, caller, item)


def _make_branch(foundation: Foundation, caller: Caller, branch: str) -> None:
    """Fork the branch of a git branch at the first write on it."""
    if foundation.store.reader().branches.by_name(branch) is None:
        with suppress(BranchExists):
            Memory(foundation, caller).fork(branch, branch="default")


def _draft_of(transaction: Transaction, item: Mapping[str, Any]) -> Draft:
    if item["do"] == "lookup":
        return lookup_draft(transaction, item)
    if item["do"] == "draft":
        content = {**item["incident"], "draft_id": item["draft_id"], "at": transaction.wall}
        return Draft(DRAFT_KEPT, content, DRAFTS, item["draft_id"])
    content = {
        "event": item["event"],
        "data": item["data"],
        "tags": [CAPTURED_TAG],
        "session": item["key"],
        "source": item["source"],
        "capture": item["id"],
    }
    if item["source"] in _UNTRUSTED_SOURCES:
        content[TRUST] = UNTRUSTED
    return Draft(EVENT_LOGGED, content, logged_events(item.get("namespace") or "default"))


def _record_outcome(foundation: Foundation, caller: Caller, item: Mapping[str, Any]) -> None:
    on_branch = replace(caller, branch=item.get("branch") or "default")
    try:
        Debugging(foundation, on_branch, asked_by=ACTOR).record_outcome(
            item["solution_id"],
            item["worked"],
            "auto",
            lookup_id=item.get("lookup_id"),
            notes=item.get("notes"),
            request_id=item["id"],
        )
    except StratagemError as error:
        if error.retryable:
            raise
        # The fix may have been purged since it was shown.
        logger.warning("An outcome was not recorded: %s", error.message)
