"""Outcomes of requests: which tools were called after a recommendation, and whether they worked.

A recommendation is kept as an event: the request (masked), who asked, and what was recommended.
When the same caller then calls one of the recommended tools, within ten minutes or under the same
request id, that call is an outcome for the request and the tool. A tool that failed and then
worked has worked. Everything here is read from the log; nothing else is kept.

Requests of others are compared with, and never shown.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Space
from stratagem.engine.evidence import Belief, Observation, believe
from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.advice.retrieval import weights
from stratagem.search import analysis
from stratagem.search.embedding import Embedder
from stratagem.storage.contract import Reader, RecordReader

__all__ = ["RequestHistory", "RequestSupport", "stream"]

_PAGE: Final = 1_000
_GROWTH: Final = 256
_SPACES: Final = (names.RECOMMENDATIONS, names.EXECUTIONS_OK, names.EXECUTIONS_FAILED)


class RequestSupport(NamedTuple):
    """How calls of a tool went after similar requests."""

    belief: Belief
    worked: int
    tried: int
    similarity: float


@dataclass(slots=True)
class _Request:
    """One recommendation, and what came of it."""

    caller: str
    request_id: str | None
    at: int
    tools: frozenset[str]
    terms: frozenset[str]
    vector: NDArray[np.float32] | None
    outcomes: dict[str, bool] = field(default_factory=dict)


class RequestHistory:
    """The newest requests of one view, with their outcomes; threads may share it."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._requests: list[_Request] = []
        self._latest: dict[str, _Request] = {}
        self._by_id: dict[tuple[str, str], _Request] = {}
        # Those with an outcome, by number; their vectors by the same number, and who has a term.
        self._ended: list[_Request] = []
        self._vectors = np.zeros((0, embedder.dimensions if embedder else 0), np.float32)
        self._by_term: dict[str, list[int]] = {}
        self._read: dict[Space, int] | None = None
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._requests)

    def refresh(self, reader: Reader, view: View) -> None:
        """Read what is new in the log."""
        with self._lock:
            self._refresh(reader, view)

    def _refresh(self, reader: Reader, view: View) -> None:
        if self._read is None:
            newest = reader.catalogue.with_facet(
                view, names.FACET_RECOMMENDATION, limit=limits.RECOMMENDATIONS_LEARNED_MAX
            )
            if not newest:
                return
            # Calls before the oldest of them cannot have followed from it.
            self._read = dict.fromkeys(_SPACES, newest[0] - 1)
        found: list[tuple[int, str, dict[str, Any]]] = []
        for space, after in self._read.items():
            for version in stream(reader.records, view, space, after):
                if version.payload:
                    found.append((version.sequence, space.kind, orjson.loads(version.payload)))
                self._read[space] = version.sequence
        for _sequence, kind, content in sorted(found, key=lambda each: each[0]):
            if kind == names.RECOMMENDATION:
                self.add(content)
            else:
                self.note(content)

    def add(self, content: Mapping[str, Any]) -> None:
        """Take a recommendation."""
        intent = str(content.get("intent") or "")
        request = _Request(
            str(content.get("caller")),
            (content.get("context") or {}).get("requestId"),
            int(content.get("at") or 0),
            frozenset(content.get("tools") or ()),
            frozenset(analysis.query_terms(intent)),
            None if self._embedder is None else self._embedder.embed([intent])[0],
        )
        self._requests.append(request)
        if len(self._requests) > 2 * limits.RECOMMENDATIONS_LEARNED_MAX:
            self._forget_old()
        self._latest[request.caller] = request
        if request.request_id:
            self._by_id[request.caller, request.request_id] = request

    def note(self, execution: Mapping[str, Any]) -> None:
        """Take an execution, which may be the outcome of a recommendation."""
        caller, tool = str(execution.get("caller")), str(execution.get("tool"))
        label = (execution.get("context") or {}).get("requestId")
        request = self._by_id.get((caller, label)) if label else None
        if request is None:
            request = self._latest.get(caller)
            age = int(execution.get("startedAt") or 0) - request.at if request else 0
            if request is None or age > limits.RECOMMENDATION_FOLLOWED_SECONDS * 1_000_000:
                return
        if tool in request.tools:
            worked = execution.get("status") == "success"
            if not request.outcomes:
                self._end(request)
            request.outcomes[tool] = request.outcomes.get(tool, False) or worked

    def _end(self, request: _Request) -> None:
        """Take a request among those with an outcome."""
        number = len(self._ended)
        self._ended.append(request)
        for term in request.terms:
            self._by_term.setdefault(term, []).append(number)
        if request.vector is not None:
            if number >= len(self._vectors):
                more = np.zeros((max(_GROWTH, number), self._vectors.shape[1]), np.float32)
                self._vectors = np.vstack([self._vectors, more])
            self._vectors[number] = request.vector

    def _forget_old(self) -> None:
        """Keep the newest, as whoever reads the log anew would."""
        self._requests = self._requests[-limits.RECOMMENDATIONS_LEARNED_MAX :]
        kept = {id(each) for each in self._requests}
        self._latest = {key: each for key, each in self._latest.items() if id(each) in kept}
        self._by_id = {key: each for key, each in self._by_id.items() if id(each) in kept}
        self._ended, self._by_term = [], {}
        for request in self._requests:
            if request.outcomes:
                self._end(request)

    def support(self, intent: str) -> dict[str, RequestSupport]:
        """Return, for each tool, what became of it after requests like this one."""
        observations: dict[str, list[tuple[float, bool]]] = {}
        with self._lock:
            for request, similarity in self._similar(intent):
                for tool, worked in request.outcomes.items():
                    observations.setdefault(tool, []).append((similarity, worked))
        return {
            tool: RequestSupport(
                believe([Observation(worked=worked, weight=weight) for weight, worked in seen]),
                sum(worked for _, worked in seen),
                len(seen),
                max(weight for weight, _ in seen),
            )
            for tool, seen in observations.items()
        }

    def _similar(self, intent: str) -> Iterable[tuple[_Request, float]]:
        if not self._ended:
            return
        alike = np.zeros(len(self._ended))
        if self._embedder is not None:
            asked = self._embedder.embed([intent])[0]
            alike = np.einsum("ij,j->i", self._vectors[: len(self._ended)], asked)
        terms = frozenset(analysis.query_terms(intent))
        shared = Counter(number for term in terms for number in self._by_term.get(term, ()))
        for number, count in shared.items():
            union = len(terms) + len(self._ended[number].terms) - count
            alike[number] = max(alike[number], count / union)
        for number in map(int, np.flatnonzero(alike >= weights.SIMILAR_MIN)):
            yield self._ended[number], min(1.0, float(alike[number]))


def stream(records: RecordReader, view: View, space: Space, after: int) -> Iterator[Any]:
    """Go through the events of a space, oldest first, after one of them."""
    while True:
        page = records.stream(view.lineage, space, after=after, limit=_PAGE)
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].sequence
