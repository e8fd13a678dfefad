"""Memory branches whose git branch is gone: nobody can tell whether they were merged."""

from __future__ import annotations

from stratagem.capture.kinds import ORPHAN_FOUND, ORPHANS
from stratagem.engine.events import Draft
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction
from stratagem.storage.views import find_branch

__all__ = ["keep_orphan"]


def keep_orphan(foundation: Foundation, caller: Caller, branch: str, tip: str) -> None:
    """Keep, for review, that a branch's git branch is gone."""

    def work(transaction: Transaction) -> None:
        content = {"branch": branch, "tip": tip, "at": transaction.wall}
        target = find_branch(transaction.branches, caller.branch)
        transaction.append(target, [Draft(ORPHAN_FOUND, content, ORPHANS, f"branch:{branch}")])

    foundation.write(caller, work)
