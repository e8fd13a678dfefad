"""Chooses tools for a request by the catalogue and by what was learned from earlier requests.

`advisor` is the debugging memory, `correct_arguments` the corrector of arguments. Both are handed
in, and both are optional.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
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
        self,
        reader: Reader,
        view: View,
        request: str,
        services: RecordServices,
        *,
        own: bool = False,
    ) -> tuple[ViewTools, list[ToolChoice]]:
        """Return the tools for a request, best first: by what they say and what they did.

        Operations of the product itself are left out unless `own` asks for them: whoever asks has
        them in their list of tools already. Deprecated tools come last.
        """
        view_tools = self.catalogue.tools_of(reader, view)
        left_out = frozenset() if own else view_tools.own
        found = view_tools.index.search(request, without=left_out)
        matches = {match.name: match for match in found}
        support: dict[str, RequestSupport] = services.ask_patterns(
            lambda part: part.support(reader, view, request), {}
        )
        counts: dict[str, tuple[int, int]] = services.ask_validation(
            lambda part: part.counts(reader.catalogue, view), {}
        )
        for name in support.keys() - matches.keys() - left_out:
            if (match := view_tools.index.match(request, name)) is not None:
                matches[name] = match
        # What changes meanwhile is seen by the next request.
        tools = view_tools.tools
        best = max((match.score for match in matches.values()), default=0.0)
        choices = [
            _weigh(tools[name], match, support.get(name), counts.get(name, (0, 0)), best)
            for name, match in matches.items()
            if name in tools
        ]
        return view_tools, sorted(choices, key=_order)

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
            # Nothing is recorded for callers who may only read.
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
    # General success is no reason to choose a tool, but general failure is one against it.
    odds = _log_odds(match.score) + weights.FAILING * min(0.0, 2 * belief.mean - 1)
    if support is not None:
        odds = _with_support(odds, support, _log_odds(best))
    return ToolChoice(tool, replace(match, score=1 / (1 + math.exp(-odds))), support, counts)


def _with_support(odds: float, support: RequestSupport, best: float) -> float:
    """Return the log-odds of a tool with what similar requests say; see `weights`."""
    learned = support.similarity * (2 * support.belief.mean - 1)
    if learned <= 0:
        return odds + weights.FAILED * learned
    moved = odds + weights.FOLLOWED * learned
    if support.similarity >= weights.SAME_MIN:
        return moved
    # Close behind the best, in the order in which they were.
    behind = best - _BEHIND * (1 + best - odds)
    return max(min(moved, behind), odds + weights.SIMILAR * learned)


def _log_odds(score: float) -> float:
    least = 1e-9
    share = min(1 - least, max(least, score))
    return math.log(share / (1 - share))


def _order(choice: ToolChoice) -> tuple[bool, float, str]:
    return choice.tool.is_deprecated, -choice.match.score, choice.tool.name


def _correct_by_schema(tool: Tool, arguments: Any, _branch: str) -> Correction:
    return correct(tool.content["inputSchema"], arguments, tool=tool.name)
