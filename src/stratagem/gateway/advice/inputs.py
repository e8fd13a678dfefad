"""What the meta tools take. The document's names are in camel case."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from stratagem import limits
from stratagem.gateway.inputs import Branch, ContextInput, Input, ToolName

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
    Field(min_length=1, max_length=limits.INTENT_CHARS_MAX, description="What is to be done"),
]
# In the document it is a text with more about the request; over REST also who asks.
Context = Annotated[
    str | ContextInput | None,
    Field(description="More about it, or {agentId, channelId, requestId}"),
]
Count = Annotated[int, Field(ge=1, le=limits.RECOMMENDED_MAX)]


def labels(context: str | ContextInput | None) -> dict[str, Any]:
    """Return the labels of a context: for filtering and analysis, never identity."""
    if not isinstance(context, ContextInput):
        return {}
    return context.model_dump(by_alias=True, exclude_none=True)


class RecommendInput(Input):
    """Parameters of tools_recommend."""

    intent: Intent
    context: Context = None
    agent_context: ContextInput | None = Field(
        None, description="{agentId, channelId, requestId}, where context is a text"
    )
    max_recommendations: Count = limits.RECOMMENDED_DEFAULT
    include_validation_insights: bool = True
    include_parameter_examples: bool = True
    include_pattern_recommendations: bool = True
    branch: Branch = None

    @property
    def text(self) -> str:
        """What is asked for, with what was said about it."""
        more = self.context if isinstance(self.context, str) else None
        return f"{self.intent}\n{more}" if more else self.intent

    @property
    def labels(self) -> dict[str, Any]:
        """The labels of whoever asks."""
        return labels(self.agent_context or self.context)


class OnErrorInput(Input):
    """Parameters of tools_recommend_on_error."""

    failed_tool: ToolName
    error_message: str = Field(min_length=1, max_length=limits.INTENT_CHARS_MAX)
    failed_parameters: dict[str, Any] | str | None = None
    intent: str | None = Field(None, max_length=limits.INTENT_CHARS_MAX)
    max_alternatives: Count = 3
    include_parameter_corrections: bool = True
    include_learning_recommendations: bool = True
    context: ContextInput | None = None
    branch: Branch = None


class ValidateInput(Input):
    """Parameters of tools_validate."""

    tool_names: list[ToolName] = Field(min_length=1, max_length=limits.TOOLS_CHECKED_MAX)
    check_configuration: bool = False
    context: ContextInput | None = None
    branch: Branch = None


class DiscoverInput(Input):
    """Parameters of tools_discover."""

    category: str | None = None
    source: Literal["internal", "external"] | None = None
    name_pattern: str | None = Field(None, max_length=256, description="Part of a name, or a*b")
    include_schema: bool = False
    limit: int = Field(limits.TOOLS_LISTED_DEFAULT, ge=1, le=limits.TOOLS_LISTED_MAX)
    context: ContextInput | None = None
    branch: Branch = None


class CompareInput(Input):
    """Parameters of tools_compare."""

    tool_names: list[ToolName] = Field(min_length=2, max_length=limits.TOOLS_COMPARED_MAX)
    intent: str | None = Field(
        None, max_length=limits.INTENT_CHARS_MAX, description="What they are compared for"
    )
    context: ContextInput | None = None
    branch: Branch = None


class PlanInput(Input):
    """Parameters of workflow_plan."""

    goal: Intent
    inputs: dict[str, Any] = Field(
        default_factory=dict, description="Values at hand, by parameter name"
    )
    tools: list[ToolName] | None = Field(
        None, max_length=limits.PLAN_STEPS_MAX, description="Tools to chain, in this order"
    )
    max_steps: int = Field(5, ge=1, le=limits.PLAN_STEPS_MAX)
    name: str | None = Field(None, max_length=100)
    context: ContextInput | None = None
    branch: Branch = None
