"""Compiled regular expressions, kept between processes.

Masking, signatures and analysis have some two hundred patterns, and compiling them takes longer
than a hook has for everything. What the compiler makes of a pattern is a list of numbers, so it can
be kept: by the pattern, for this very build of Python and this release. `_sre.compile` checks the
numbers before it takes them, and whatever is wrong with the file, patterns are compiled as usual.

The start of a session makes the file, in a folder of the user's own: a project's may have been
written by anybody.
"""

from __future__ import annotations

import _sre  # type: ignore[import-not-found]
import marshal
import os
import re
import sys
from typing import Any, Final

from stratagem.projects import user_folder
from stratagem.version import VERSION

__all__ = ["PatternCache"]

# Of which `re.compile` calls one function; that it may not be there is all that is assumed.
_COMPILER: Final[Any] = getattr(re, "_compiler", None)
_SRE: Final[Any] = _sre
_PATTERNS_MAX: Final = 2_000

# Flags, code, number of groups, their numbers by name and their names by number.
_Code = tuple[int, bytes, int, dict[str, int], tuple[str | None, ...]]


class PatternCache:
    """Stands before the compiler of regular expressions, from when it is made."""

    def __init__(self) -> None:
        build = f"{sys.implementation.cache_tag}-{getattr(_SRE, 'MAGIC', 0)}"
        self._path = os.path.join(user_folder(), "hooks", f"patterns-{build}-{VERSION}.bin")
        self._kept = _read(self._path)
        self._new: set[tuple[str, int]] = set()
        self._compile = getattr(_COMPILER, "compile", None)
        if self._compile is not None:
            _COMPILER.compile = self._find

    def keep(self) -> None:
        """Write the patterns of this process, if the file lacks any of them."""
        if not self._new:
            return
        for pattern, flags in sorted(self._new)[: _PATTERNS_MAX - len(self._kept)]:
            self._kept[pattern, flags] = _code_of(pattern, flags)
        os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
        aside = f"{self._path}.{os.getpid()}"
        with open(aside, "wb") as file:
            file.write(marshal.dumps(self._kept))
        os.replace(aside, self._path)

    def _find(self, pattern: Any, flags: int = 0) -> Any:
        assert self._compile is not None
        if not isinstance(pattern, str):
            return self._compile(pattern, flags)
        known = self._kept.get((pattern, int(flags)))
        if known is not None:
            try:
                found, code, *groups = known
                return _SRE.compile(pattern, found, list(memoryview(code).cast("I")), *groups)
            except (RuntimeError, TypeError, ValueError, OverflowError):
                pass
        self._new.add((pattern, int(flags)))
        return self._compile(pattern, flags)


def _read(path: str) -> dict[tuple[str, int], _Code]:
    try:
        with open(path, "rb") as file:
            kept = marshal.loads(file.read())  # noqa: S302 -- from the user's own folder
    except (OSError, ValueError, EOFError, TypeError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _code_of(pattern: str, flags: int) -> _Code:
    """Return what the compiler makes of a pattern, as `_sre.compile` takes it."""
    from array import array

    parsed = _COMPILER._parser.parse(pattern, flags)  # noqa: SLF001 -- see above
    code = _COMPILER._code(parsed, flags)  # noqa: SLF001 -- see above
    names = {name: int(number) for name, number in parsed.state.groupdict.items()}
    places: list[str | None] = [None] * parsed.state.groups
    for name, number in names.items():
        places[number] = name
    numbers = array("I", [int(each) for each in code]).tobytes()
    groups = parsed.state.groups - 1
    return int(flags | parsed.state.flags), numbers, groups, names, tuple(places)
