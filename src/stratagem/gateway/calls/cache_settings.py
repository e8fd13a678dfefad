"""What was decided about kept results, in the log: every server of a workspace goes by it.

Each server keeps results of its own. How long, and how many, is a record that all of them read. A
result is found by what was forgotten last before it was computed, so that whatever is forgotten
on one server is found on none.
"""

from __future__ import annotations

from typing import Final, NamedTuple, cast

import orjson

from stratagem.engine.events import Draft
from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.calls.answers import CacheRules
from stratagem.gateway.calls.result_cache import Cache
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import PURGED_AT, Reader, Transaction

__all__ = ["CacheSettings", "Kept", "configure", "forget", "read"]

_RULES: Final = "cache"
_FORGOTTEN: Final = "cache_forgotten"
_NAMES: Final = tuple(CacheRules.__annotations__)


class Kept(NamedTuple):
    """What holds for the results of a tool.

    `version` is that of the rules, and `forgotten` what was forgotten last: of all tools, of this
    one, and by purging something, which any result may quote.
    """

    version: int
    rules: CacheRules
    forgotten: tuple[int, int, int]


def read(reader: Reader, view: View, tool: str) -> Kept:
    """Return what holds for the results of a tool."""
    rules = reader.records.current(view.lineage, names.SETTINGS, _RULES)
    stored = orjson.loads(rules.payload) if rules is not None and rules.payload else {}
    # A newer version may have written more.
    known = cast("CacheRules", {name: stored[name] for name in _NAMES if name in stored})
    every, own = (
        reader.records.current(view.lineage, names.SETTINGS, key) for key in (_FORGOTTEN, _of(tool))
    )
    return Kept(
        rules.sequence if rules else 0,
        known,
        (
            every.sequence if every else 0,
            own.sequence if own else 0,
            int(reader.settings.number(PURGED_AT) or 0),
        ),
    )


def configure(transaction: Transaction, view: View, changes: CacheRules) -> CacheRules:
    """Change the rules; return all of them."""
    known = transaction.records.current(view.lineage, names.SETTINGS, _RULES)
    before: CacheRules = orjson.loads(known.payload) if known and known.payload else {}
    rules: CacheRules = {**before, **changes}
    transaction.append(view.branch, [Draft(names.SETTING_CHANGED, rules, names.SETTINGS, _RULES)])
    return rules


def forget(transaction: Transaction, view: View, tool: str | None) -> None:
    """Let nobody find the results of a tool, or of all, that there are so far."""
    key = _of(tool) if tool is not None else _FORGOTTEN
    transaction.append(view.branch, [Draft(names.SETTING_CHANGED, {}, names.SETTINGS, key)])


def _of(tool: str) -> str:
    return f"{_FORGOTTEN}:{tool}"


class CacheSettings:
    """Keeps a server's cache by the settings in the log. Runs on the home loop."""

    def __init__(self, foundation: Foundation, cache: Cache) -> None:
        self._foundation = foundation
        self._cache = cache
        self._version = 0
        self._purged_at = 0

    async def last_clear(self, tool: str) -> tuple[int, int, int]:
        """Configure the cache as it is set now; return what was last cleared."""
        settings = await self._foundation.read_async(lambda: self._read(tool))
        if settings.version != self._version:
            self._version = settings.version
            self._cache.configure(**settings.rules)
        if settings.forgotten[-1] != self._purged_at:
            # Another process has purged something: results from before are not held on to.
            self._purged_at = settings.forgotten[-1]
            self._cache.clear()
        return settings.forgotten

    def _read(self, tool: str) -> Kept:
        reader = self._foundation.store.reader()
        return read(reader, self._foundation.views.view(reader, "default"), tool)
