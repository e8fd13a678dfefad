"""tools_recommend: which tools do what is asked for, and why."""

from __future__ import annotations

import time

from stratagem.gateway.advice.answers import (
    AgentStanding,
    CallerInsights,
    IntentSupport,
    ToolChain,
    ToolRecommendation,
    ToolRecommendations,
    ToolTwin,
)
from stratagem.gateway.advice.bound import Meta, Sight, milliseconds_since
from stratagem.gateway.advice.inputs import RecommendInput
from stratagem.gateway.advice.parts import placeholders
from stratagem.gateway.advice.recommender import Choice
from stratagem.gateway.advice.records import Chain
from stratagem.gateway.advice.retrieval.catalogue import Shelf
from stratagem.gateway.advice.retrieval.twins import difference, grouped
from stratagem.gateway.registry.tools import Tool

__all__ = ["Recommending", "chain_told", "reasoning", "recommendation", "usage_hint"]

_TWINS_SHOWN = 5
# The lookalikes of a tool stand close to it.
_TWINS_SOUGHT = 15
_CHAINS_SHOWN = 3
# Cosines: half of the right tools are above the first, and nearly all above the second.
_SAME_MEANING = 0.65
_NEAR_MEANING = 0.45
_WORDS_SHOWN = 6
_HELP = ("tool_help", "tools_validate")


class Recommending(Meta):
    """Recommends tools."""

    def recommend(self, given: RecommendInput) -> ToolRecommendations:
        """Return the best tools for a request."""
        started = time.perf_counter()
        services = self._recommender.services()
        with self._looking(given.branch, settled=False) as (reader, view):
            shelf, choices = self._recommender.choose(reader, view, given.text, services)
            best = choices[: given.max_recommendations]
            twins = _twins(shelf, choices, best)
            sight = Sight.of(reader, view, services)
            recommended = [
                self._told(sight, each, given, twins.get(each.tool.name, [])) for each in best
            ]
            confidence = services.learned(lambda part: part.followed(reader, view), None)
            insights = self._about(given, sight, best)
        self._recommender.remember(
            self._caller,
            self._branch(given.branch),
            given.text,
            [each.tool.name for each in best],
            given.labels,
        )
        return {
            "agentId": given.labels.get("agentId"),
            "intent": given.intent,
            "recommendedTools": recommended,
            "totalAvailableTools": len(shelf.tools),
            "llmProvider": None,
            "confidence": confidence,
            "mode": shelf.index.mode,
            "processingTime": milliseconds_since(started),
            **insights,
            **services.status(),
        }

    def _told(
        self, sight: Sight, choice: Choice, given: RecommendInput, twins: list[ToolTwin]
    ) -> ToolRecommendation:
        tool = choice.tool
        told = recommendation(choice)
        if given.include_validation_insights:
            told["validationInsights"] = sight.insights(tool.name, choice.counts)
        if given.include_parameter_examples:
            told["parameterExamples"] = sight.examples(tool, self._caller.actor)
        if given.include_pattern_recommendations:
            chains = sight.services.learned(
                lambda part: part.chains(sight.reader, sight.view, tool.name), None
            )
            told["toolChains"] = (
                None if chains is None else [chain_told(each) for each in chains[:_CHAINS_SHOWN]]
            )
        if twins:
            told["twins"] = twins
        return told

    def _about(self, given: RecommendInput, sight: Sight, best: list[Choice]) -> CallerInsights:
        """Return what is said about the caller, and what similar requests speak for."""
        about: CallerInsights = {}
        if given.include_validation_insights:
            about["validationInsights"] = self._standing(given, sight)
        if given.include_pattern_recommendations:
            away = sight.services.is_away("patternService")
            about["patternRecommendations"] = (
                None if away else [_pattern(each) for each in best if _speaks_for(each)]
            )
        return about

    def _standing(self, given: RecommendInput, sight: Sight) -> AgentStanding | None:
        if sight.records is None:
            return None
        agent = given.labels.get("agentId")
        # A label tells agents of one caller apart; it never shows one caller another's.
        own = sight.records.of(caller=self._caller.actor, agent=agent)
        standing = sight.services.validated(lambda part: part.performance(own), None)
        if standing is None:
            return None
        failing = [each.tool for each in own if not each.worked]
        return {
            **standing,
            "recommendedHelpTools": list(_HELP) if standing["riskLevel"] != "low" else [],
            "learningOpportunities": [
                f"Calls of {name} failed {failing.count(name)} times: read tool_help {name}."
                for name in sorted(set(failing), key=failing.count, reverse=True)[:3]
                if failing.count(name) > 1
            ],
        }


