"""The details of errors and corrections as text: most models are shown nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

__all__ = ["correction_lines", "error_detail_lines"]

# As many as are read; the details have all of them.
_VIOLATIONS_SAID: Final = 5
_OFFERS_SAID: Final = 3
_ARGUMENTS_CHARS: Final = 1_000
_STEPS_CHARS: Final = 1_000


def error_detail_lines(details: Mapping[str, Any]) -> list[str]:
    """Return what else is wrong with a call, what it may have meant, and what helped before."""
    return [
        *_violations(_mappings(details, "violations")),
        *_choices(_mappings(details, "choices")),
        *_offers(_mappings(details, "corrections")),
        *_answer(details.get("body")),
        *_fix(details.get("knownFix")),
    ]


def correction_lines(metadata: Mapping[str, Any]) -> list[str]:
    """Return what was changed about a call before it was run, if anything was."""
    correction = metadata.get("correction")
    return [f"[Arguments corrected: {correction['reasoning']}]"] if correction else []


def _mappings(details: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    given = details.get(name)
    return [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []


def _violations(violations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    # The first is in the message.
    for each in violations[1:_VIOLATIONS_SAID]:
        yield f"also {each.get('path')}: {each.get('message')}"
    if len(violations) > _VIOLATIONS_SAID:
        yield f"and {len(violations) - _VIOLATIONS_SAID} more"


def _choices(choices: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in choices[:_OFFERS_SAID]:
        options = ", ".join(map(str, each.get("options") or ()))
        yield f"choice at {each.get('path')}: {each.get('question')} ({options})"


def _offers(offers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in offers[:_OFFERS_SAID]:
        arguments = orjson.dumps(each.get("correctedParameters")).decode()
        # Arguments that are cut cannot be confirmed by eye; their id can.
        shown = arguments if len(arguments) <= _ARGUMENTS_CHARS else "(too long to show)"
        confidence = f"confidence {each.get('confidence'):.2f}, risk {each.get('riskLevel')}"
        yield f"{each.get('correctionId')} ({confidence}): {shown} {each.get('reasoning')}"


def _answer(body: Any) -> Iterator[str]:
    if isinstance(body, str) and body:
        yield f"it answered: {body[:_STEPS_CHARS]}"


def _fix(fix: Any) -> Iterator[str]:
    if not isinstance(fix, Mapping) or not (steps := fix.get("steps")):
        return
    said = "; ".join(map(str, steps)) if isinstance(steps, list) else str(steps)
    yield f"known fix: {said[:_STEPS_CHARS]}"
