"""The record of refused authentications, which a flood of them cannot fill.

Refusals are counted by reason, address and route, and the counts are written as one event a moment
later. The event never contains the presented credentials.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from stratagem import limits
from stratagem.access import kinds
from stratagem.access.service import BRANCH
from stratagem.engine.events import Draft
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction

__all__ = ["Refusals"]


class Refusals:
    """Refusals that wait to be written. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: Counter[tuple[str, str, str]] = Counter()

    def note(self, reason: str, address: str, way: str) -> None:
        """Count a refusal; of very many at once, the odd ones are counted together."""
        with self._lock:
            known = (reason, address, way) in self._waiting
            full = len(self._waiting) >= limits.REFUSALS_WAITING_MAX
            entry = (reason, address, way) if known or not full else (reason, "other", "other")
            self._waiting[entry] += 1

    @property
    def any(self) -> bool:
        """Whether there is anything to be written."""
        return bool(self._waiting)

    def write(self, foundation: Foundation) -> int:
        """Append what was counted; return how many refusals that are."""
        with self._lock:
            waiting, self._waiting = self._waiting, Counter()
        if not waiting or foundation.store.read_only:
            return 0
        listed: list[dict[str, Any]] = [
            {"reason": reason, "address": address, "way": way, "count": count}
            for (reason, address, way), count in waiting.items()
        ]
        total = sum(waiting.values())

        def work(transaction: Transaction) -> None:
            view = foundation.views.view(transaction, BRANCH)
            content = {"count": total, "refusals": listed}
            key = f"{transaction.log.head().sequence:020}"
            draft = Draft(kinds.AUTHENTICATION_REFUSED, content, kinds.REFUSALS, key)
            transaction.append(view.branch, [draft])

        foundation.write(Caller("server"), work)
        return total