def recommendation(choice: Choice) -> ToolRecommendation:
    """Return a tool in the documented form, with the reasons for it."""
    tool = choice.tool
    return {
        "name": tool.name,
        "description": tool.description,
        "category": tool.category,
        "relevanceScore": round(choice.match.score, 4),
        "reasoning": reasoning(choice),
        "usageHint": usage_hint(tool),
    }


def reasoning(choice: Choice) -> str:
    """Say in words what speaks for a tool."""
    match, parts = choice.match, []
    if said := match.said():
        parts.append(f"it speaks of {', '.join(said[:_WORDS_SHOWN])}")
    if match.meaning >= _SAME_MEANING:
        parts.append("it means much the same as the request")
    elif match.meaning >= _NEAR_MEANING:
        parts.append("it is about something similar")
    if match.fit.names:
        parts.append(f"the request may have values for {', '.join(match.fit.names[:4])}")
    if choice.support is not None:
        worked, tried = choice.support.worked, choice.support.tried
        parts.append(f"it worked after {worked} of {tried} similar requests")
    worked, failed = choice.counts
    if worked + failed:
        parts.append(f"{worked} of {worked + failed} calls worked")
    why = "; ".join(parts) or "it is only remotely like the request"
    return f"{why[0].upper()}{why[1:]}."


def usage_hint(tool: Tool) -> str:
    """Say how to call a tool."""
    schema = tool.content["inputSchema"]
    if required := schema.get("required"):
        return f"tool_execute {tool.name!r} with {', '.join(map(str, required))}."
    if any(form in schema for form in ("anyOf", "oneOf", "allOf")):
        return f"tool_execute {tool.name!r}; tool_help {tool.name} says with what."
    return f"tool_execute {tool.name!r}; its schema requires no argument."


def chain_told(chain: Chain) -> ToolChain:
    """Return a chain in the documented form."""
    return {
        "sequence": list(chain.sequence),
        "description": f"Called in this order {chain.tried} times",
        "successRate": round(chain.worked / chain.tried, 4),
    }


def _twins(shelf: Shelf, choices: list[Choice], best: list[Choice]) -> dict[str, list[ToolTwin]]:
    """Return the lookalikes of what is recommended, each with what it has otherwise."""
    tools = {each.tool.name: each.tool for each in choices[: len(best) + _TWINS_SOUGHT]}
    groups = grouped(list(tools), lambda name: tools[name].content, shelf.index.likeness)
    shown = {each.tool.name for each in best}
    return {
        first: [
            {
                "name": name,
                "recommended": name in shown,
                "difference": difference(tools[first].content, tools[name].content),
            }
            for name in members[1 : 1 + _TWINS_SHOWN]
        ]
        for first, members in groups.items()
        if first in shown and len(members) > 1
    }


def _speaks_for(choice: Choice) -> bool:
    return choice.support is not None and choice.support.worked > 0


def _pattern(choice: Choice) -> IntentSupport:
    support = choice.support
    assert support is not None
    return {
        "toolName": choice.tool.name,
        "confidence": round(support.belief.mean, 4),
        "reason": f"It worked after {support.worked} of {support.tried} similar requests.",
        "parameters": placeholders(choice.tool),
    }
