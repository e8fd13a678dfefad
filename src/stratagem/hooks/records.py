"""The captured records of a session: masked and bounded before they are written to a disk.

Of a long text both ends are kept, where an error stands, and no more of it than that is masked: a
command may print megabytes, and a hook has no time for them.
"""

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

__all__ = ["mask_ends", "mask_text", "spool_message", "spool_prompt", "spool_tool", "spool_turn"]

# A message is what is worth finding again; of a tool's result both ends tell what it was.
_MESSAGE_CHARS_MAX: Final = 16_000
_OUTPUT_CHARS_MAX: Final = 4_000
_ARGUMENT_CHARS_MAX: Final = 2_000
# So much more of each end is masked than is kept: a secret that is cut in two is not recognised.
_MARGIN_CHARS: Final = 20_000
# The server under whichever name a client gives its tools.
_OWN_TOOLS: Final = ("stratagem", "strata_")


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
        data = {"role": role, "content": mask_ends(said, _MESSAGE_CHARS_MAX, settings)}
        _spool(event, data, role, settings, files)


def spool_tool(event: HookEvent, settings: HookSettings, files: SessionFiles) -> None:
    """Keep what a tool was asked and what it answered; what the memory itself said is no news."""
    if any(name in event.tool.lower() for name in _OWN_TOOLS):
        return
    output = strip_marked(event.output)
    data = {
        "tool": event.tool,
        "input": _arguments(event, settings),
        "output": mask_ends(output, _OUTPUT_CHARS_MAX, settings),
        "ok": not event.failed,
    }
    _spool("tool", data, "web" if event.of_web else "tool", settings, files)


def mask_ends(text: str, chars_max: int, settings: HookSettings) -> str:
    """Return a text without secrets: all of it, or its beginning and its end."""
    half = chars_max // 2
    seen = half + _MARGIN_CHARS
    if len(text) <= 2 * seen:
        begin = end = mask_text(text, settings)
        if len(begin) <= chars_max:
            return begin
        left_out = len(begin) - 2 * half
    else:
        begin, end = mask_text(text[:seen], settings), mask_text(text[-seen:], settings)
        left_out = len(text) - 2 * half
    return f"{begin[:half]}\n… {left_out} characters left out …\n{end[-half:]}"


def _arguments(event: HookEvent, settings: HookSettings) -> str:
    given = event.command or event.patch
    if not given:
        given = event.arguments if isinstance(event.arguments, str) else _dump(event.arguments)
    return mask_ends(given, _ARGUMENT_CHARS_MAX, settings)


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
