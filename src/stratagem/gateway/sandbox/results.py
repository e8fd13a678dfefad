"""The result of a run in the sandbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from stratagem.deferred_dataclasses import dataclass

__all__ = ["CodeResult", "Killed", "Language", "LayerName", "OnOutput", "Stream"]

Killed: TypeAlias = Literal["time", "memory", "signal", "output"]
Language: TypeAlias = Literal["python", "javascript"]
LayerName: TypeAlias = Literal["monty", "quickjs", "bubblewrap", "landlock"]
Stream: TypeAlias = Literal["stdout", "stderr"]
OnOutput: TypeAlias = Callable[[Stream, str], None]


@dataclass(frozen=True, slots=True)
class CodeResult:
    """How a run ended.

    `killed` says which limit or signal ended it, None if it ended by itself. `layer` is the layer
    it ran in. `handed_on` says which feature made a snippet run in the full interpreter after the
    small one did not support it.
    """

    stdout: str
    stderr: str
    exit_code: int
    result: Any
    duration: float
    killed: Killed | None
    layer: LayerName
    handed_on: str | None = None

    @property
    def succeeded(self) -> bool:
        """Tell whether the run ended by itself and without an error."""
        return self.killed is None and self.exit_code == 0
