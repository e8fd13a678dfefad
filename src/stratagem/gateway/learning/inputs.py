"""What the operations on corrections take. The document's names are in camel case."""

from __future__ import annotations

from typing import Any, Literal

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.inputs import ContextInput, ToolName
from stratagem.parameters import AsOf, BranchName, Input, RequestId, param

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


@dataclass(kw_only=True)
class DiagnoseInput(Input):
    """Parameters of error_diagnose."""

    error: str = param("The error's text", default="", max_length=limits.SIGNATURE_CHARS_MAX)
    tool_name: str | None = param("Name or id of a tool", default=None, max_length=512, quiet=True)
    parameters: dict[str, Any] | str | None = param(
        "Parameters of the call", default=None, quiet=True
    )
    enable_auto_correction: bool = param("Look for corrected parameters", default=True, quiet=True)
    include_alternatives: bool = param("Name other tools", default=False, quiet=True)
    max_corrections: int = param(
        "Most corrections", default=3, ge=0, le=limits.CORRECTION_CANDIDATES_MAX, quiet=True
    )
    context: ContextInput | None = param(
        "Labels for filtering: agentId, channelId, requestId", default=None, quiet=True
    )
    branch: BranchName = None


@dataclass(kw_only=True)
class StatusInput(Input):
    """Parameters of auto_correction_status."""

    include_metrics: bool = param("Include figures", default=True, quiet=True)
    include_active_corrections: bool = param("List corrections under way", default=True, quiet=True)
    time_range: str = param("Such as 1h, 24h, 7d", default="24h")
    branch: BranchName = None
    as_of: AsOf = None


@dataclass(kw_only=True)
class ConfigureInput(Input):
    """Parameters of auto_correction_configure."""

    settings: dict[str, Any] = param("Settings to change", default_factory=dict, quiet=True)
    preset: Literal["production", "staging", "development"] | None = param(
        "A named set of settings", default=None, quiet=True
    )
    tool_name: str | None = param("For one tool only", default=None, max_length=512)
    reset: bool = param("Start from the default", default=False)
    apply_immediately: bool = param("false: only say what would change", default=True)
    branch: BranchName = None
    request_id: RequestId = None


@dataclass(kw_only=True)
class TestCase(Input):
    """One test: a call that does not fit, and what should become of it."""

    name: str | None = param("Its name", default=None, max_length=200, quiet=True)
    tool_name: str | None = param("Name or id of a tool", default=None, max_length=512, quiet=True)
    tool: str | None = param("Name or id of a tool", default=None, max_length=512, quiet=True)
    type: str | None = param("With `tool`: an error made from the tool's schema", default=None)
    parameters: dict[str, Any] | str | None = param(
        "Parameters of the call", default=None, quiet=True
    )
    expected_error: str | None = param("Code of the expected error", default=None, quiet=True)
    expected_correction: dict[str, Any] | None = param(
        "Expected parameters", default=None, quiet=True
    )
    expected_success: bool | None = param(
        "Whether it should be corrected", default=None, quiet=True
    )


@dataclass(kw_only=True)
class TestInput(Input):
    """Parameters of auto_correction_test."""

    test_cases: list[TestCase] = param(
        "The tests", default_factory=list, max_length=limits.CORRECTION_TESTS_MAX, quiet=True
    )
    test_suite: str | None = param("A named set of tests", default=None, quiet=True)
    run_diagnostics: bool = param("Check the engine itself too", default=False, quiet=True)
    include_performance: bool = param("Include timings", default=False, quiet=True)
    branch: BranchName = None


@dataclass(kw_only=True)
class InsightsInput(Input):
    """Parameters of auto_correction_insights."""

    time_range: str = param("Such as 1h, 24h, 7d", default="7d")
    include_patterns: bool = param("List learned patterns", default=True, quiet=True)
    include_agent_breakdown: bool = param("Count by agent", default=True, quiet=True)
    include_tool_breakdown: bool = param("Count by tool", default=True, quiet=True)
    include_failures: bool = param("List corrections that failed", default=False, quiet=True)
    min_pattern_usage: int = param(
        "Only patterns used at least this often", default=1, ge=1, quiet=True
    )
    branch: BranchName = None
    as_of: AsOf = None


@dataclass(kw_only=True)
class PatternsInput(Input):
    """Parameters of auto_correction_patterns."""

    action: Literal["list", "profile", "backup", "restore"] = param(
        "What to do", default="list", quiet=True
    )
    tool_name: ToolName | None = param("Name or id of a tool", default=None, quiet=True)
    min_usage: int = param("Of list and backup", default=0, ge=0)
    backup: dict[str, Any] | None = param("For restore: what backup returned", default=None)
    branch: BranchName = None
    as_of: AsOf = None
    request_id: RequestId = None


@dataclass(kw_only=True)
class CircuitsInput(Input):
    """Parameters of auto_correction_circuits."""

    action: Literal["list", "reset"] = param("What to do", default="list", quiet=True)
    tool_name: ToolName | None = param("Name or id of a tool", default=None, quiet=True)
    reason: str = param("Why it is reset", default="", max_length=300, quiet=True)
    force: bool = param("Even before the five minutes are over", default=False)
