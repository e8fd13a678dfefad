"""store, recall, search, forget, log, history."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from stratagem import limits
from stratagem.surfaces.cli.inputs import read_items, read_value
from stratagem.surfaces.cli.session import Session, command

__all__ = ["app"]

app = typer.Typer()
PANEL = "Memory"


def _keys(ctx: typer.Context, incomplete: str) -> list[str]:
    from stratagem.surfaces.cli.completion import keys

    return keys(ctx, incomplete)


Tags = Annotated[
    list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="A tag; repeat for several.")
]
AsOf = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN", help='A past moment: "1h ago", "yesterday 14:00", "2026-03-04", "@123".'
    ),
]
SessionName = Annotated[
    str | None, typer.Option("--session", metavar="NAME", help="The conversation it belongs to.")
]
Cursor = Annotated[
    str | None, typer.Option(metavar="NEXT", help="Where an earlier answer said to go on.")
]
AsText = Annotated[
    bool, typer.Option("--text", metavar="", help="Text, even if it looks like JSON.")
]
RequestId = Annotated[
    str | None, typer.Option(metavar="ID", help="Makes a repeat safe: written once.")
]
Key = Annotated[str | None, typer.Argument(metavar="KEY", autocompletion=_keys, help="The key.")]
Keys = Annotated[
    list[str], typer.Argument(metavar="KEY", autocompletion=_keys, help="One key, or several.")
]


@app.command("store", rich_help_panel=PANEL)
@command
def _store(
    session: Session,
    *,
    key: Key = None,
    value: Annotated[
        str | None,
        typer.Argument(metavar="VALUE", help="JSON if it is JSON, else text; - reads stdin."),
    ] = None,
    text: AsText = False,
    tag: Tags = None,
    ttl: Annotated[
        str | None, typer.Option(metavar="TIME", help='Expires after: "7d", "12h", "90".')
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(metavar="JSONPATH", help='Change one place of the value: "$.a.b[0]".'),
    ] = None,
    expected_version: Annotated[
        int | None, typer.Option(metavar="N", help="Only if it is at this version; 0: only if new.")
    ] = None,
    session_name: SessionName = None,
    no_index: Annotated[
        bool, typer.Option("--no-index", metavar="", help="Not searchable, as a counter.")
    ] = False,
    items: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Store several: a JSON array, or a line each; - stdin."),
    ] = None,
    request_id: RequestId = None,
) -> None:
    """Remember a value under a key. What was there stays in its history."""
    given: dict[str, Any] = {"key": key, "tags": tag, "ttl": ttl, "path": path}
    if value is not None:
        # JSON's null is a value, and must not look like an option that was left out.
        given["value"] = read_value(value, text=text)
    if items is not None:
        given["items"] = read_items(items)
    given |= {"expected_version": expected_version, "session": session_name}
    given |= {"request_id": request_id, "index": False if no_index else None}
    _say(session, "strata_store", given, kept={"value"})


@app.command("recall", rich_help_panel=PANEL)
@command
def _recall(
    session: Session,
    *,
    keys: Keys,
    as_of: AsOf = None,
    path: Annotated[
        str | None, typer.Option(metavar="JSONPATH", help='One place of the value: "$.a.b[0]".')
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", metavar="", help="The value alone, to pipe it on.")
    ] = False,
) -> None:
    """Show what is stored under a key, now or at a past moment."""
    from stratagem.surfaces.cli.tables import show_entries, show_entry

    if len(keys) > 1:
        answer = session.call(
            "strata_recall", keys=keys, as_of=as_of, max_chars=limits.ANSWER_CHARS_MAX
        )
        session.output.answer(answer, show_entries)
        return
    answer = _whole(session, keys[0], as_of, path)
    if raw and not session.output.json:
        _print_raw(session, answer)
    else:
        session.output.answer(answer, show_entry)


@app.command("search", rich_help_panel=PANEL)
@command
def _search(
    session: Session,
    *,
    query: Annotated[
        list[str], typer.Argument(metavar="QUERY", help="What to find, in your own words.")
    ],
    k: Annotated[
        int, typer.Option("-k", metavar="N", help="How many results.")
    ] = limits.SEARCH_K_DEFAULT,
    tag: Tags = None,
    as_of: AsOf = None,
    cursor: Cursor = None,
) -> None:
    """Find entries and logged events by words and by meaning, best first."""
    from stratagem.surfaces.cli.tables import show_hits

    answer = session.call(
        "strata_search",
        query=" ".join(query),
        k=k,
        tags=tag,
        as_of=as_of,
        cursor=cursor,
        namespace=session.options.namespace if session.options.namespace_asked else None,
        max_chars=limits.ANSWER_CHARS_MAX,
    )
    session.output.answer(answer, show_hits)
    _say_more(session, answer)


@app.command("forget", rich_help_panel=PANEL)
@command
def _forget(session: Session, *, keys: Keys, request_id: RequestId = None) -> None:
    """Remove what is stored under a key. Past moments still show it."""
    given: dict[str, Any] = {"key": keys[0]} if len(keys) == 1 else {"keys": keys}
    _say(session, "strata_forget", {**given, "request_id": request_id})


@app.command("log", rich_help_panel=PANEL)
@command
def _log(
    session: Session,
    *,
    event: Annotated[
        str, typer.Argument(metavar="EVENT", help='What kind of event, as "observation".')
    ],
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="JSON if it is JSON, else text; - reads stdin.")
    ],
    text: AsText = False,
    tag: Tags = None,
    session_name: SessionName = None,
    request_id: RequestId = None,
) -> None:
    """Append an event: something that happened and will not change."""
    given = {"event": event, "data": read_value(data, text=text), "tags": tag}
    given |= {"session": session_name, "request_id": request_id}
    _say(session, "strata_log", given, kept={"data"})


@app.command("history", rich_help_panel=PANEL)
@command
def _history(
    session: Session,
    *,
    key: Key = None,
    as_of: AsOf = None,
    limit: Annotated[
        int, typer.Option(metavar="N", help="How many versions.")
    ] = limits.HISTORY_PAGE_DEFAULT,
    cursor: Cursor = None,
) -> None:
    """Show the versions of an entry, newest first; without a key, the branch's time range."""
    from stratagem.surfaces.cli.tables import show_history

    answer = session.call(
        "strata_history",
        key=key,
        as_of=as_of,
        limit=limit,
        cursor=cursor,
        max_chars=limits.ANSWER_CHARS_MAX,
    )
    session.output.answer(answer, show_history)
    _say_more(session, answer)


