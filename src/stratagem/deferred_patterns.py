"""Regular expressions that are compiled when they are first used.

Compiling a long one takes longer than importing the module that it stands in, and most commands
match few of them.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

__all__ = ["DeferredPattern", "deferred_pattern"]


class DeferredPattern:
    """Stands for a pattern, and keeps each method that it was asked for."""

    def __init__(self, text: str, flags: int = 0) -> None:
        self._text: Final = text
        self._flags: Final = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern itself."""
        return re.compile(self._text, self._flags)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.compiled, name)
        setattr(self, name, value)
        return value

    def __reduce__(self) -> tuple[type[DeferredPattern], tuple[str, int]]:
        # A copy has no attributes at first, and `__getattr__` would look for them without end.
        return type(self), (self._text, self._flags)


if TYPE_CHECKING:
    deferred_pattern = re.compile
else:
    deferred_pattern = DeferredPattern
