"""The tools of a view, ready to be searched, and what was learned about requests for them."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache

from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.advice.retrieval.givers import Givers
from stratagem.gateway.advice.retrieval.index import Definition, ToolIndex
from stratagem.gateway.advice.retrieval.intents import Intents
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.gateway.registry.tools import Tool
from stratagem.search.embedding import Embedder, StaticEmbedder
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader

__all__ = ["Catalogue", "Shelf"]

# Views whose tools are kept ready; most databases are asked about one or two.
_SHELVES_MAX: Final = 4


@dataclass(slots=True)
class Shelf:
    """What one view shows, as far as it was looked at. `stamp` says when it is out of date."""

    index: ToolIndex
    intents: Intents
    tools: dict[str, Tool]
    givers: Givers | None = None
    stamp: tuple[int, int] | None = None


class Catalogue:
    """The shelves of a database. Safe to share between threads.

    Reading thousands of definitions takes longer than searching them, so it is only done when the
    number of events that ever changed a tool is another one than before.
    """

    def __init__(self, foundation: Foundation, registry: Registry) -> None:
        self._registry = registry
        self._embedder = _embedder(foundation.index.embedder)
        self._shelves: LRUCache[tuple[int, ...], Shelf] = LRUCache(_SHELVES_MAX)
        self._latest: Shelf | None = None
        self._lock = threading.Lock()

    def shelf(self, reader: Reader, view: View) -> Shelf:
        """Return the tools that a view shows."""
        with self._lock:
            shelf = self._kept(view)
            # The second number falls when a tool is erased, which changes nothing else.
            stamp = (
                reader.catalogue.version_count(names.TOOL),
                reader.records.count(view, names.TOOL),
            )
            if shelf.stamp != stamp:
                tools = self._registry.all(reader.records, view)
                shelf.index.update(
                    [Definition(tool.name, tool.revision, tool.content) for tool in tools]
                )
                shelf.tools = {tool.name: tool for tool in tools}
                shelf.givers = None
                shelf.stamp = stamp
            return shelf

    def givers(self, shelf: Shelf) -> Givers:
        """Return what the tools of a shelf give."""
        with self._lock:
            shelf.givers = shelf.givers or Givers(shelf.tools.values())
            return shelf.givers

    def intents(self, reader: Reader, view: View) -> Intents:
        """Return what was learned in a view, up to now."""
        with self._lock:
            intents = self._kept(view).intents
        intents.refresh(reader, view)
        return intents

    def _kept(self, view: View) -> Shelf:
        key = view.lineage.numbers
        shelf = self._shelves.get(key)
        if shelf is None:
            shelf = self._shelves[key] = Shelf(self._index(), Intents(self._embedder), {})
        self._latest = shelf
        return shelf

    def _index(self) -> ToolIndex:
        """Return an index to begin with: most branches show what another one shows."""
        return self._latest.index.copy() if self._latest else ToolIndex(self._embedder)


def _embedder(chosen: Embedder | None) -> Embedder | None:
    """Return what compares meanings here: thousands of tools take seconds with any other."""
    if chosen is None or isinstance(chosen, StaticEmbedder):
        return chosen
    return StaticEmbedder()
