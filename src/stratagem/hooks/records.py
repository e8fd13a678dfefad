"""The captured records of a session: masked and bounded before they are written to a disk.

Of a long text both ends are kept, where an error stands, and between them the lines that look like
errors. Not all of it is searched for these or masked: a command may print megabytes, and a hook has
no time for them.
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
# Between the ends so much is searched for lines that look like errors. So many are kept, each cut,
# in a quarter of the room.
_SEARCHED_CHARS_MAX: Final = 400_000
_ERRORS_MAX: Final = 20
_ERROR_CHARS_MAX: Final = 300
_ERROR_WORDS: Final = (
    "error", "exception", "fatal", "critical", "failed", "failure", "panic", "traceback",
)  # fmt: skip
# What says that there were none: "0 failed", "errors=0".
_NO_ERRORS: Final = (
    " 0 error", " 0 fail", "no error", "no fail", "errors=0", "errors: 0", "failed=0", "failed: 0",
)  # fmt: skip
# Lines that differ in these alone say the same.
_WITHOUT_DIGITS: Final = str.maketrans("", "", "0123456789")
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
        data = {"role": role, "content": _mask_with_errors(said, _MESSAGE_CHARS_MAX, settings)}
        _spool(event, data, role, settings, files)


def spool_tool(event: HookEvent, settings: HookSettings, files: SessionFiles) -> None:
    """Keep what a tool was asked and what it answered; what the memory itself said is no news."""
    if any(name in event.tool.lower() for name in _OWN_TOOLS):
        return
    output = strip_marked(event.output)
    data = {
        "tool": event.tool,
        "input": _arguments(event, settings),
        "output": _mask_with_errors(output, _OUTPUT_CHARS_MAX, settings),
        "ok": not event.failed,
    }
    _spool("tool", data, "web" if event.of_web else "tool", settings, files)


def mask_ends(text: str, chars_max: int, settings: HookSettings) -> str:
    """Return a text without secrets: all of it, or its beginning and its end."""
    return _mask_parts(text, chars_max, settings, errors_chars=0)


def _mask_with_errors(text: str, chars_max: int, settings: HookSettings) -> str:
    """Return a text without secrets: all of it, or its ends and errors between them."""
    return _mask_parts(text, chars_max, settings, errors_chars=chars_max // 4)


def _mask_parts(text: str, chars_max: int, settings: HookSettings, *, errors_chars: int) -> str:
    half = chars_max // 2
    seen = half + _MARGIN_CHARS
    if len(text) <= 2 * seen:
        text = begin = end = mask_text(text, settings)
        if len(text) <= chars_max:
            return text
    else:
        begin, end = mask_text(text[:seen], settings), mask_text(text[-seen:], settings)
    small = half - errors_chars // 2
    errors = _errors_in(text[small : len(text) - small], errors_chars, settings)
    if errors:
        half = small
    kept, at = [begin[:half]], 0
    for begins, ends, line in errors:
        kept += [_left_out(begins - at), line]
        at = ends
    return "\n".join([*kept, _left_out(len(text) - 2 * half - at), end[-half:]])


def _errors_in(text: str, chars_max: int, settings: HookSettings) -> list[tuple[int, int, str]]:
    """Return where the lines of a text begin and end that look like errors, and each masked."""
    found: dict[str, tuple[int, int, str]] = {}
    at = 0
    for line in text[:_SEARCHED_CHARS_MAX].splitlines(keepends=True) if chars_max else ():
        alike = line.translate(_WITHOUT_DIGITS) if _tells_error(line) else ""
        if alike and alike not in found:
            shown = mask_text(line[:_MARGIN_CHARS].strip(), settings)[:_ERROR_CHARS_MAX]
            chars_max -= len(shown)
            if chars_max < 0 or len(found) == _ERRORS_MAX:
                break
            found[alike] = (at, at + len(line), shown)
        at += len(line)
    return list(found.values())


def _tells_error(line: str) -> bool:
    small = line.lower()
    return any(word in small for word in _ERROR_WORDS) and not any(
        word in small for word in _NO_ERRORS
    )


def _left_out(count: int) -> str:
    return f"… {count} characters left out …"


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
