"""Credit for fixes: which fix helped, from the notes of a session about its commands.

A command failed, something was done, the same command succeeded. If a fix was shown for the failure
and the actions match it, the fix is credited. If the actions were different, and few enough to be
clear, a draft of an incident is stored for review. A command that succeeds when it is simply run
again is no evidence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from stratagem.debugging.signatures import find_error, headline
from stratagem.deferred_tuples import NamedTuple
from stratagem.hooks.session_files import SessionFiles
from stratagem.search import analysis

__all__ = ["Recovery", "find_recoveries", "spool_recoveries"]

# More than that between a failure and a success is not clear any more.
_STEPS_MAX: Final = 5
# How much of what a fix says must be among what was done: a few words in common are chance.
_FOLLOWED_SHARE: Final = 0.35
# What most commands have in common, as `analysis` writes it: it does not tell one fix from another.
_ANY_COMMAND: Final = frozenset(
    analysis.content_terms(
        "run sudo install i add get update upgrade apt apt-get yum dnf apk brew choco winget pip"
        " pip3 uv poetry conda npm npx yarn pnpm bun cargo go gem bundle composer dotnet mvn gradle"
        " python python3 node docker kubectl git make"
    )
)
_TITLE_CHARS: Final = 200


class Recovery(NamedTuple):
    """A command that failed and later succeeded, and what was done between."""

    failure: dict[str, Any]
    actions: list[str]

    @property
    def id(self) -> str:
        """The same for one failure of a session, however often it is looked at."""
        said = f"{self.failure['command']}\n{self.failure['at']}\n{self.failure['error']}"
        return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def find_recoveries(lines: Sequence[dict[str, Any]]) -> Iterator[Recovery]:
    """Yield the recoveries of a session that were not looked at before."""
    seen = {line["recovery"] for line in lines if line["what"] == "recovered"}
    failures: dict[str, dict[str, Any]] = {}
    actions: list[tuple[float, str, str]] = []
    for line in lines:
        if line["what"] == "failed":
            known = failures.get(line["command"])
            # What was shown for the first failure holds for its repeats.
            failures[line["command"]] = known if known and "solution" in known else line
        elif line["what"] == "done":
            failure = failures.pop(line["command"], None) if line["command"] else None
            if failure is not None:
                tried = [
                    action
                    for at, command, action in actions
                    if at >= failure["at"] and command != failure["command"]
                ]
                recovery = Recovery(failure, list(dict.fromkeys(tried)))
                if recovery.id not in seen:
                    yield recovery
            elif line["action"]:
                actions.append((line["at"], line["command"], line["action"]))


def spool_recoveries(files: SessionFiles, branch: str, steps_of: dict[str, list[str]]) -> None:
    """Spool the outcomes and drafts of a session's recoveries.

    `steps_of` returns the steps of fixes.
    """
    for recovery in find_recoveries(files.read()):
        solution = recovery.failure.get("solution")
        if solution and _follows(steps_of.get(solution, []), recovery.actions):
            files.spool(
                {
                    "do": "outcome",
                    "solution_id": solution,
                    "lookup_id": recovery.failure["lookup"],
                    "worked": True,
                    "notes": f"{recovery.failure['command'][:200]}: failed, then succeeded.",
                    "branch": branch,
                }
            )
        elif 0 < len(recovery.actions) <= _STEPS_MAX:
            files.spool({"do": "draft", "branch": branch, **_draft(recovery)})
        files.note("recovered", recovery=recovery.id)


def _follows(steps: Sequence[str], actions: Sequence[str]) -> bool:
    """Whether the actions match the steps of a fix."""
    said = set(analysis.content_terms("\n".join(steps)))
    tried = [set(analysis.content_terms(action)) for action in actions]
    done = {term for terms in tried if _may_follow(said, terms) for term in terms}
    return bool(said) and len(said & done) >= _FOLLOWED_SHARE * len(said)


def _may_follow(said: set[str], done: set[str]) -> bool:
    """Whether an action names something that a fix names, if both of them name anything.

    `apt install venv` has most words of `apt install libpq`, and is no evidence for it.
    """
    named, used = said - _ANY_COMMAND, done - _ANY_COMMAND
    return not named or not used or not named.isdisjoint(used)


def _draft(recovery: Recovery) -> dict[str, Any]:
    error = find_error(recovery.failure["error"])
    title = headline(error) or error.strip().splitlines()[0] if error.strip() else ""
    return {
        "draft_id": f"draft_{recovery.id}",
        "incident": {
            "title": (title or f"{recovery.failure['command']} failed")[:_TITLE_CHARS],
            "error": error,
            "steps": recovery.actions,
            "command": recovery.failure["command"],
        },
    }
