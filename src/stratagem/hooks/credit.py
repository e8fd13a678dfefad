"""Credit for fixes: which fix helped and which did not, from the notes of a session.

A command failed, something was done, the same command succeeded. If a fix was shown for the failure
and the actions match it, the fix is credited. If the actions were different, and few enough to be
clear, a draft of an incident is stored for review. A command that succeeds when it is simply run
again is no evidence.

If the same command fails again with the same error, the fix that was shown has failed, provided
that all of it was done: a fix is not blamed where a step was left out, or something like it was
done. What is done from then on is another attempt, which the fix is not credited for.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from stratagem.debugging.signatures import find_error, headline
from stratagem.deferred_tuples import NamedTuple
from stratagem.hooks.session_files import SessionFiles
from stratagem.search import analysis

__all__ = ["Retry", "find_retries", "spool_retries"]

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
# What parts one thing to do from the next, in a command or in a sentence.
_NEXT: Final = re.compile(r"&&|\|\||[;\n]|\.\s|,?\s(?:and|then)\s")
_RUN: Final = "Run: "
_SUDO: Final = "sudo"
_OPTION: Final = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*+")
_SHORT_OPTION: Final = re.compile(r"-\w{1,2}$")


class Retry(NamedTuple):
    """A command that failed and was run again, and what was done between."""

    failure: dict[str, Any]
    actions: list[str]
    succeeded: bool = True

    @property
    def id(self) -> str:
        """The same for one failure of a session, however often it is looked at."""
        said = f"{self.failure['command']}\n{self.failure['at']}\n{self.failure['error']}"
        if not self.succeeded:
            said += "\nfailed again"
        return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def find_retries(
    lines: Sequence[dict[str, Any]], steps_of: Mapping[str, Sequence[str]]
) -> Iterator[Retry]:
    """Yield the retries of a session that were not looked at before.

    Those that failed are the ones that a fix had been carried out for: `steps_of` has the steps of
    fixes. Of other failures the first one stands for all.
    """
    seen = {line["recovery"] for line in lines if line["what"] == "recovered"}
    for retry in _all_retries(lines, steps_of):
        if retry.id not in seen:
            yield retry


def _all_retries(
    lines: Sequence[dict[str, Any]], steps_of: Mapping[str, Sequence[str]]
) -> Iterator[Retry]:
    # With how much had been done by then.
    failures: dict[str, tuple[dict[str, Any], int]] = {}
    actions: list[tuple[str, str]] = []

    def retry(command: str, *, succeeded: bool) -> Retry | None:
        if command not in failures:
            return None
        failure, begin = failures[command]
        done = (action for other, action in actions[begin:] if other != command)
        return Retry(failure, list(dict.fromkeys(done)), succeeded)

    for line in lines:
        command = line.get("command", "")
        if line["what"] == "failed":
            again = retry(command, succeeded=False)
            if again and _has_failed(again, line, steps_of):
                yield again
            elif again and "solution" in again.failure:
                # What was shown for the first failure holds for its repeats.
                continue
            failures[command] = line, len(actions)
        elif line["what"] == "done":
            if success := retry(command, succeeded=True):
                del failures[command]
                yield success
            elif line["action"]:
                actions.append((command, line["action"]))


def _has_failed(
    again: Retry, line: Mapping[str, Any], steps_of: Mapping[str, Sequence[str]]
) -> bool:
    """Whether the fix that was shown for a failure was carried out, and the error came again."""
    is_same = again.failure.get("incident") in line.get("incidents", ())
    steps = steps_of.get(again.failure.get("solution", ""), [])
    return is_same and _is_carried_out(steps, again.actions, again.failure["command"])


def spool_retries(files: SessionFiles, branch: str, steps_of: Mapping[str, Sequence[str]]) -> None:
    """Spool the outcomes and drafts of a session's retries.

    `steps_of` has the steps of fixes.
    """
    for retry in find_retries(files.read(), steps_of):
        solution = retry.failure.get("solution")
        if solution and (
            not retry.succeeded or _follows(steps_of.get(solution, []), retry.actions)
        ):
            files.spool(_outcome(retry, branch))
        elif 0 < len(retry.actions) <= _STEPS_MAX:
            files.spool({"do": "draft", "branch": branch, **_draft(retry)})
        files.note("recovered", recovery=retry.id)


def _outcome(retry: Retry, branch: str) -> dict[str, Any]:
    ending = "then succeeded" if retry.succeeded else "and again with the fix"
    return {
        "do": "outcome",
        "solution_id": retry.failure["solution"],
        "lookup_id": retry.failure["lookup"],
        "worked": retry.succeeded,
        "notes": f"{retry.failure['command'][:200]}: failed, {ending}.",
        "branch": branch,
    }


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


def _is_carried_out(steps: Sequence[str], actions: Sequence[str], command: str) -> bool:
    """Whether all that a fix says was done before a command was run again.

    Of each thing to do most words must be among what was done, and all numbers and options. What
    names something that the fix does not name (`restart redis`) is something else.
    """
    parts = [
        terms
        for step in steps
        for part in _NEXT.split(step)
        if (terms := set(analysis.content_terms(part)))
    ]
    said = set().union(*parts)
    done: set[str] = set()
    options = {option for step in steps for option in _OPTION.findall(step)}
    for action in actions:
        terms = set(analysis.content_terms(action))
        if _named_by(action) <= said or any(part <= terms for part in parts):
            done |= terms
            options.difference_update(_OPTION.findall(action))
    if not done or options:
        return False
    # To run it again may be what the fix ends with.
    done.update(analysis.content_terms(f"{_RUN}{command}"))
    return all(_is_most(part & done, part) for part in parts)


def _is_most(done: set[str], said: set[str]) -> bool:
    numbers = {term for term in said if any(map(str.isdigit, term))}
    return 2 * len(done) > len(said) and numbers <= done


def _named_by(action: str) -> set[str]:
    """Return what an action is about: the arguments of commands, or what an edit changed where."""
    if not action.startswith(_RUN):
        name, _, change = action.partition(" ")[2].partition(": replace ")
        old, new = (set(analysis.content_terms(each)) for each in change.partition("` by `")[::2])
        return (old ^ new).union(analysis.content_terms(name))
    commands = _NEXT.split(action.removeprefix(_RUN))
    arguments = (_arguments(command.split()) for command in commands)
    return set(analysis.content_terms(" ".join(arguments)))


def _arguments(words: Sequence[str]) -> str:
    named = words[2:] if words[:1] == [_SUDO] else words[1:]
    return " ".join(word for word in named if not _SHORT_OPTION.match(word))


def _draft(retry: Retry) -> dict[str, Any]:
    error = find_error(retry.failure["error"])
    title = headline(error) or error.strip().splitlines()[0] if error.strip() else ""
    return {
        "draft_id": f"draft_{retry.id}",
        "incident": {
            "title": (title or f"{retry.failure['command']} failed")[:_TITLE_CHARS],
            "error": error,
            "steps": retry.actions,
            "command": retry.failure["command"],
        },
    }
