"""Names of tools as providers take them.

A name that every provider takes stays as it is. Any other is written with the characters that
are allowed and ends in a piece of its own hash, so that two never become one; among the names
that are registered, the way back is found by going there again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from typing import Final

from stratagem import limits

__all__ = ["original_name", "provider_name"]

_ALLOWED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9_-]")


def provider_name(name: str) -> str:
    """Return the name by which providers know a tool."""
    if len(name) <= limits.PROVIDER_NAME_CHARS_MAX and _ALLOWED.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    plain = _FORBIDDEN.sub("_", name)
    if not _ALLOWED.match(plain):
        plain = f"_{plain}"
    return f"{plain[: limits.PROVIDER_NAME_CHARS_MAX - len(digest) - 1]}_{digest}"


def original_name(sent: str, known: Collection[str]) -> str:
    """Return which of the known tools a provider means; its own word where it is none of them."""
    if sent in known:
        return sent
    return next((name for name in known if provider_name(name) == sent), sent)
