"""Names of tools in the form that providers accept.

A name that every provider accepts is unchanged. Any other is written with the allowed characters
and a suffix from its hash, so that different names stay different. The original is found by
converting the registered names and comparing.
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
    """Return the name of a tool as it is sent to providers."""
    if len(name) <= limits.PROVIDER_NAME_CHARS_MAX and _ALLOWED.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    plain = _FORBIDDEN.sub("_", name)
    if not _ALLOWED.match(plain):
        plain = f"_{plain}"
    return f"{plain[: limits.PROVIDER_NAME_CHARS_MAX - len(digest) - 1]}_{digest}"


def original_name(sent: str, known: Collection[str]) -> str:
    """Return the known tool that a provider's name stands for, or else that name itself."""
    if sent in known:
        return sent
    return next((name for name in known if provider_name(name) == sent), sent)
