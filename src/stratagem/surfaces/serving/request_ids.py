"""The id of the request that is being answered: in its header, and in every line of the log."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

__all__ = ["CURRENT", "HEADER", "request_id"]

HEADER: Final = "x-request-id"
CURRENT: Final[ContextVar[str]] = ContextVar("request_id", default="")


def request_id() -> str:
    """Return the id of the request that is being answered; empty outside of one."""
    return CURRENT.get()
