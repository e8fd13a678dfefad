"""Budgets: how often something may be called, and what that may cost, in each period.

Usage is stored in the database, so that all processes share one account and a restart does not
reset it. A call is charged just before the tool is run, whatever its result; a call that is refused
before, or answered from the cache, costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson

from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import moments
from stratagem.errors import BudgetExceeded
from stratagem.gateway.registry.answers import BudgetDocument
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction

__all__ = ["Budget", "charge"]

_MICROSECONDS: Final = 1_000_000
# What is compared is a sum of decimal fractions.
_TOLERANCE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget of one account: a tool's, a token's, or a caller's in a set of tools."""

    account: str
    whose: str
    document: BudgetDocument


def charge(foundation: Foundation, budgets: Sequence[Budget], cost: float) -> None:
    """Charge a call to all of its budgets, or to none.

    Raises:
        BudgetExceeded: One of them does not allow it.
    """

    def work(transaction: Transaction) -> None:
        now = foundation.store.now()
        for budget in budgets:
            _charge_one(transaction, budget, cost, now)

    foundation.write(Caller(actor="gateway"), work)


def _charge_one(transaction: Transaction, budget: Budget, cost: float, now: int) -> None:
    begins, resets = _window(_period(budget), now)
    setting = f"budget:{budget.account}"
    kept = orjson.loads(transaction.settings.text(setting) or "{}")
    used = kept if kept.get("begins") == begins else {"calls": 0, "cost": 0.0}
    calls, spent = used["calls"] + 1, used["cost"] + cost
    allowed = budget.document
    if calls > allowed.get("calls", calls):
        raise _refusal(budget, "calls", allowed["calls"], used["calls"], resets=resets, now=now)
    if cost and spent > allowed.get("cost", spent) + _TOLERANCE:
        raise _refusal(budget, "cost", allowed["cost"], used["cost"], resets=resets, now=now)
    text = orjson.dumps({"begins": begins, "calls": calls, "cost": spent}).decode()
    transaction.settings.set(setting, text)


def _period(budget: Budget) -> str:
    return budget.document.get("per", "day")


def _window(per: str, now: int) -> tuple[int, int]:
    """Return when the present stretch of time began, and when the next one does."""
    moment = datetime.fromtimestamp(now / _MICROSECONDS, UTC).replace(
        minute=0, second=0, microsecond=0
    )
    if per == "hour":
        after = moment + timedelta(hours=1)
    elif per == "day":
        moment = moment.replace(hour=0)
        after = moment + timedelta(days=1)
    else:
        moment = moment.replace(hour=0, day=1)
        after = (moment + timedelta(days=32)).replace(day=1)
    return int(moment.timestamp()) * _MICROSECONDS, int(after.timestamp()) * _MICROSECONDS


def _refusal(
    budget: Budget, unit: str, limit: float, used: float, *, resets: int, now: int
) -> BudgetExceeded:
    words = f"{limit:,} calls" if unit == "calls" else f"a cost of {limit:g}"
    until = moments.iso(resets)
    return BudgetExceeded(
        f"{budget.whose} are limited to {words} per {_period(budget)}; {used:g} are used.",
        reason="budget",
        unit=unit,
        limit=limit,
        used=used,
        resets=until,
        retry_after=max(1, (resets - now) // _MICROSECONDS),
        hint=f"The budget resets at {until}; an administrator can raise it.",
    )
