"""Chooses tools for a request by the catalogue and by what was learned from earlier requests.

`advisor` is the debugging memory, `correct_arguments` the corrector of arguments. Both are handed
in, and both are optional.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from stratagem import limits
from stratagem.engine.events import Draft
from stratagem.engine.evidence import Observation, believe
from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.advice.execution_records import ExecutionRecordsCache
from stratagem.gateway.advice.record_services import (
    PatternService,
    RecordServices,
    ValidationService,
)
from stratagem.gateway.advice.retrieval import weights
from stratagem.gateway.advice.retrieval.catalogue import ToolCatalogue, ViewTools
from stratagem.gateway.advice.retrieval.index import ToolMatch
from stratagem.gateway.advice.retrieval.request_history import RequestSupport
from stratagem.gateway.calls.recorder import Recorder
from stratagem.gateway.correction import Correction, correct
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.gateway.registry.tools import Tool
from stratagem.operation import Caller
from stratagem.redaction import mask
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction
from stratagem.storage.views import find_branch

__all__ = ["KnownFixes", "Recommender", "ToolChoice"]

# Tools that cannot be called are not recommended.
_CALLABLE = frozenset({"active", "deprecated"})
# How far a tool stays behind the best one where only similar requests speak for it.
_BEHIND = 1e-6


# Corrects the arguments of a tool, as the policy of a branch allows.
CorrectArguments = Callable[[Tool, Any, str], Correction]


class KnownFixes(Protocol):
    """The debugging memory, as far as it is asked for a fix."""

    def known_fix(self, text: str, tool: str, branch: str, caller: Caller) -> dict[str, Any] | None:
        """Return the best known fix for an error that a caller may know of."""
        ...


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """A tool for a request, and the evidence for it."""

    tool: Tool
    match: ToolMatch
    support: RequestSupport | None
    counts: tuple[int, int]


class Recommender:
    """Ranks tools for requests; one is shared by all callers of a database."""

    def __init__(
        self,
        foundation: Foundation,
        registry: Registry,
        recorder: Recorder,
        new_id: Callable[[str], str],
        *,
        advisor: KnownFixes | None = None,
        correct_arguments: CorrectArguments | None = None,
    ) -> None:
        self._foundation = foundation
        self._recorder = recorder
        self._new_id = new_id
        records = ExecutionRecordsCache()
        self.catalogue = ToolCatalogue(foundation, registry)
        self.validation = ValidationService(records)
        self.patterns = PatternService(self.catalogue, records)
        self.advisor = advisor
        self.correct_arguments: CorrectArguments = correct_arguments or _correct_by_schema

    def services(self) -> RecordServices:
        """Return the services that answer from records, for one request."""
        return RecordServices(self.validation, self.patterns)

    def choose(
        self, reader: Reader, view: View, request: str, services: RecordServices
    ) -> tuple[ViewTools, list[ToolChoice]]:
        """Return the tools for a request, best first: by what they say and what they did."""
        view_tools = self.catalogue.tools_of(reader, view)
        matches = {match.name: match for match in view_tools.index.search(request)}
        support: dict[str, RequestSupport] = services.ask_patterns(
            lambda part: part.support(reader, view, request), {}
        )
        counts: dict[str, tuple[int, int]] = services.ask_validation(
            lambda part: part.counts(reader.catalogue, view), {}
        )
        for name in support:
            if name not in matches and (match := view_tools.index.match(request, name)) is not None:
                matches[name] = match
        # What changes meanwhile is seen by the next request.
        tools = view_tools.tools
        best = max((match.score for match in matches.values()), default=0.0)
        choices = [
            _weigh(tools[name], match, support.get(name), counts.get(name, (0, 0)), best)
            for name, match in matches.items()
            if name in tools and tools[name].status in _CALLABLE
        ]
        return view_tools, sorted(
            choices, key=lambda choice: (-choice.match.score, choice.tool.name)
        )

    def remember(
        self,
        caller: Caller,
        branch: str,
        intent: str,
        tools: Sequence[str],
        context: Mapping[str, Any],
    ) -> None:
        """Keep a recommendation, so that what comes of it can be learned from."""
        foundation = self._foundation
        if caller.read_only or foundation.store.read_only or not tools:
            return
        if caller.transaction is not None:
            # No tool can be called within one, so nothing can come of it.
            return
        if not caller.may("gateway", "write") and not caller.may("gateway", "execute"):
            # Who only reads leaves nothing behind; nothing of theirs could come of it either.
            return
        content = {
            "recommendationId": self._new_id("reco"),
            "intent": mask(intent[: limits.INTENT_CHARS_MAX], foundation.redaction),
            "caller": caller.actor,
            "context": dict(context),
            "tools": list(tools),
            "at": foundation.store.now(),
        }
        draft = Draft(names.TOOLS_RECOMMENDED, content, names.RECOMMENDATIONS)

        def work(transaction: Transaction) -> None:
            transaction.append(find_branch(transaction.branches, branch), [draft])

        # In the order in which things happened: what is called next is recorded after it.
        self._recorder.do(lambda: foundation.write(caller, work))


def _weigh(
    tool: Tool,
    match: ToolMatch,
    support: RequestSupport | None,
    counts: tuple[int, int],
    best: float,
) -> ToolChoice:
    worked, failed = counts
    if support is None and not worked + failed:
        return ToolChoice(tool, match, None, counts)
    belief = believe(
        [Observation(worked=True, weight=worked), Observation(worked=False, weight=failed)]
    )
    # To work in general is no reason to be chosen; to fail is one not to be.
    score = match.score * (1 + weights.RELIABILITY_WEIGHT * min(0.0, 2 * belief.mean - 1))
    if support is not None:
        score = _adjust_score(score, support, best)
    return ToolChoice(tool, replace(match, score=max(0.0, min(1.0, score))), support, counts)


def _adjust_score(score: float, support: RequestSupport, best: float) -> float:
    """Return a score with what similar requests say; see `weights`."""
    learned = support.similarity * (2 * support.belief.mean - 1)
    moved = score + weights.INTENT_WEIGHT * learned
    if learned <= 0 or support.similarity >= weights.SAME_MIN:
        return moved
    # Close behind the best, in the order in which they were.
    behind = best - _BEHIND * (2 - score)
    return max(min(moved, behind), score * (1 + weights.INTENT_SHARE * learned))


def _correct_by_schema(tool: Tool, arguments: Any, _branch: str) -> Correction:
    return correct(tool.content["inputSchema"], arguments, tool=tool.name)
