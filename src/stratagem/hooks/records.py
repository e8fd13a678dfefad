"""What is kept of a session: masked, bounded, and with its source, before it touches a disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from stratagem.hooks.clients import STOP, HookEvent
from stratagem.hooks.context_text import strip_marked
from stratagem.hooks.git_branch import memory_branch
from stratagem.hooks.session_files import SessionFiles
from stratagem.hooks.settings import HookSettings
from stratagem.redaction import mask

__all__ = ["keep_ends", "mask_text", "spool_message", "spool_prompt", "spool_tool", "spool_turn"]

# A message is what is worth finding again; of a tool's result both ends tell what it was.
_MESSAGE_CHARS_MAX: Final = 16_000
_OUTPUT_CHARS_MAX: Final = 4_000
_ARGUMENT_CHARS_MAX: Final = 2_000


def spool_prompt(prompt: str, settings: HookSettings, files: SessionFiles) -> None:
    """Keep what the user said."""
    spool_message("user", prompt, settings, files)


def spool_turn(event: HookEvent, settings: HookSettings, files: SessionFiles) -> None:
    """Keep what the assistant said last, or what a compaction made of a session."""
    if event.kind == STOP:
        spool_message("assistant", event.reply, settings, files)
    elif event.summary:
        spool_message("assistant", event.summary, settings, files, "compaction")


def spool_message(
    role: str, text: str, settings: HookSettings, files: SessionFiles, event: str = "message"
) -> None:
    """Keep a message of the user or of the assistant, without what was injected into it."""
    said = strip_marked(text)
    if said:
        data = {"role": role, "content": keep_ends(mask_text(said, settings), _MESSAGE_CHARS_MAX)}
        _spool(event, data, role, settings, files)


def spool_tool(event: HookEvent, settings: HookSettings, files: SessionFiles) -> None:
    """Keep what a tool was asked and what it answered."""
    output = strip_marked(event.output)
    data = {
        "tool": event.tool,
        "input": _arguments(event, settings),
        "output": keep_ends(mask_text(output, settings), _OUTPUT_CHARS_MAX),
        "ok": not event.failed,
    }
    _spool("tool", data, "web" if event.of_web else "tool", settings, files)


def keep_ends(text: str, chars_max: int) -> str:
    """Return a text, or its beginning and its end, where an error stands."""
    if len(text) <= chars_max:
        return text
    half = chars_max // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def _arguments(event: HookEvent, settings: HookSettings) -> str:
    given = event.command
    if not given:
        given = event.arguments if isinstance(event.arguments, str) else _dump(event.arguments)
    return keep_ends(mask_text(given, settings), _ARGUMENT_CHARS_MAX)


def _dump(arguments: Any) -> str:
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def mask_text(text: str, settings: HookSettings) -> str:
    """Return a text without secrets."""
    return mask(text, settings.level)


def _spool(
    event: str,
    data: Mapping[str, Any],
    source: str,
    settings: HookSettings,
    files: SessionFiles,
) -> None:
    files.spool(
        {
            "do": "log",
            "event": event,
            "data": data,
            "source": source,
            "namespace": settings.namespace,
            "branch": memory_branch(settings),
        }
    )
