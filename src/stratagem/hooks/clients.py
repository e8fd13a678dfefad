"""The events of each client, read from its own JSON, and answers in its own form.

Clients differ in the names of their events and fields, and in where they take a text in. A field
is looked for under every name that any client gives it: their releases differ, too.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from stratagem.deferred_tuples import NamedTuple

__all__ = ["CLIENTS", "EVENTS", "HookEvent", "format_answer", "parse_event", "takes_context"]

# What an event is to us.
START: Final = "start"
PROMPT: Final = "prompt"
TOOL: Final = "tool"
STOP: Final = "stop"
COMPACT: Final = "compact"
COMPACTED: Final = "compacted"
END: Final = "end"
EVENTS: Final = (START, PROMPT, TOOL, STOP, COMPACT, COMPACTED, END)

_CLAUDE: Final = {
    "SessionStart": START,
    "UserPromptSubmit": PROMPT,
    "PostToolUse": TOOL,
    "PostToolUseFailure": TOOL,
    "Stop": STOP,
    "PreCompact": COMPACT,
    "PostCompact": COMPACTED,
    "SessionEnd": END,
}
_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "claude-code": _CLAUDE,
    "codex": _CLAUDE,
    "vscode": _CLAUDE,
    "gemini": {
        "SessionStart": START,
        "BeforeAgent": PROMPT,
        "AfterTool": TOOL,
        "AfterAgent": STOP,
        "PreCompress": COMPACT,
        "SessionEnd": END,
    },
    "cursor": {
        "sessionStart": START,
        "beforeSubmitPrompt": PROMPT,
        "postToolUse": TOOL,
        "postToolUseFailure": TOOL,
        "afterShellExecution": TOOL,
        "afterMCPExecution": TOOL,
        "afterFileEdit": TOOL,
        "afterAgentResponse": STOP,
        "preCompact": COMPACT,
        "sessionEnd": END,
    },
    "opencode": {
        "session.created": START,
        "chat.message": PROMPT,
        "tool.execute.after": TOOL,
        "session.idle": STOP,
        "experimental.session.compacting": COMPACT,
        "session.compacted": COMPACTED,
        "session.deleted": END,
    },
}
CLIENTS: Final = tuple(_NAMES)
# The client's events that take a text in; elsewhere it would be refused, or shown to nobody.
_TAKES_CONTEXT: Final[Mapping[str, frozenset[str]]] = {
    "claude-code": frozenset(
        {"SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure"}
    ),
    "codex": frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse"}),
    "vscode": frozenset({"SessionStart", "PostToolUse"}),
    "gemini": frozenset({"SessionStart", "BeforeAgent", "AfterTool"}),
    "cursor": frozenset({"sessionStart", "postToolUse"}),
    "opencode": frozenset(
        {"session.created", "chat.message", "tool.execute.after", "session.compacted"}
    ),
}
_FAILURES: Final = frozenset({"PostToolUseFailure", "postToolUseFailure"})
_SHELL_EVENTS: Final = frozenset({"afterShellExecution"})

_SESSION_FIELDS: Final = ("session_id", "sessionID", "sessionId", "conversation_id")
_FOLDER_FIELDS: Final = ("cwd", "directory")
_TOOL_FIELDS: Final = ("tool_name", "tool", "toolName")
_INPUT_FIELDS: Final = ("tool_input", "args", "input")
_OUTPUT_FIELDS: Final = ("tool_response", "tool_output", "tool_result", "result_json", "output")
_ERROR_FIELDS: Final = ("error", "error_message", "errorMessage")
_REPLY_FIELDS: Final = ("last_assistant_message", "prompt_response", "text", "message")
# In the order in which the parts of a result are read.
_TEXT_FIELDS: Final = ("error", "stderr", "stdout", "llmContent", "output", "content", "text")
_CODE_FIELDS: Final = ("exit_code", "exitCode", "exit", "code")
# What tells the result of a shell from JSON that a command printed.
_SHELL_RESULT_FIELDS: Final = ("exit_code", "exitCode", "metadata")
# How the results of shells say it in words: Claude Code, Codex (two forms), Gemini CLI, VS Code.
_EXIT_CODE: Final = re.compile(
    r"(?:^|\n)(?:Exit code:? |Exit Code: |Process exited with code |"
    r"Command exited with code |\(exit code: )(\d{1,3})\b"
)
# What Codex and Gemini CLI write above and below what a command printed.
_ABOVE: Final = re.compile(
    r"(?:(?:Exit code|Wall time|Chunk ID|Process exited with code|Total output lines"
    r"|Original token count)\b[^\n]*+\n)+Output:\n"
    r"|(?:Command: (?s:.{0,4000}?)\nDirectory: [^\n]*+\n)?"
    r"(?:Output|Stdout): (?:\(empty\)\nStderr: )?"
)
_BELOW: Final = ("Error: (none)", "Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group ")
# How a patch of Codex begins.
_PATCH: Final = "*** Begin Patch"
_WEB_TOOLS: Final = re.compile(r"(?i)web|fetch|browse|http|url")
# How a result of MCP says that the tool failed.
_ERROR_FLAGS: Final = ("isError", "is_error")
# Where a client says what a command ended with: so many lines of either end.
_SCANNED_CHARS: Final = 4_000
_ADDED_LINES: Final = 8
# How the escape of a surrogate begins in JSON.
_SURROGATE: Final = "\\ud"


class HookEvent(NamedTuple):
    """An event of any client.

    `name` is the client's own. `failed`: a tool or a command did not succeed, and `output` says
    why. `source` of a start says what began: "startup", "resume", "compact". `digest` is of all
    that the client sent, ids and times included.
    """

    client: str
    name: str
    kind: str
    session: str
    folder: str
    prompt: str = ""
    tool: str = ""
    arguments: Any = None
    output: str = ""
    failed: bool = False
    interrupted: bool = False
    reply: str = ""
    summary: str = ""
    source: str = ""
    digest: str = ""

    @property
    def command(self) -> str:
        """The command line that a shell was given; empty for other tools."""
        given = self._given_command
        return "" if given.startswith(_PATCH) else given

    @property
    def patch(self) -> str:
        """The patch that Codex applied, which it passes as a command; else empty."""
        given = self._given_command
        return given if given.startswith(_PATCH) else ""

    @property
    def _given_command(self) -> str:
        given = self.arguments.get("command") if isinstance(self.arguments, Mapping) else None
        if isinstance(given, list):
            # Codex passes ["bash", "-lc", "…"].
            given = given[-1] if given else ""
        return given if isinstance(given, str) else ""

    @property
    def error(self) -> str:
        """The output of a failure without what the client writes above and below it."""
        above = _ABOVE.match(self.output)
        first, *more = self.output[above.end() if above else 0 :].rsplit("\n", _ADDED_LINES)
        while more and more[-1].startswith(_BELOW):
            more.pop()
        return "\n".join([first, *more])

    @property
    def of_web(self) -> bool:
        """Whether a tool's answer comes from the web."""
        return _WEB_TOOLS.search(self.tool) is not None


