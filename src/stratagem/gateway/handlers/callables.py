"""Which Python functions a stored tool may name: those on the operator's list.

A pattern is `package.module:function` or `package.module:*`. An asterisk stands for one function
that the module itself defines: a module that has imported `os` does not offer `os.system`, nor
what it took over from another module. Functions that are added in a program, and those that an
installed package offers under an entry point, are named by nobody else and need no list.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from stratagem.errors import PermissionDenied

__all__ = ["CallableList"]

SETTING = "STRATAGEM_ALLOW_CALLABLES"


class CallableList:
    """The functions that an operator allows; None allows any."""

    def __init__(self, patterns: Sequence[str] | None) -> None:
        self._exact = None if patterns is None else frozenset(patterns)
        self._patterns = [each.partition(":") for each in patterns or () if "*" in each]
        self._bare = [each for each in patterns or () if ":" not in each]

    def require(self, place: str, function: Any = None) -> None:
        """Refuse a function that is not on the list.

        With the function itself, a pattern allows it only if its module defines it.

        Raises:
            PermissionDenied: The operator does not allow it.
        """
        if self._exact is None or place in self._exact:
            return
        module, _, path = place.partition(":")
        defined = function is None or getattr(function, "__module__", None) == module
        if defined and "." not in path and any(self._fits(module, path)):
            return
        raise PermissionDenied(
            f"The operator does not allow Python tools to call {place}.",
            callable=place,
            setting=SETTING,
            hint=f"To allow it: {SETTING}={place}, or --allow-callable {place} with serve and mcp."
            + self._advice(),
        )

    def _advice(self) -> str:
        """Say which entry of the list allows nothing, because it names a module alone."""
        if not self._bare:
            return ""
        module = self._bare[0]
        return f" On the list {module!r} allows nothing: for a module write {module}:*."

    def _fits(self, module: str, path: str) -> list[bool]:
        return [
            fnmatchcase(module, of) and fnmatchcase(path, name)
            for of, _colon, name in self._patterns
        ]
