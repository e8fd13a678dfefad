"""token: who may use a server, and what was done with that."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from stratagem.errors import PermissionDenied, StratagemError, ValidationFailed
from stratagem.places import display_place
from stratagem.surfaces.cli.output import confirm, printable
from stratagem.surfaces.cli.session import Session, command
from stratagem.surfaces.cli.settings import option

if TYPE_CHECKING:
    from rich.console import Console

    from stratagem.access.service import Access
    from stratagem.access.tokens import Token

__all__ = ["app"]

app = typer.Typer()
PANEL = "For agents"
AUDIT_DEFAULT = 50
HOST_DEFAULT = "127.0.0.1"
_NEEDED_NOW = (
    "From now on every client of a server on this database needs a token, over MCP, "
    "REST and Socket.IO; `stratagem mcp` and the command line do not. `stratagem "
    "token off` undoes this."
)
Host = Annotated[str, option("host")]
Period = Literal["hour", "day", "month"]
ServerName = Annotated[list[str] | None, option("server_name")]
PublicUrl = Annotated[str | None, option("public_url")]

token = typer.Typer(help="Tokens: who may use a server, and for what.", no_args_is_help=True)
app.add_typer(token, name="token", rich_help_panel=PANEL)


@token.callback()
@command
def _token(session: Session) -> None:
    """Tokens: who may use a server, and for what."""
    del session  # It has actions only.


@token.command("create")
@command
def _create(
    session: Session,
    *,
    name: Annotated[str, typer.Argument(help="The owner's name; it is never used twice.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="TOOLSET:RIGHT", help="Such as memory:read or *:write; repeatable."),
    ] = None,
    admin: Annotated[
        bool, typer.Option("--admin", metavar="", help="All rights, in the role of admin.")
    ] = False,
    workspace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:ROLE]",
            help="A workspace it opens, as reader, member or admin; repeatable.",
        ),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="When it ends, such as 30d. Default: never.")
    ] = None,
    rate: Annotated[int | None, typer.Option(min=1, help="Requests in a minute.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Requests at once.")] = None,
    tools: Annotated[
        list[str] | None,
        typer.Option(metavar="TOOLSET", help="Only tools of this named set; repeatable."),
    ] = None,
    calls: Annotated[
        int | None, typer.Option(min=1, help="Calls of tools in each period of --per.")
    ] = None,
    cost: Annotated[
        float | None, typer.Option(min=0, help="What those calls may cost, by their pricing.")
    ] = None,
    per: Annotated[
        Period, typer.Option(help="When calls and cost start from zero again: hour, day or month.")
    ] = "day",
) -> None:
    """Make a token. It is shown this once, and kept nowhere. With --read-only it only reads."""
    from stratagem.engine.moments import duration

    scopes = _scopes(scope or [], only_read=bool(session.options.read_only), admin=admin)
    roles = _roles(session, workspace or [], "admin" if admin else "member")
    seconds = None if expires is None else duration(expires, field="expires") // 1_000_000
    with _access(session) as access:
        first = not access.are_needed()
        made, secret = access.create(
            name,
            scopes,
            roles,
            seconds=seconds,
            rate=rate,
            concurrency=concurrency,
            tool_sets=tools or None,
            budget=_budget(calls, cost, per),
        )
        answer = {**_describe(made, access.now()), "token": secret}
    notes = [_NEEDED_NOW] if first else []
    notes += _note_on_new_workspaces(session, roles)
    if notes:
        answer["note"] = " ".join(notes)
    session.output.answer(answer, _show_created)


@token.command("list")
@command
def _list(session: Session) -> None:
    """Show every token, revoked ones too; never what it takes to use one."""
    with _access(session, must_exist=True) as access:
        now = access.now()
        found = [_describe(each, now) for each in access.every()]
    session.output.answer({"tokens": found}, _show_list)


@token.command("revoke")
@command
def _revoke(
    session: Session, *, which: Annotated[str, typer.Argument(help="Its name or id.")]
) -> None:
    """End a token: every server refuses it within a second."""
    with _access(session, must_exist=True) as access:
        ended = access.revoke(which)
        answer = _describe(ended, access.now())
    session.output.answer(
        answer, lambda console, _: console.print(f"Revoked {printable(ended.name)}.")
    )


@token.command("off")
@command
def _off(
    session: Session,
    *,
    host: Host = HOST_DEFAULT,
    server_name: ServerName = None,
    public_url: PublicUrl = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask.")] = False,
) -> None:
    """Revoke every token and need none: for servers that only this machine reaches."""
    _check_private(host, server_name, public_url)
    with _access(session, must_exist=True) as access:
        count = sum(each.revoked_at is None for each in access.every())
        question = (
            f"Revoke {count} tokens and let every program on this machine use the servers "
            f"on {display_place(session.database)}?"
        )
        if not confirm(session.output, question, yes=yes):
            return
        answer = {"revoked": access.turn_off()}
    session.output.answer(
        answer,
        lambda console, _: console.print(
            f"Revoked {answer['revoked']}. No client on this machine needs a token; servers "
            "that other machines can reach refuse everybody until one is created.",
            soft_wrap=True,
        ),
    )


def _check_private(host: str, server_name: list[str] | None, public_url: str | None) -> None:
    """Refuse to open a server that others reach, as far as its settings say so.

    Raises:
        PermissionDenied: They do.
    """
    from stratagem.surfaces.serving.settings import ServerSettings

    settings = ServerSettings(
        database="", host=host, server_names=tuple(server_name or ()), public_url=public_url
    )
    if not settings.reached_by_others:
        return
    reached = settings.known_names[0] if settings.known_names else host
    raise PermissionDenied(
        f"The server is set up to be reached as {reached}: without tokens anybody could use it.",
        required="a server on 127.0.0.1",
        hint="Serve on 127.0.0.1 alone first, or end single tokens: stratagem token revoke NAME",
    )


@token.command("audit")
@command
def _audit(
    session: Session,
    *,
    limit: Annotated[
        int, typer.Option(min=1, help="How many to show, newest first.")
    ] = AUDIT_DEFAULT,
) -> None:
    """Show refused authentications, administrators' acts, and changes of who may do what."""
    from stratagem.gateway.names import AUDITED

    with _access(session, must_exist=True) as access:
        found = access.audit(limit, AUDITED)
    session.output.answer({"events": found}, _show_audit)


