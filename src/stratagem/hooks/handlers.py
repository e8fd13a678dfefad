"""The choice of the half that handles an event: the lean one, or the thorough one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stratagem.hooks.clients import (
    COMPACT,
    COMPACTED,
    END,
    PROMPT,
    START,
    STOP,
    HookEvent,
    takes_context,
)
from stratagem.hooks.session_files import SessionFiles
from stratagem.hooks.settings import HookSettings

if TYPE_CHECKING:
    from stratagem.bootstrap import Runtime

__all__ = ["handle_event"]

_THOROUGH: Final = frozenset({START, STOP, COMPACT, COMPACTED, END})


def handle_event(event: HookEvent, settings: HookSettings, runtime: Runtime | None = None) -> str:
    """Handle an event; return the text that answers it, which may be empty.

    `runtime` is the database where a process has it open; otherwise it is opened if need be.
    """
    files = SessionFiles(settings.database, event.client, event.session)
    if files.is_repeat(event):
        return ""
    if event.kind in _THOROUGH:
        if settings.is_on("capture"):
            from stratagem.hooks.records import spool_turn

            # First of all: what follows may be cut off by the time limit.
            spool_turn(event, settings, files)
        from stratagem.hooks.turns import handle_turn

        return handle_turn(event, settings, files, runtime)
    if event.kind == PROMPT:
        from stratagem.hooks.prompts import handle_prompt

        return handle_prompt(event, settings, files, wanted=takes_context(event))
    from stratagem.hooks.tools import handle_tool

    return handle_tool(event, settings, files, wanted=takes_context(event))
