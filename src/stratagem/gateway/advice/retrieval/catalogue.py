"""The tools of a view, ready to be searched, and what was learned about requests for them."""

from __future__ import annotations

import threading
from typing import Final

from cachetools import LRUCache

from stratagem.deferred_dataclasses import dataclass
from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.advice.retrieval.index import Definition, ToolIndex
from stratagem.gateway.advice.retrieval.request_history import RequestHistory
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.gateway.registry.tools import Tool
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader

__all__ = ["ToolCatalogue", "ViewTools"]

# Views whose tools are kept ready; most databases are asked about one or two.
_VIEWS_MAX: Final = 4


@dataclass(slots=True)
class ViewTools:
    """The tools and earlier requests of one view; `stamp` changes when they are out of date.

    `own` are the operations of the product itself.
    """

    index: ToolIndex
    intents: RequestHistory
    tools: dict[str, Tool]
    own: frozenset[str] = frozenset()
    stamp: tuple[int, int, int] | None = None


class ToolCatalogue:
    """The tools of each view of a database. Safe to share between threads.

    Reading thousands of definitions takes longer than searching them, so it is only done when the
    number of events that ever changed a tool is another one than before.
    """

    def __init__(self, foundation: Foundation, registry: Registry) -> None:
        self._registry = registry
        self._embedder = foundation.index.embedder
        self._views: LRUCache[tuple[int, ...], ViewTools] = LRUCache(_VIEWS_MAX)
        self._latest: ViewTools | None = None
        self._lock = threading.Lock()

    def tools_of(self, reader: Reader, view: View) -> ViewTools:
        """Return the tools that a view shows."""
        with self._lock:
            view_tools = self._view_tools(view)
            # The second number falls when a tool is erased, which changes nothing else.
            stamp = (
                reader.catalogue.version_count(names.TOOL),
                reader.records.count(view, names.TOOL),
                self._registry.standard.revision(reader),
            )
            if view_tools.stamp != stamp:
                tools = self._registry.all(reader, view)
                # What cannot be called is listed, but never found for a request.
                view_tools.index.update(
                    [
                        Definition(tool.name, tool.revision, tool.content)
                        for tool in tools
                        if tool.unavailable is None
                    ]
                )
                view_tools.tools = {tool.name: tool for tool in tools}
                view_tools.own = frozenset(tool.name for tool in tools if tool.is_own)
                view_tools.stamp = stamp
            return view_tools

    def intents(self, reader: Reader, view: View) -> RequestHistory:
        """Return what was learned in a view, up to now."""
        with self._lock:
            intents = self._view_tools(view).intents
        intents.refresh(reader, view)
        return intents

    def _view_tools(self, view: View) -> ViewTools:
        key = view.lineage.numbers
        view_tools = self._views.get(key)
        if view_tools is None:
            view_tools = self._views[key] = ViewTools(
                self._index(), RequestHistory(self._embedder), {}
            )
        self._latest = view_tools
        return view_tools

    def _index(self) -> ToolIndex:
        """Return an index to begin with: most branches show what another one shows."""
        return self._latest.index.copy() if self._latest else ToolIndex(self._embedder)