def parse_event(client: str, text: str, name: str = "") -> HookEvent | None:
    """Read an event; None for one that is nothing to us, or not a JSON object."""
    given = _loads_plain(text)
    if not isinstance(given, dict):
        return None
    own = name or _text_field(given, ("hook_event_name", "hookEventName", "event", "type"))
    kind = _kind_of(client, own)
    if kind is None:
        return None
    return HookEvent(
        client,
        _own_name(client, own),
        kind,
        _text_field(given, _SESSION_FIELDS) or "unknown",
        _folder(given),
        source=_text_field(given, ("source", "trigger", "reason")),
        digest=f"{len(text)}-{binascii.crc32(text.encode('utf-8', 'replace')):08x}",
        **_details(kind, own, given),
    )


def takes_context(event: HookEvent) -> bool:
    """Whether the client puts a text that answers this event before the model."""
    return event.name in _TAKES_CONTEXT[event.client]


def format_answer(client: str, name: str, context: str) -> str:
    """Return what is printed: the context in the client's form, or its way to say nothing."""
    if client == "cursor":
        if context:
            return json.dumps({"additional_context": context})
        return '{"continue": true}' if name == "beforeSubmitPrompt" else "{}"
    if client == "opencode":
        return json.dumps({"context": context}) if context else "{}"
    if context:
        told = {"hookEventName": name, "additionalContext": context}
        return json.dumps({"hookSpecificOutput": told})
    # Gemini CLI reads nothing but JSON; the others take silence for what it is.
    return "{}" if client == "gemini" else ""


def _kind_of(client: str, name: str) -> str | None:
    names = _NAMES[client]
    return names.get(name) or names.get(_own_name(client, name)) or _CLAUDE.get(name)


def _own_name(client: str, name: str) -> str:
    """Return the client's own spelling of an event: settings may say `session-start`."""
    plain = _letters(name)
    return next((own for own in _NAMES[client] if _letters(own) == plain), name)


def _letters(name: str) -> str:
    return "".join(filter(str.isalpha, name)).lower()