@contextmanager
def _access(session: Session, *, must_exist: bool = False) -> Iterator[Access]:
    from stratagem.access.service import Access

    with session.runtime(must_exist=must_exist, read_only=False) as runtime:
        yield Access(runtime.foundation, session.caller, os.urandom)


def _budget(calls: int | None, cost: float | None, per: str) -> dict[str, Any] | None:
    bounds = {"calls": calls, "cost": cost or None}
    given = {name: each for name, each in bounds.items() if each is not None}
    return {**given, "per": per} if given else None


def _scopes(given: list[str], *, only_read: bool, admin: bool) -> list[str]:
    from stratagem.access.scopes import PRESETS

    if sum((bool(given), only_read, admin)) > 1:
        raise ValidationFailed("Choose one of --scope, --read-only and --admin.", field="scope")
    if given:
        return [each for text in given for each in text.replace(",", " ").split()]
    return list(PRESETS["admin" if admin else "read-only" if only_read else "full"])


def _roles(session: Session, given: list[str], role: str) -> Mapping[str, str]:
    from stratagem.access.workspaces import home_of

    named = given or [home_of(session.database)]
    return {name: stated or role for name, _, stated in (each.partition(":") for each in named)}


def _note_on_new_workspaces(session: Session, roles: Mapping[str, str]) -> list[str]:
    """Say which workspaces of a token are not there yet; a name may be written wrong."""
    from stratagem.access.workspaces import home_of
    from stratagem.bootstrap import workspaces
    from stratagem.places import is_address

    database = session.database
    # An address that names a workspace is asked for all that the server has.
    server = database.partition("#")[0] if is_address(database) else database
    try:
        there = {*workspaces(server), home_of(database)}
    except StratagemError:
        # The token is made, and is shown this once.
        return []
    return [
        f"There is no workspace {name!r} yet: the first use makes it."
        for name in roles
        if name not in there
    ]


def _describe(token_: Token, now: int) -> dict[str, Any]:
    """Return what may be shown of a token."""
    from stratagem.engine.moments import iso

    times = {
        name: None if moment is None else iso(moment)
        for name, moment in (
            ("created", token_.created_at),
            ("expires", token_.expires_at),
            ("revoked", token_.revoked_at),
        )
    }
    return {
        "id": token_.id,
        "name": token_.name,
        "state": token_.state(now),
        "scopes": sorted(token_.scopes),
        "workspaces": dict(token_.roles),
        **({} if token_.tool_sets is None else {"tools": sorted(token_.tool_sets)}),
        **({} if token_.budget is None else {"budget": dict(token_.budget)}),
        **times,
    }


def _show_created(console: Console, answer: Mapping[str, Any]) -> None:
    opens = ", ".join(f"{name} ({role})" for name, role in answer["workspaces"].items())
    console.print(f"Token {printable(answer['name'])}: {' '.join(answer['scopes'])} in {opens}.")
    console.print("It is shown only once:\n")
    console.print(answer["token"], soft_wrap=True)


def _show_list(console: Console, answer: Mapping[str, Any]) -> None:
    from stratagem.surfaces.cli.tables import show, table, when

    if not answer["tokens"]:
        console.print(
            "There is no token: everybody who can reach a server on this machine may use it."
        )
        return
    rows = table("NAME", "STATE", "SCOPES", "WORKSPACES", "CREATED", "EXPIRES")
    for each in answer["tokens"]:
        opens = " ".join(f"{name}:{role}" for name, role in each["workspaces"].items())
        expires = when(each["expires"]) if each["expires"] else "never"
        rows.add_row(
            printable(each["name"]),
            each["state"],
            " ".join(each["scopes"]),
            opens,
            when(each["created"]),
            expires,
        )
    show(console, rows)


def _show_audit(console: Console, answer: Mapping[str, Any]) -> None:
    from stratagem.surfaces.cli.tables import show, table, when

    rows = table("WHEN", "WHAT", "DETAILS")
    for each in answer["events"]:
        rows.add_row(when(each["at"]), each["event"], printable(_details(each)))
    show(console, rows)


def _secret_details(event: Mapping[str, Any]) -> str:
    """Say whose secret it is about, where it may go, and who or what brought this about."""
    words = [event[name] for name in ("tool", "server", "user", "name") if name in event]
    words += [f"to {event['origin']}"] if "origin" in event else []
    by = f" by {event['actor']}" if event.get("actor") else ""
    why = f": {event['reason']}" if "reason" in event else ""
    return f"{' '.join(words)}{by}{why}"


def _details(event: Mapping[str, Any]) -> str:
    if "refusals" in event:
        return "; ".join(
            f"{each['count']} x {each['reason']} from {each['address']}, {each['way']}"
            for each in event["refusals"]
        )
    if "revoked" in event and "name" not in event:
        return f"{event['revoked']} tokens revoked, none needed"
    if "operation" in event:
        return f"{event['operation']} by {event['actor']}"
    if "scopes" not in event:
        return _secret_details(event)
    return f"{event['name']}: {' '.join(event['scopes'])}"
