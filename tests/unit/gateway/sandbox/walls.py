"""The layers that can run here, and how tests use one of them alone."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from stratagem.gateway.sandbox import CodeResult, Permissions, Sandbox
from stratagem.gateway.sandbox.bubblewrap import Bubblewrap
from stratagem.gateway.sandbox.landlock import Landlock
from stratagem.gateway.sandbox.layers import Layer
from stratagem.gateway.sandbox.results import Language
from stratagem.gateway.sandbox.snippets import Monty, QuickJS
from stratagem.gateway.sandbox.trial import MODES

LAYERS: dict[str, Layer] = {
    "monty": Monty(),
    "quickjs": QuickJS(),
    "bubblewrap": Bubblewrap(),
    "landlock": Landlock(),
}
PAIRS: list[tuple[Layer, Language]] = [
    (LAYERS[name], language) for name, language in MODES if name in LAYERS
]
FULL = [(layer, language) for layer, language in PAIRS if layer.name in {"bubblewrap", "landlock"}]
SMALL = [pair for pair in PAIRS if pair not in FULL]
PYTHON = [layer for layer, language in FULL if language == "python"]
# Generous: the machine may be busy with other tests.
PLENTY = Permissions(seconds=100)


def named(value: Any) -> str:
    return str(getattr(value, "name", value))


def need(layer: Layer, language: Language) -> None:
    """Skip, with the reason, where a layer cannot run."""
    if sys.platform != "linux" and layer.name in {"bubblewrap", "landlock"}:
        pytest.skip("only on Linux")
    if reason := layer.missing_requirement(language):
        pytest.skip(f"{layer.name}: {reason}")


def only(layer: Layer) -> Sandbox:
    """Return a sandbox that has this layer and no other; a known one is tried only once."""
    return _SANDBOXES[layer.name] if layer is LAYERS[layer.name] else _alone(layer)


def _alone(layer: Layer) -> Sandbox:
    if layer.name in {"monty", "quickjs"}:
        return Sandbox(small=[layer], full=[])
    return Sandbox(small=[], full=[layer], network=True)


_SANDBOXES = {name: _alone(layer) for name, layer in LAYERS.items()}


def run_code(
    layer: Layer, language: Language, code: str, permissions: Permissions = PLENTY, **more: Any
) -> CodeResult:
    need(layer, language)
    return asyncio.run(only(layer).run_code(language, code, permissions=permissions, **more))
