"""What the meta tools take. The document's names are in camel case."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.inputs import ContextInput, ToolName
from stratagem.parameters import BranchName, Input, Param, param

__all__ = [
    "CompareInput",
    "DiscoverInput",
    "OnErrorInput",
    "PlanInput",
    "RecommendInput",
    "ValidateInput",
    "labels",
]

Intent = Annotated[
    str,
    Param("The task", min_length=1, max_length=limits.INTENT_CHARS_MAX),
]
# In the document it is a text with more about the request; over REST also who asks.
Context = Annotated[
    str | ContextInput | None,
    Param("More about it, or {agentId, channelId, requestId}"),
]
Count = Annotated[int, Param("Most results", quiet=True, ge=1, le=limits.RECOMMENDED_MAX)]


def labels(context: str | ContextInput | None) -> dict[str, Any]:
    """Return the labels of a context: for filtering and analysis, never identity."""
    if not isinstance(context, ContextInput):
        return {}
    return context.labels()


@dataclass(kw_only=True)
class RecommendInput(Input):
    """Parameters of tools_recommend."""

    intent: Intent
    context: Context = None
    agent_context: ContextInput | None = param(
        "{agentId, channelId, requestId}, where context is a text", default=None
    )
    max_recommendations: Count = limits.RECOMMENDED_DEFAULT
    include_validation_insights: bool = param(
        "Tell whether each can be called now", default=True, quiet=True
    )
    include_parameter_examples: bool = param("Include example arguments", default=True, quiet=True)
    include_pattern_recommendations: bool = param(
        "Tell which tools are used together", default=True, quiet=True
    )
    include_own: bool = param("Recommend Stratagem's own operations too", default=False, quiet=True)
    branch: BranchName = None

    @property
    def text(self) -> str:
        """What is asked for, with what was said about it."""
        more = self.context if isinstance(self.context, str) else None
        return f"{self.intent}\n{more}" if more else self.intent

    @property
    def labels(self) -> dict[str, Any]:
        """The labels of whoever asks."""
        return labels(self.agent_context or self.context)


@dataclass(kw_only=True)
class OnErrorInput(Input):
    """Parameters of tools_recommend_on_error."""

    failed_tool: ToolName
    error_message: str = param(
        "The error of the failed call",
        min_length=1,
        max_length=limits.INTENT_CHARS_MAX,
        quiet=True,
    )
    failed_parameters: dict[str, Any] | str | None = param(
        "Arguments of the failed call", default=None, quiet=True
    )
    intent: str | None = param(
        "What the failed call should have done",
        default=None,
        max_length=limits.INTENT_CHARS_MAX,
        quiet=True,
    )
    max_alternatives: Count = 3
    include_parameter_corrections: bool = param(
        "Offer corrected parameters", default=True, quiet=True
    )
    include_learning_recommendations: bool = param(
        "Tell what was learned from earlier failures", default=True, quiet=True
    )
    context: ContextInput | None = param(
        "Labels for filtering: agentId, channelId, requestId", default=None, quiet=True
    )
    branch: BranchName = None


@dataclass(kw_only=True)
class ValidateInput(Input):
    """Parameters of tools_validate."""

    tool_names: list[ToolName] = param(
        "Names or ids of tools", min_length=1, max_length=limits.TOOLS_CHECKED_MAX, quiet=True
    )
    check_configuration: bool = param("Try its configuration too", default=False, quiet=True)
    context: ContextInput | None = param(
        "Labels for filtering: agentId, channelId, requestId", default=None, quiet=True
    )
    branch: BranchName = None


@dataclass(kw_only=True)
class DiscoverInput(Input):
    """Parameters of tools_discover."""

    category: str | None = param("Group of tools", default=None, quiet=True)
    source: Literal["internal", "external"] | None = param(
        "Where tools come from", default=None, quiet=True
    )
    name_pattern: str | None = param("Part of a name, or a*b", default=None, max_length=256)
    include_schema: bool = param("Include parameter schemas", default=False, quiet=True)
    limit: int = param(
        "Most results",
        default=limits.TOOLS_LISTED_DEFAULT,
        ge=1,
        le=limits.TOOLS_LISTED_MAX,
        quiet=True,
    )
    context: ContextInput | None = param(
        "Labels for filtering: agentId, channelId, requestId", default=None, quiet=True
    )
    branch: BranchName = None


@dataclass(kw_only=True)
class CompareInput(Input):
    """Parameters of tools_compare."""

    tool_names: list[ToolName] = param(
        "Names or ids of tools", min_length=2, max_length=limits.TOOLS_COMPARED_MAX, quiet=True
    )
    intent: str | None = param(
        "What they are compared for", default=None, max_length=limits.INTENT_CHARS_MAX
    )
    context: ContextInput | None = param(
        "Labels for filtering: agentId, channelId, requestId", default=None, quiet=True
    )
    branch: BranchName = None


@dataclass(kw_only=True)
class PlanInput(Input):
    """Parameters of workflow_plan."""

    goal: Intent
    inputs: dict[str, Any] = param("Values at hand, by parameter name", default_factory=dict)
    tools: list[ToolName] | None = param(
        "Tools to chain, in this order", default=None, max_length=limits.PLAN_STEPS_MAX
    )
    max_steps: int = param("Most steps", default=5, ge=1, le=limits.PLAN_STEPS_MAX, quiet=True)
    name: str | None = param("Its name", default=None, max_length=100, quiet=True)
    context: ContextInput | None = param(
        "Labels for filtering: agentId, channelId, requestId", default=None, quiet=True
    )
    branch: BranchName = None
