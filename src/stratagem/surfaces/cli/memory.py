"""recall, which shows a value of any length, or the value alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from stratagem.surfaces.cli.operation_commands import Invocation
from stratagem.surfaces.cli.session import Session

__all__ = ["recall"]


def recall(
    invocation: Invocation,
    *,
    raw: Annotated[
        bool, typer.Option("--raw", metavar="", help="The value alone, to pipe it on.")
    ] = False,
) -> None:
    """Show what is stored under a key, or under several."""
    from stratagem.surfaces.cli.tables import show_entries, show_entry

    session, arguments = invocation.session, invocation.arguments
    if "keys" in arguments:
        session.output.answer(invocation.run(), show_entries)
        return
    answer = _recall_whole(session, arguments)
    if raw and not session.output.json:
        _print_raw(session, answer)
    else:
        session.output.answer(answer, show_entry)


def _recall_whole(session: Session, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Recall an entry, however long its value is."""
    from stratagem.answers import plain
    from stratagem.memory.service import Memory

    asked_for_part = "cursor" in arguments
    with session.runtime() as runtime:
        answer = runtime.call("strata_recall", dict(arguments), session.caller)
        if answer.get("truncated") and not asked_for_part:
            entry = Memory(runtime.foundation, session.caller).recall(
                arguments["key"], as_of=arguments.get("as_of"), path=arguments.get("path")
            )
            answer = {"found": True, **plain(entry)}
    return answer


def _print_raw(session: Session, answer: Mapping[str, Any]) -> None:
    """Print a value and nothing else; a file or a pipe gets it to the byte."""
    if not answer["found"]:
        session.output.note("Nothing is stored there.")
        return
    value = answer["value"]
    if isinstance(value, str) and not sys.stdout.isatty():
        sys.stdout.write(value + "\n")
        return
    from stratagem.surfaces.cli.tables import value_text

    session.output.console.print(value_text(value), soft_wrap=True)
