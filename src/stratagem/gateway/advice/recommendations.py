"""tools_recommend: which tools do what is asked for, and why."""

from __future__ import annotations

import time

from stratagem.gateway.advice.advice_service import AdviceContext, AdviceService, milliseconds_since
from stratagem.gateway.advice.answers import (
    AgentStanding,
    CallerInsights,
    IntentSupport,
    ToolChain,
    ToolRecommendation,
    ToolRecommendations,
    ToolTwin,
)
from stratagem.gateway.advice.execution_records import Chain
from stratagem.gateway.advice.inputs import RecommendInput
from stratagem.gateway.advice.recommender import ToolChoice
from stratagem.gateway.advice.record_services import placeholders
from stratagem.gateway.advice.retrieval import weights
from stratagem.gateway.advice.retrieval.catalogue import ViewTools
from stratagem.gateway.advice.retrieval.duplicates import difference, group_duplicates
from stratagem.gateway.registry.tools import Tool

__all__ = ["RecommendationService", "describe_chain", "reasoning", "recommendation", "usage_hint"]

_TWINS_SHOWN = 5
# The lookalikes of a tool stand close to it.
_TWINS_SOUGHT = 15
_CHAINS_SHOWN = 3
# Cosines: half of the right tools are above the first, and nearly all above the second.
_SAME_MEANING = 0.65
_NEAR_MEANING = 0.45
_WORDS_SHOWN = 6
_HELP = ("tool_help", "tools_validate")


class RecommendationService(AdviceService):
    """Recommends tools for a request: `tools_recommend`."""

    def recommend(self, given: RecommendInput) -> ToolRecommendations:
        """Return the best tools for a request."""
        started = time.perf_counter()
        services = self._recommender.services()
        with self._snapshot(given.branch, settled=False) as (reader, view):
            context = AdviceContext.of(reader, view, services)
            view_tools, choices = self._choose(context, given.text, own=given.include_own)
            best = choices[: given.max_recommendations]
            twins = _twins(view_tools, choices, best)
            recommended = [
                self._recommendation(context, each, given, twins.get(each.tool.name, []))
                for each in best
            ]
            insights = self._insights(given, context, best)
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
            "note": _note(best),
            "totalAvailableTools": self._count(view_tools, own=given.include_own),
            "llmProvider": None,
            "confidence": recommended[0]["relevanceScore"] if recommended else None,
            "mode": view_tools.index.mode,
            "processingTime": milliseconds_since(started),
            **insights,
            **services.status(),
        }

    def _recommendation(
        self,
        context: AdviceContext,
        choice: ToolChoice,
        given: RecommendInput,
        twins: list[ToolTwin],
    ) -> ToolRecommendation:
        tool = choice.tool
        answer = recommendation(choice)
        if given.include_validation_insights:
            answer["validationInsights"] = context.insights(tool.name, choice.counts)
        if given.include_parameter_examples:
            answer["parameterExamples"] = context.examples(tool, self._caller.actor)
        if given.include_pattern_recommendations:
            chains = context.services.ask_patterns(
                lambda part: part.chains(context.reader, context.view, tool.name), None
            )
            answer["toolChains"] = (
                None
                if chains is None
                else [
                    describe_chain(each)
                    for each in chains
                    if all(self._shows(context, name) for name in each.sequence)
                ][:_CHAINS_SHOWN]
            )
        if twins:
            answer["twins"] = twins
        return answer

    def _count(self, view_tools: ViewTools, *, own: bool) -> int:
        """Count the tools that are chosen from."""
        shown = (tool for tool in view_tools.tools.values() if self._parts.registry.shows(tool))
        return sum(own or tool.name not in view_tools.own for tool in shown)

    def _shows(self, context: AdviceContext, name: str) -> bool:
        """Whether the caller may know of a tool; of one that is gone, unless it is limited."""
        if self._caller.tool_sets is None:
            return True
        known = self._recommender.catalogue.tools_of(context.reader, context.view).tools.get(name)
        return known is not None and self._parts.registry.shows(known)

    def _insights(
        self, given: RecommendInput, context: AdviceContext, best: list[ToolChoice]
    ) -> CallerInsights:
        """Return how the caller did so far, and which tools worked after similar requests."""
        insights: CallerInsights = {}
        if given.include_validation_insights:
            insights["validationInsights"] = self._caller_standing(given, context)
        if given.include_pattern_recommendations:
            away = context.services.is_away("patternService")
            insights["patternRecommendations"] = (
                None if away else [_intent_support(each) for each in best if _has_support(each)]
            )
        return insights

    def _caller_standing(
        self, given: RecommendInput, context: AdviceContext
    ) -> AgentStanding | None:
        if context.records is None:
            return None
        agent = given.labels.get("agentId")
        # A label tells agents of one caller apart; it never shows one caller another's.
        own = context.records.of(caller=self._caller.actor, agent=agent)
        performance = context.services.ask_validation(lambda part: part.performance(own), None)
        if performance is None:
            return None
        failing = [each.tool for each in own if not each.worked and self._shows(context, each.tool)]
        return {
            **performance,
            "recommendedHelpTools": list(_HELP) if performance["riskLevel"] != "low" else [],
            "learningOpportunities": [
                f"Calls of {name} failed {failing.count(name)} times: read tool_help {name}."
                for name in sorted(set(failing), key=failing.count, reverse=True)[:3]
                if failing.count(name) > 1
            ],
        }


