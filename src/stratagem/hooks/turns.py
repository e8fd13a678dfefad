"""The thorough half: starts and ends of turns and sessions, and compactions.

These may take a second. They open the database, write the spooled events, credit fixes, and update
the fix cards. A start is answered with a brief.
"""

from __future__ import annotations

from typing import Final

from stratagem.bootstrap import Runtime, has_workspace
from stratagem.debugging.kinds import SOLUTIONS
from stratagem.debugging.records import IncidentRecords
from stratagem.git_branches import DEFAULT
from stratagem.hooks.brief import write_brief
from stratagem.hooks.clients import COMPACTED, START, HookEvent, takes_context
from stratagem.hooks.context_text import tokens_in
from stratagem.hooks.credit import spool_retries
from stratagem.hooks.fix_cards import open_runtime, update_cards
from stratagem.hooks.git_branch import memory_branch
from stratagem.hooks.session_files import SessionFiles
from stratagem.hooks.settings import HookSettings
from stratagem.projects import is_address

__all__ = ["handle_turn", "read_lean_patterns"]

_SAMPLE_ERROR: Final = (
    'Traceback (most recent call last):\n  File "app.py", line 3, in main\n'
    "ModuleNotFoundError: No module named 'example'"
)


def handle_turn(
    event: HookEvent,
    settings: HookSettings,
    files: SessionFiles,
    runtime: Runtime | None = None,
) -> str:
    """Write what waits, credit fixes, and answer a start; in an open database if one is given."""
    if runtime is not None:
        return _handle(event, settings, files, runtime)
    opened = _open(event, settings, files)
    if opened is None:
        return ""
    try:
        return _handle(event, settings, files, opened)
    finally:
        opened.close()


def _open(event: HookEvent, settings: HookSettings, files: SessionFiles) -> Runtime | None:
    """Open the database; None for a server that has not answered a moment ago, or has none."""
    embeds = event.kind == START
    if not is_address(settings.database):
        return open_runtime(settings, embeds=embeds)
    with files.attempt() as may_ask:
        is_there = may_ask and has_workspace(settings.database)
        return open_runtime(settings, embeds=embeds) if is_there else None


def _handle(event: HookEvent, settings: HookSettings, files: SessionFiles, runtime: Runtime) -> str:
    branch = memory_branch(settings)
    files.remove_old_marks()
    if event.kind == START:
        files.remove_old()
        # Once a session: prompts are compared with what was said in the last one.
        runtime.foundation.index.warm()
    if settings.is_on("failure"):
        spool_retries(files, branch, _shown_steps(runtime, files, branch))
    runtime.take_spooled()
    if settings.is_on("failure"):
        update_cards(runtime, settings, branch)
    news = _follow_git(runtime, settings, branch, merges=event.kind == START)
    wanted = event.kind in {START, COMPACTED} and takes_context(event)
    if not (wanted and settings.is_on("start")):
        return ""
    text = write_brief(runtime, settings, files, branch, news)
    if text:
        why = f"{event.name}{f' ({event.source})' if event.source else ''}"
        files.log_injection(
            {"event": "start", "why": [why], "tokens": tokens_in(text), "text": text}
        )
    return text


def read_lean_patterns() -> None:
    """Compile what prompts and failures need, so that it can be kept for them."""
    import stratagem.hooks.prompts  # noqa: F401 -- for its patterns
    from stratagem.debugging.signatures import fingerprint_and_headlines
    from stratagem.redaction import mask

    mask("password=secret token=secret mail@example.com")
    fingerprint_and_headlines(_SAMPLE_ERROR)


def _follow_git(
    runtime: Runtime, settings: HookSettings, branch: str, *, merges: bool
) -> list[str]:
    """Note what is checked out; at a session's start also merge what git has merged."""
    if not (settings.git_branches and settings.memory) or not (merges or branch != DEFAULT):
        return []
    from stratagem.hooks.git_merges import follow_git

    return follow_git(runtime, settings, branch, may_ask=merges)


def _shown_steps(runtime: Runtime, files: SessionFiles, branch: str) -> dict[str, list[str]]:
    """Return what the fixes say that were shown in a session."""
    shown = {line["solution"] for line in files.read() if "solution" in line}
    if not shown:
        return {}
    foundation = runtime.foundation
    with foundation.store.snapshot() as reader:
        name = branch if reader.branches.by_name(branch) else "default"
        records = IncidentRecords(reader, foundation.views.view(reader, name))
        return {each: records.content(SOLUTIONS, each).get("steps", []) for each in shown}
