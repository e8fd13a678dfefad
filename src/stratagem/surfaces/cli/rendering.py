"""Which answers are shown as tables, whichever command asked for them."""

from __future__ import annotations

from importlib import import_module
from typing import Final, cast

from stratagem.surfaces.cli.output import Render

__all__ = ["RENDERERS", "renderer_of"]

_HERE: Final = "stratagem.surfaces.cli"
# Each operation with the module and the function that show its answer.
RENDERERS: Final[dict[str, tuple[str, str]]] = {
    "error_diagnose": ("correction_tables", "show_diagnosis"),
    "auto_correction_status": ("correction_tables", "show_status"),
    "auto_correction_configure": ("correction_tables", "show_configured"),
    "auto_correction_test": ("correction_tables", "show_tested"),
    "auto_correction_insights": ("correction_tables", "show_insights"),
    "auto_correction_patterns": ("correction_tables", "show_patterns"),
    "auto_correction_circuits": ("correction_tables", "show_circuits"),
    "tools_recommend": ("advice_tables", "show_recommended"),
    "tools_recommend_on_error": ("advice_tables", "show_recovery"),
    "tools_validate": ("advice_tables", "show_validated"),
    "tools_discover": ("advice_tables", "show_discovered"),
    "tools_compare": ("advice_tables", "show_compared"),
    "workflow_plan": ("advice_tables", "show_plan"),
}


def renderer_of(operation: str) -> Render | None:
    """Return what shows the answer of an operation, where there is more than a line to show."""
    if operation not in RENDERERS:
        return None
    module, function = RENDERERS[operation]
    return cast("Render", getattr(import_module(f"{_HERE}.{module}"), function))
