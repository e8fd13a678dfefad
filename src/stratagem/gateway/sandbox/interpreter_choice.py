"""Decides whether a snippet can run in a small interpreter.

The decision uses only what is cheap and certain: the permissions, and the modules and names in
the text that the small interpreters lack. Other unsupported features show when the code runs; the
small interpreter then reports them, and the code is run again in the full one.
"""

from __future__ import annotations

import re
from typing import Final

from stratagem.gateway.sandbox.permissions import Permissions
from stratagem.gateway.sandbox.results import Language

__all__ = ["find_unsupported_name", "find_unsupported_permissions"]

_MONTY_MODULES: Final = frozenset(
    {"asyncio", "base64", "bisect", "collections", "copy", "csv", "dataclasses", "datetime"}
    | {"decimal", "functools", "hashlib", "itertools", "json", "math", "random", "re", "sys"}
    | {"time", "typing"}
)
_PYTHON_IMPORT: Final = re.compile(
    r"^[ \t]*+(?:import[ \t](?P<names>[\w., \t]++)"
    r"|from[ \t]++(?P<module>\w++)[\w.]*+[ \t]++import\b)",
    re.MULTILINE,
)
# Names that Node has and the language alone does not.
_NODE_NAMES: Final = re.compile(
    r"(?<![\w.$])(require|module|exports|process|Buffer|__dirname|__filename|global|import"
    r"|setTimeout|setInterval|setImmediate|clearTimeout|clearInterval|queueMicrotask|fetch"
    r"|URL|URLSearchParams|TextEncoder|TextDecoder|structuredClone|AbortController|Blob"
    r"|EventTarget|Event|crypto|Intl|WebAssembly|btoa|atob)\b"
)


def find_unsupported_permissions(permissions: Permissions, *, has_stdin: bool) -> str | None:
    """Return the permissions that no small interpreter supports, as text, or None."""
    asked = (
        ("network", permissions.network),
        ("files", permissions.filesystem != "none"),
        ("processes", permissions.process_execution),
        ("standard input", has_stdin),
    )
    return ", ".join(name for name, wanted in asked if wanted) or None


def find_unsupported_name(language: Language, code: str) -> str | None:
    """Return a name in the code that only the full interpreter has, or None."""
    if language == "javascript":
        found = _NODE_NAMES.search(code)
        return found[1] if found else None
    return next((name for name in _imports(code) if name not in _MONTY_MODULES), None)


def _imports(code: str) -> list[str]:
    names: list[str] = []
    for found in _PYTHON_IMPORT.finditer(code):
        listed = found["module"] or found["names"]
        names += [part.split()[0].split(".")[0] for part in listed.split(",") if part.strip()]
    return names