def recommendation(choice: ToolChoice) -> ToolRecommendation:
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


def reasoning(choice: ToolChoice) -> str:
    """Say in words why a tool is recommended."""
    match, parts = choice.match, []
    if said := match.matching_words():
        parts.append(f"it mentions {', '.join(said[:_WORDS_SHOWN])}")
    if match.meaning >= _SAME_MEANING:
        parts.append("it means nearly the same as the request")
    elif match.meaning >= _NEAR_MEANING:
        parts.append("its subject is similar")
    if choice.tool.is_deprecated:
        parts.append("it is deprecated")
    if choice.support is not None:
        worked, tried = choice.support.worked, choice.support.tried
        parts.append(f"it worked after {worked} of {tried} similar requests")
    worked, failed = choice.counts
    if worked + failed:
        parts.append(f"{worked} of {worked + failed} calls worked")
    why = "; ".join(parts) or "it is only remotely related to the request"
    return f"{why[0].upper()}{why[1:]}."


def usage_hint(tool: Tool) -> str:
    """Say how to call a tool."""
    schema = tool.content["inputSchema"]
    if required := schema.get("required"):
        return f"tool_execute {tool.name!r} with {', '.join(map(str, required))}."
    if any(form in schema for form in ("anyOf", "oneOf", "allOf")):
        return f"tool_execute {tool.name!r}; tool_help {tool.name} shows its parameters."
    return f"tool_execute {tool.name!r}; its schema requires no argument."


def describe_chain(chain: Chain) -> ToolChain:
    """Return a chain in the documented form."""
    return {
        "sequence": list(chain.sequence),
        "description": f"Called in this order {chain.tried} times",
        "successRate": round(chain.worked / chain.tried, 4),
    }


def _twins(
    view_tools: ViewTools, choices: list[ToolChoice], best: list[ToolChoice]
) -> dict[str, list[ToolTwin]]:
    """Return the duplicates of the recommended tools, each with its differences."""
    tools = {each.tool.name: each.tool for each in choices[: len(best) + _TWINS_SOUGHT]}
    groups = group_duplicates(
        list(tools), lambda name: tools[name].content, view_tools.index.likeness
    )
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


def _note(best: list[ToolChoice]) -> str | None:
    """Say what to do where no tool fits, or none that is surely right."""
    if not best:
        return (
            "No tool fits. Describe the task in other words, or list all tools with tools_discover."
        )
    if max(each.match.score for each in best) < weights.SCORE_WEAK:
        return "Only weak matches: read what a tool does with tool_help before you call it."
    return None


def _has_support(choice: ToolChoice) -> bool:
    return choice.support is not None and choice.support.worked > 0


def _intent_support(choice: ToolChoice) -> IntentSupport:
    support = choice.support
    assert support is not None
    return {
        "toolName": choice.tool.name,
        "confidence": round(support.belief.mean, 4),
        "reason": f"It worked after {support.worked} of {support.tried} similar requests.",
        "parameters": placeholders(choice.tool),
    }