def _say(
    session: Session,
    name: str,
    given: dict[str, Any],
    kept: frozenset[str] | set[str] = frozenset(),
) -> None:
    """Run an operation that answers with a sentence."""
    from stratagem.operations import find

    arguments = {key: each for key, each in given.items() if each is not None or key in kept}
    with session.runtime() as runtime:
        answer = runtime.call(name, arguments, session.caller)
    if session.output.json:
        session.output.data(answer)
    else:
        session.output.line(find(name).summarise(answer))


def _say_more(session: Session, answer: dict[str, Any]) -> None:
    """Say how to go on, where there is more."""
    if answer.get("truncated") and "note" not in answer and not session.output.json:
        session.output.note(f"There is more: add --cursor {answer['next']}.")


def _whole(session: Session, key: str, as_of: str | None, path: str | None) -> dict[str, Any]:
    """Recall an entry, however long its value is."""
    from stratagem.answers import plain
    from stratagem.memory.service import Memory

    given = {"key": key, "as_of": as_of, "path": path}
    arguments = {name: each for name, each in given.items() if each is not None}
    with session.runtime() as runtime:
        answer = runtime.call(
            "strata_recall", {**arguments, "max_chars": limits.ANSWER_CHARS_MAX}, session.caller
        )
        if answer.get("truncated"):
            entry = Memory(runtime.foundation, session.caller).recall(key, as_of=as_of, path=path)
            answer = {"found": True, **plain(entry)}
    return answer


def _print_raw(session: Session, answer: dict[str, Any]) -> None:
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
