"""Text that cannot be encoded as UTF-8, made sendable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["escape_surrogates"]


def escape_surrogates(value: Any) -> Any:
    r"""Return JSON with each lone surrogate as its escape (`\ud83d`).

    Errors quote input, which may contain them, and no answer could be encoded with one.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {escape_surrogates(name): escape_surrogates(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [escape_surrogates(item) for item in value]
    return value
