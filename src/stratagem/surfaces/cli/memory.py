"""Commands of the memory that do more: recall, events, and deleting a namespace."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from stratagem.deferred_modules import defer
from stratagem.errors import MissingRequired, ValidationFailed
from stratagem.surfaces.cli.entry_text import entry_text
from stratagem.surfaces.cli.operation_commands import Invocation
from stratagem.surfaces.cli.output import confirm
from stratagem.surfaces.cli.session import Session

if TYPE_CHECKING:
    import typer
else:
    # A plain line is read without it (`plain_lines`).
    typer = defer("typer")

__all__ = ["delete_namespace", "events", "recall"]

# How much of the past is shown before what is new is waited for, unless it is said.
_LATEST = 10


def recall(
    invocation: Invocation,
    *,
    raw: Annotated[
        bool, typer.Option("--raw", metavar="", help="Only the value, for a pipe.")
    ] = False,
) -> None:
    """Show what is stored under a key, or under several; without a key, a list."""
    session, arguments = invocation.session, invocation.arguments
    if "key" not in arguments and "keys" not in arguments:
        if raw:
            raise MissingRequired("--raw prints one value: name its key.", field="key")
        invocation.show(invocation.run(), renderer="tables.show_list")
        return
    if "keys" in arguments:
        from stratagem.surfaces.cli.tables import show_entries

        session.output.answer(invocation.run(), show_entries)
        return
    answer = _recall_whole(session, arguments)
    if raw and not session.output.json:
        _print_raw(session, answer)
    elif session.output.is_plain and answer["found"]:
        session.output.text(entry_text(answer), answer)
    else:
        from stratagem.surfaces.cli.tables import show_entry

        session.output.answer(answer, show_entry)


def _recall_whole(session: Session, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Recall an entry, however long its value is; with a cursor, a part of it that is not."""
    from stratagem.answers import whole

    with (
        session.runtime(must_exist=True) as runtime,
        nullcontext() if "cursor" in arguments else whole(),
    ):
        return runtime.call("strata_recall", dict(arguments), session.caller)


def delete_namespace(
    invocation: Invocation,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask.")] = False,
) -> None:
    """Forget the entries of a namespace, once somebody who can be asked has agreed."""
    output = invocation.session.output
    # Nothing is lost for good, so a script need not say that it means it.
    can_ask = sys.stdin.isatty() and not output.json
    name = invocation.arguments["name"]
    question = f"Forget every entry of the namespace {name!r}? Past moments still show them."
    if can_ask and not confirm(output, question, yes=yes):
        raise typer.Abort
    invocation.show(invocation.run())


def events(
    invocation: Invocation,
    *,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", metavar="", help="Continue with new events as they come."),
    ] = False,
) -> None:
    """Show logged events; go on with those that come where that is wanted."""
    if not follow:
        invocation.show(invocation.run())
        return
    with suppress(KeyboardInterrupt):
        _follow(invocation)


def _follow(invocation: Invocation) -> None:
    """Show the latest events, or those since a moment, and then new ones until interrupted."""
    session, arguments = invocation.session, dict(invocation.arguments)
    for name in ("order", "cursor", "as_of"):
        if arguments.pop(name, None) is not None:
            raise ValidationFailed(f"--follow takes no --{name.replace('_', '-')}.", field=name)
    limit = arguments.pop("limit", _LATEST)
    grown = threading.Event()
    with session.runtime(must_exist=True) as runtime:
        stop = runtime.foundation.store.follow(lambda _sequence: grown.set())
        try:
            call = partial(runtime.call, "strata_events", caller=session.caller)
            if "since" not in arguments and "after" not in arguments:
                arguments["after"] = _show_latest(session, call, {**arguments, "limit": limit})
            while True:
                _show_new(session, call, arguments)
                grown.wait()
                grown.clear()
        finally:
            stop()


def _show_latest(
    session: Session, call: Callable[..., dict[str, Any]], arguments: Mapping[str, Any]
) -> int:
    """Show the latest events; return the sequence of the last."""
    latest = call(arguments={**arguments, "order": "newest"})["results"][::-1]
    for event in latest:
        _show_event(session, event)
    return int(latest[-1]["sequence"]) if latest else 0


def _show_new(
    session: Session, call: Callable[..., dict[str, Any]], arguments: dict[str, Any]
) -> None:
    """Show the events after those that were shown, and note how far they went."""
    more = True
    while more:
        answer = call(arguments=arguments)
        for event in answer["results"]:
            _show_event(session, event)
            arguments.pop("since", None)
            arguments["after"] = event["sequence"]
        more = answer["truncated"]


def _show_event(session: Session, event: Mapping[str, Any]) -> None:
    if session.output.json:
        session.output.data(event)
    else:
        from stratagem.surfaces.cli.tables import show_event

        show_event(session.output.console, event)
    sys.stdout.flush()


def _print_raw(session: Session, answer: Mapping[str, Any]) -> None:
    """Print a value and nothing else; a file or a pipe gets it to the byte."""
    if not answer["found"]:
        from stratagem.surfaces.cli.tables import miss_text

        session.output.note(miss_text(answer))
        return
    value = answer["value"]
    if isinstance(value, str) and not sys.stdout.isatty():
        sys.stdout.write(value + "\n")
        return
    from stratagem.surfaces.cli.tables import value_text

    session.output.console.print(value_text(value), soft_wrap=True)
