"""The settings of the result cache, stored in the log and shared by all servers of a workspace.

Each server has a cache of its own; its limits are a record that all of them read. The time of the
last clearing is part of the key of a result, so that clearing the cache on one server invalidates
the results on all.
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

__all__ = ["CacheSettings", "ToolCacheState", "configure", "forget", "read"]

_RULES: Final = "cache"
_FORGOTTEN: Final = "cache_forgotten"
_NAMES: Final = tuple(CacheRules.__annotations__)


class ToolCacheState(NamedTuple):
    """The cache settings that apply to a tool.

    `version` is that of the rules. `forgotten` are the sequences of the last clearing of all tools
    and of this one, and of the last purge, since any result may quote what was purged.
    """

    version: int
    rules: CacheRules
    forgotten: tuple[int, int, int]


def read(reader: Reader, view: View, tool: str) -> ToolCacheState:
    """Return the cache settings that apply to a tool."""
    rules = reader.records.current(view.lineage, names.SETTINGS, _RULES)
    stored = orjson.loads(rules.payload) if rules is not None and rules.payload else {}
    # A newer version may have written more.
    known = cast("CacheRules", {name: stored[name] for name in _NAMES if name in stored})
    every, own = (
        reader.records.current(view.lineage, names.SETTINGS, key)
        for key in (_FORGOTTEN, _clear_key(tool))
    )
    return ToolCacheState(
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
    """Invalidate the cached results of a tool, or of all tools, on every server."""
    key = _clear_key(tool) if tool is not None else _FORGOTTEN
    transaction.append(view.branch, [Draft(names.SETTING_CHANGED, {}, names.SETTINGS, key)])


def _clear_key(tool: str) -> str:
    return f"{_FORGOTTEN}:{tool}"


class CacheSettings:
    """Applies the settings in the log to a server's cache. Runs on the home loop."""

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

    def _read(self, tool: str) -> ToolCacheState:
        reader = self._foundation.store.reader()
        return read(reader, self._foundation.views.view(reader, "default"), tool)
