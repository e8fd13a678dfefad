"""The tools about tools as methods: which one, and what after an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from stratagem import limits
from stratagem.sdk.answers import (
    Comparison,
    Discovered,
    Plan,
    Recommended,
    Recovery,
    Validated,
)
from stratagem.sdk.calling import Calling, listed

__all__ = ["AdviceMethods"]


class AdviceMethods(Calling):
    """Which tool to use. No language model is asked; every figure is counted from records."""

    def recommend(
        self,
        intent: str,
        *,
        context: str | Mapping[str, Any] | None = None,
        agent_context: Mapping[str, Any] | None = None,
        max_recommendations: int = limits.RECOMMENDED_DEFAULT,
        include_validation_insights: bool = True,
        include_parameter_examples: bool = True,
        include_pattern_recommendations: bool = True,
        branch: str | None = None,
    ) -> Recommended:
        """Return the tools that do what is to be done, best first, each with its reasons."""
        found: Recommended = self._ask(
            "tools_recommend",
            intent=intent,
            context=context,
            agent_context=agent_context,
            max_recommendations=max_recommendations,
            include_validation_insights=include_validation_insights,
            include_parameter_examples=include_parameter_examples,
            include_pattern_recommendations=include_pattern_recommendations,
            branch=branch,
        )
        return found

    def recommend_on_error(
        self,
        failed_tool: str,
        error_message: str,
        *,
        failed_parameters: Mapping[str, Any] | str | None = None,
        intent: str | None = None,
        max_alternatives: int = 3,
        include_parameter_corrections: bool = True,
        include_learning_recommendations: bool = True,
        context: Mapping[str, Any] | None = None,
        branch: str | None = None,
    ) -> Recovery:
        """Return corrected arguments, known fixes and other tools, after a call that failed."""
        found: Recovery = self._ask(
            "tools_recommend_on_error",
            failed_tool=failed_tool,
            error_message=error_message,
            failed_parameters=failed_parameters,
            intent=intent,
            max_alternatives=max_alternatives,
            include_parameter_corrections=include_parameter_corrections,
            include_learning_recommendations=include_learning_recommendations,
            context=context,
            branch=branch,
        )
        return found

    def validate(
        self,
        tool_names: str | Sequence[str],
        *,
        check_configuration: bool = False,
        context: Mapping[str, Any] | None = None,
        branch: str | None = None,
    ) -> Validated:
        """Return whether tools can be called now."""
        found: Validated = self._ask(
            "tools_validate",
            tool_names=listed(tool_names),
            check_configuration=check_configuration,
            context=context,
            branch=branch,
        )
        return found

    def discover(
        self,
        name_pattern: str | None = None,
        *,
        category: str | None = None,
        source: Literal["internal", "external"] | None = None,
        include_schema: bool = False,
        limit: int = limits.TOOLS_LISTED_DEFAULT,
        context: Mapping[str, Any] | None = None,
        branch: str | None = None,
    ) -> Discovered:
        """Return the tools of a name, a category and a source, and how they group."""
        found: Discovered = self._ask(
            "tools_discover",
            name_pattern=name_pattern,
            category=category,
            source=source,
            include_schema=include_schema,
            limit=limit,
            context=context,
            branch=branch,
        )
        return found

    def compare(
        self,
        tool_names: Sequence[str],
        *,
        intent: str | None = None,
        context: Mapping[str, Any] | None = None,
        branch: str | None = None,
    ) -> Comparison:
        """Return how tools for the same job differ: parameters, evidence, latency."""
        found: Comparison = self._ask(
            "tools_compare",
            tool_names=listed(tool_names),
            intent=intent,
            context=context,
            branch=branch,
        )
        return found

    def workflow_plan(
        self,
        goal: str,
        *,
        inputs: Mapping[str, Any] | None = None,
        tools: Sequence[str] | None = None,
        max_steps: int = 5,
        name: str | None = None,
        context: Mapping[str, Any] | None = None,
        branch: str | None = None,
    ) -> Plan:
        """Return steps to a goal, each argument with its source; run it with `pipeline`."""
        found: Plan = self._ask(
            "workflow_plan",
            goal=goal,
            inputs=inputs,
            tools=None if tools is None else listed(tools),
            max_steps=max_steps,
            name=name,
            context=context,
            branch=branch,
        )
        return found
