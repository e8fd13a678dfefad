"""Running code and programs that are not trusted."""

from __future__ import annotations

from stratagem.gateway.sandbox.permissions import Filesystem, Permissions, read_permissions
from stratagem.gateway.sandbox.results import CodeResult, Killed, Language, LayerName, OnOutput
from stratagem.gateway.sandbox.sandbox import Engine, Sandbox
from stratagem.gateway.sandbox.trial import Report

__all__ = [
    "CodeResult",
    "Engine",
    "Filesystem",
    "Killed",
    "Language",
    "LayerName",
    "OnOutput",
    "Permissions",
    "Report",
    "Sandbox",
    "read_permissions",
]
