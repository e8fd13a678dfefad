"""What a run in the sandbox gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["CodeResult", "Killed", "Language", "LayerName", "OnOutput", "Stream"]

Killed: TypeAlias = Literal["time", "memory", "signal", "output"]
Language: TypeAlias = Literal["python", "javascript"]
LayerName: TypeAlias = Literal["monty", "quickjs", "bubblewrap", "landlock"]
Stream: TypeAlias = Literal["stdout", "stderr"]
OnOutput: TypeAlias = Callable[[Stream, str], None]


@dataclass(frozen=True, slots=True)
class CodeResult:
    """How a run ended.

    `killed` says which bound ended it, None where it ended by itself; a death by a signal is
    always one of them. `layer` is what held it. `handed_on` says why a snippet was run by the
    whole interpreter after the small one had refused it.
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
