"""The allow list of Python functions that a stored tool may name.

A pattern is `package.module:function` or `package.module:*`. An asterisk matches functions that
the module itself defines, not those it imports: a module that has imported `os` does not allow
`os.system`. Functions that a program adds, and those of installed packages with an entry point,
need no entry, because a stored tool cannot introduce them.
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
        if defined and "." not in path and any(self._matches(module, path)):
            return
        raise PermissionDenied(
            f"The operator does not allow Python tools to call {place}.",
            callable=place,
            setting=SETTING,
            hint=f"To allow it: {SETTING}={place}, or --allow-callable {place} with serve and mcp."
            + self._advice(),
        )

    def _advice(self) -> str:
        """Return a hint about an entry that allows nothing because it names only a module."""
        if not self._bare:
            return ""
        module = self._bare[0]
        return f" On the list {module!r} allows nothing: for a module write {module}:*."

    def _matches(self, module: str, path: str) -> list[bool]:
        return [
            fnmatchcase(module, of) and fnmatchcase(path, name)
            for of, _colon, name in self._patterns
        ]
