"""The tools about corrections as methods: the names are the tools' own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from stratagem.sdk.answers import (
    Circuits,
    Configured,
    CorrectionStatus,
    Diagnosis,
    Insights,
    Patterns,
    Tested,
)
from stratagem.sdk.calling import Calling

__all__ = ["CorrectionMethods"]


class CorrectionMethods(Calling):
    """What is wrong with calls, what is corrected, and what was learned of it."""

    def error_diagnose(
        self,
        error: str = "",
        *,
        tool_name: str | None = None,
        parameters: Mapping[str, Any] | str | None = None,
        enable_auto_correction: bool = True,
        include_alternatives: bool = False,
        max_corrections: int = 3,
        context: Mapping[str, Any] | None = None,
        branch: str | None = None,
    ) -> Diagnosis:
        """Return what is wrong with a call and how it could be mended; nothing is run."""
        found: Diagnosis = self._ask(
            "error_diagnose",
            error=error,
            tool_name=tool_name,
            parameters=parameters,
            enable_auto_correction=enable_auto_correction,
            include_alternatives=include_alternatives,
            max_corrections=max_corrections,
            context=context,
            branch=branch,
        )
        return found

    def auto_correction_status(
        self,
        *,
        include_metrics: bool = True,
        include_active_corrections: bool = True,
        time_range: str = "24h",
        branch: str | None = None,
        as_of: str | int | None = None,
    ) -> CorrectionStatus:
        """Return how the corrections are doing: health, figures of a time, the policy."""
        found: CorrectionStatus = self._ask(
            "auto_correction_status",
            include_metrics=include_metrics,
            include_active_corrections=include_active_corrections,
            time_range=time_range,
            branch=branch,
            as_of=as_of,
        )
        return found

    def auto_correction_configure(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        preset: Literal["production", "staging", "development"] | None = None,
        tool_name: str | None = None,
        reset: bool = False,
        apply_immediately: bool = True,
        branch: str | None = None,
        request_id: str | None = None,
    ) -> Configured:
        """Change what corrections may do, for all tools or for one; effective at once."""
        changed: Configured = self._ask(
            "auto_correction_configure",
            settings=settings,
            preset=preset,
            tool_name=tool_name,
            reset=reset,
            apply_immediately=apply_immediately,
            branch=branch,
            request_id=request_id,
        )
        return changed

    def auto_correction_test(
        self,
        test_cases: Sequence[Mapping[str, Any]] = (),
        *,
        test_suite: str | None = None,
        run_diagnostics: bool = False,
        include_performance: bool = False,
        branch: str | None = None,
    ) -> Tested:
        """Return what would become of given calls, or of a named suite; nothing is run."""
        tested: Tested = self._ask(
            "auto_correction_test",
            test_cases=[dict(each) for each in test_cases],
            test_suite=test_suite,
            run_diagnostics=run_diagnostics,
            include_performance=include_performance,
            branch=branch,
        )
        return tested

    def auto_correction_insights(
        self,
        *,
        time_range: str = "7d",
        include_patterns: bool = True,
        include_agent_breakdown: bool = True,
        include_tool_breakdown: bool = True,
        include_failures: bool = False,
        min_pattern_usage: int = 1,
        branch: str | None = None,
        as_of: str | int | None = None,
    ) -> Insights:
        """Return what the records of a time say: patterns, agents, tools, failures, trends."""
        found: Insights = self._ask(
            "auto_correction_insights",
            time_range=time_range,
            include_patterns=include_patterns,
            include_agent_breakdown=include_agent_breakdown,
            include_tool_breakdown=include_tool_breakdown,
            include_failures=include_failures,
            min_pattern_usage=min_pattern_usage,
            branch=branch,
            as_of=as_of,
        )
        return found

    def auto_correction_patterns(
        self,
        action: Literal["list", "profile", "backup", "restore"] = "list",
        *,
        tool_name: str | None = None,
        min_usage: int = 0,
        backup: Mapping[str, Any] | None = None,
        branch: str | None = None,
        as_of: str | int | None = None,
        request_id: str | None = None,
    ) -> Patterns:
        """List what was learned, show how a tool is called, back patterns up or restore them."""
        found: Patterns = self._ask(
            "auto_correction_patterns",
            action=action,
            tool_name=tool_name,
            min_usage=min_usage,
            backup=backup,
            branch=branch,
            as_of=as_of,
            request_id=request_id,
        )
        return found

    def auto_correction_circuits(
        self,
        action: Literal["list", "reset"] = "list",
        *,
        tool_name: str | None = None,
        reason: str = "",
        force: bool = False,
    ) -> Circuits:
        """List the breakers that hold corrections back, or close one."""
        found: Circuits = self._ask(
            "auto_correction_circuits",
            action=action,
            tool_name=tool_name,
            reason=reason,
            force=force,
        )
        return found
