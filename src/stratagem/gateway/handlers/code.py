"""Runs code that was registered as a tool, in the sandbox; its inputs are the call's arguments.

A handler is `{"type": "code", "language": "python", "code": "...", "permissions": {...}}`. The
permissions of the tool are the upper limit; those of the handler and of the caller only narrow
them.
"""

from __future__ import annotations

from typing import Any, Final

from stratagem import limits
from stratagem.errors import ExecutionFailed, ExecutionTimeout, ValidationFailed
from stratagem.gateway.definitions.contract import Handler, Run
from stratagem.gateway.sandbox.permissions import Permissions, read_permissions
from stratagem.gateway.sandbox.results import CodeResult, OnOutput
from stratagem.gateway.sandbox.sandbox import Sandbox

__all__ = ["LANGUAGES", "CodeRunner", "limit_to_call", "output_reporter"]

LANGUAGES: Final = ("python", "javascript")


class CodeRunner:
    """Runs code as a tool."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def check(self, handler: Handler) -> list[str]:
        """Check a handler; the code is not run."""
        if handler.get("language") not in LANGUAGES:
            raise ValidationFailed(
                f"`handler.language` must be one of {', '.join(LANGUAGES)}.",
                field="handler.language",
                limit=list(LANGUAGES),
            )
        code = handler.get("code")
        if not isinstance(code, str) or not code.strip():
            raise ValidationFailed("`handler.code` is text.", field="handler.code")
        if len(code.encode("utf-8", "replace")) > limits.SANDBOX_CODE_BYTES_MAX:
            raise ValidationFailed(
                f"`handler.code` has more than {limits.SANDBOX_CODE_BYTES_MAX:,} bytes.",
                field="handler.code",
                limit=limits.SANDBOX_CODE_BYTES_MAX,
            )
        read_permissions(handler.get("permissions") or {}, field="handler.permissions")
        return _syntax_warnings(handler["language"], code)

    async def run(self, handler: Handler, run: Run) -> Any:
        """Return the result of the code: its variable `result`, or its last expression."""
        own = read_permissions(handler.get("permissions") or {}, base=run.permissions)
        ended = await self._sandbox.run_code(
            handler["language"],
            handler["code"],
            permissions=limit_to_call(run.permissions.intersect(own), run),
            inputs=dict(run.arguments),
            on_output=output_reporter(run),
        )
        if ended.succeeded:
            return ended.result
        raise _failure(ended)

    async def close(self) -> None:
        """Do nothing: each run ends its own process."""


def limit_to_call(permissions: Permissions, run: Run) -> Permissions:
    """Return permissions whose time is limited to that of the call."""
    seconds = max(run.seconds, limits.SANDBOX_SECONDS_MIN)
    return permissions.intersect(
        read_permissions({"timeout": min(seconds, permissions.seconds) * 1000}, base=permissions)
    )


def output_reporter(run: Run) -> OnOutput:
    """Return a function that reports output as progress of the call."""
    return lambda _stream, text: run.progress(None, text)


def _failure(ended: CodeResult) -> Exception:
    said = ended.stderr.strip()[-limits.FAILURE_CHARS_MAX :]
    details: dict[str, Any] = {"exitCode": ended.exit_code, "stderr": said, "killed": ended.killed}
    if ended.killed == "time":
        return ExecutionTimeout("The code took too long and was stopped.", **details)
    if ended.killed is not None:
        return ExecutionFailed(f"The code was stopped: {_REASONS[ended.killed]}.", **details)
    last = said.splitlines()[-1] if said else f"it ended with status {ended.exit_code}"
    return ExecutionFailed(f"The code failed: {last}", **details)


_REASONS: Final = {
    "time": "it took too long",
    "memory": "it used too much memory",
    "signal": "a signal ended it",
    "output": "it wrote too much",
}


def _syntax_warnings(language: str, code: str) -> list[str]:
    """Return a warning if the code has a syntax error."""
    if language != "python":
        return []
    try:
        compile(code, "<tool>", "exec", flags=0, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [f"The code cannot be read: {str(error)[:200]}"]
    return []
