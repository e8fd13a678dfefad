"""The sandbox for untrusted code and programs."""

from __future__ import annotations

from stratagem.gateway.sandbox.permissions import Filesystem, Permissions, read_permissions
from stratagem.gateway.sandbox.results import CodeResult, Killed, Language, LayerName, OnOutput
from stratagem.gateway.sandbox.sandbox import Engine, Sandbox
from stratagem.gateway.sandbox.trial import LayerReport

__all__ = [
    "CodeResult",
    "Engine",
    "Filesystem",
    "Killed",
    "Language",
    "LayerName",
    "LayerReport",
    "OnOutput",
    "Permissions",
    "Sandbox",
    "read_permissions",
]