def _details(kind: str, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    if kind == PROMPT:
        return {"prompt": _text_field(given, ("prompt", "user_prompt", "message", "text"))}
    if kind == TOOL:
        return _tool_details(name, given)
    if kind == STOP:
        return {
            "prompt": _text_field(given, ("prompt",)),
            "reply": _text_field(given, _REPLY_FIELDS),
        }
    if kind in {COMPACT, COMPACTED}:
        return {"summary": _text_field(given, ("compact_summary", "summary"))}
    return {}


def _tool_details(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    arguments = _field(given, _INPUT_FIELDS)
    if isinstance(arguments, str) and arguments.startswith("{"):
        arguments = _loads(arguments)
    if arguments is None and name in _SHELL_EVENTS:
        arguments = {"command": given.get("command", "")}
    elif arguments is None and "file_path" in given:
        arguments = {"file_path": given["file_path"], "edits": given.get("edits")}
    answer = _result_of(_field(given, _OUTPUT_FIELDS))
    error = _text_field(given, _ERROR_FIELDS) or _error_of(answer)
    output = error or _text_of(answer)
    return {
        "tool": _text_field(given, _TOOL_FIELDS) or ("Shell" if name in _SHELL_EVENTS else name),
        "arguments": arguments,
        "output": output,
        "failed": name in _FAILURES or bool(error) or _says_failed(arguments, answer, output),
        "interrupted": given.get("is_interrupt") is True,
    }


def _result_of(answer: Any) -> Any:
    """Return a tool's result; Cursor and Codex pass that of a shell as JSON in a string."""
    if not (isinstance(answer, str) and answer.startswith("{")):
        return answer
    read = _loads(answer)
    told = isinstance(read, Mapping) and any(name in read for name in _SHELL_RESULT_FIELDS)
    return read if told else answer


def _error_of(answer: Any) -> str:
    error = answer.get("error") if isinstance(answer, Mapping) else None
    if isinstance(error, Mapping):
        error = error.get("message")
    return error if isinstance(error, str) else ""


def _says_failed(arguments: Any, answer: Any, output: str) -> bool:
    """Whether a result says that it is none: of a command by its status, of others by a flag."""
    if isinstance(arguments, Mapping) and "command" in arguments:
        return _exit_code(answer, output) != 0
    # What a file or a page says of statuses, or a `code` of 200, is no failure of its reader.
    return isinstance(answer, Mapping) and any(answer.get(name) is True for name in _ERROR_FLAGS)


def _exit_code(answer: Any, output: str) -> int:
    """Return the status that a command ended with, as its result or its words say; else 0."""
    places = [answer]
    if isinstance(answer, Mapping):
        places.append(answer.get("metadata"))
    for place in places:
        code = _field(place, _CODE_FIELDS) if isinstance(place, Mapping) else None
        if isinstance(code, int):
            return code
    # A client adds its own lines around what the command printed.
    lines = [*output[:_SCANNED_CHARS].split("\n"), *output[-_SCANNED_CHARS:].split("\n")]
    found = _EXIT_CODE.search("\n".join([*lines[:_ADDED_LINES], *lines[-_ADDED_LINES:]]))
    return int(found[1]) if found else 0


def _text_of(answer: Any) -> str:
    """Return the words of a tool's result, whatever its form."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, Mapping):
        parts = [_text_of(answer[name]) for name in _TEXT_FIELDS if answer.get(name)]
        return "\n".join(part for part in parts if part) or json.dumps(answer, ensure_ascii=False)
    if isinstance(answer, list):
        return "\n".join(map(_text_of, answer))
    return "" if answer is None else str(answer)


def _folder(given: Mapping[str, Any]) -> str:
    folder = _text_field(given, _FOLDER_FIELDS)
    roots = given.get("workspace_roots")
    if not folder and isinstance(roots, list) and roots and isinstance(roots[0], str):
        folder = roots[0]
    return folder


def _field(given: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _text_field(given: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next(
        (given[name] for name in names if given.get(name) and isinstance(given[name], str)), ""
    )


def _loads_plain(text: str) -> Any:
    """Return what a JSON text says, or None; halves of a surrogate pair are replaced.

    Clients that cut a text by UTF-16 units leave such a half where they cut an emoji in two, and no
    database takes it.
    """
    try:
        given = json.loads(text)
        if _SURROGATE in text.lower():
            plain = json.dumps(given, ensure_ascii=False).encode("utf-8", "replace")
            given = json.loads(plain)
    except ValueError:
        return None
    return given


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
