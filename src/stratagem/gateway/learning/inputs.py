"""What the operations on corrections take. The document's names are in camel case."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from stratagem import limits
from stratagem.gateway.inputs import AsOf, Branch, ContextInput, Input, RequestId, ToolName

__all__ = [
    "CircuitsInput",
    "ConfigureInput",
    "DiagnoseInput",
    "InsightsInput",
    "PatternsInput",
    "StatusInput",
    "TestCase",
    "TestInput",
]


class DiagnoseInput(Input):
    """Parameters of error_diagnose."""

    error: str = Field("", max_length=limits.SIGNATURE_CHARS_MAX, description="The error's text")
    tool_name: str | None = Field(None, max_length=512)
    parameters: dict[str, Any] | str | None = None
    enable_auto_correction: bool = True
    include_alternatives: bool = False
    max_corrections: int = Field(3, ge=0, le=limits.CORRECTION_CANDIDATES_MAX)
    context: ContextInput | None = None
    branch: Branch = None


class StatusInput(Input):
    """Parameters of auto_correction_status."""

    include_metrics: bool = True
    include_active_corrections: bool = True
    time_range: str = Field("24h", description="Such as 1h, 24h, 7d")
    branch: Branch = None
    as_of: AsOf = None


class ConfigureInput(Input):
    """Parameters of auto_correction_configure."""

    settings: dict[str, Any] = Field(default_factory=dict)
    preset: Literal["production", "staging", "development"] | None = None
    tool_name: str | None = Field(None, max_length=512, description="For one tool only")
    reset: bool = Field(default=False, description="Begin with the default")
    apply_immediately: bool = Field(default=True, description="false: only say what would change")
    branch: Branch = None
    request_id: RequestId = None


class TestCase(Input):
    """One test: a call that does not fit, and what should become of it."""

    name: str | None = Field(None, max_length=200)
    tool_name: str | None = Field(None, alias="toolName", max_length=512)
    tool: str | None = Field(None, max_length=512)
    type: str | None = Field(None, description="With `tool`: an error made from the tool's schema")
    parameters: dict[str, Any] | str | None = None
    expected_error: str | None = None
    expected_correction: dict[str, Any] | None = None
    expected_success: bool | None = None


class TestInput(Input):
    """Parameters of auto_correction_test."""

    test_cases: list[TestCase] = Field(default_factory=list, max_length=limits.CORRECTION_TESTS_MAX)
    test_suite: str | None = None
    run_diagnostics: bool = False
    include_performance: bool = False
    branch: Branch = None


class InsightsInput(Input):
    """Parameters of auto_correction_insights."""

    time_range: str = Field("7d", description="Such as 1h, 24h, 7d")
    include_patterns: bool = True
    include_agent_breakdown: bool = True
    include_tool_breakdown: bool = True
    include_failures: bool = False
    min_pattern_usage: int = Field(1, ge=1)
    branch: Branch = None
    as_of: AsOf = None


class PatternsInput(Input):
    """Parameters of auto_correction_patterns."""

    action: Literal["list", "profile", "backup", "restore"] = "list"
    tool_name: ToolName | None = None
    min_usage: int = Field(0, ge=0, description="Of list and backup")
    backup: dict[str, Any] | None = Field(None, description="Of restore: what backup gave")
    branch: Branch = None
    as_of: AsOf = None
    request_id: RequestId = None


class CircuitsInput(Input):
    """Parameters of auto_correction_circuits."""

    action: Literal["list", "reset"] = "list"
    tool_name: ToolName | None = None
    reason: str = Field("", max_length=300)
    force: bool = Field(default=False, description="Before the five minutes are over")
