"""tools: the registry of the gateway, and calls of its tools."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from stratagem import limits
from stratagem.errors import InvalidInput, StratagemError, ValidationFailed
from stratagem.surfaces.cli.advising import advice
from stratagem.surfaces.cli.output import json_text, printable
from stratagem.surfaces.cli.session import Session, command

__all__ = ["app"]

app = typer.Typer()
tools = typer.Typer(help="Register tools, and call them.", no_args_is_help=True)
app.add_typer(tools, name="tools", rich_help_panel="Gateway")
tools.add_typer(advice)

_LISTED_MAX: Final = 500

Name = Annotated[str, typer.Argument(metavar="NAME", help="A tool's name or id.")]


@tools.callback()
@command
def _tools(session: Session) -> None:
    """Register tools, and call them."""
    del session  # It has actions only.


@tools.command("add")
@command
def _add(
    session: Session,
    *,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="What to call it, or the server.")
    ] = None,
    mcp: Annotated[
        str | None, typer.Option(metavar="COMMAND|URL", help="All tools of an MCP server.")
    ] = None,
    openapi: Annotated[
        str | None, typer.Option(metavar="URL|FILE", help="All operations of an OpenAPI document.")
    ] = None,
    webhook: Annotated[
        str | None, typer.Option(metavar="URL", help="A tool that is a URL.")
    ] = None,
    file: Annotated[Path | None, typer.Option(metavar="FILE", help="A definition as JSON.")] = None,
    description: Annotated[str, typer.Option(help="What a webhook does.")] = "",
    schema: Annotated[
        str | None, typer.Option(metavar="JSON", help="What a webhook takes: a JSON Schema.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Instead of the document's servers.")
    ] = None,
) -> None:
    """Register tools: of an MCP server, of an OpenAPI document, a webhook, or a definition."""
    ways = [way for way in (mcp, openapi, webhook, file) if way is not None]
    if len(ways) != 1:
        raise InvalidInput(
            "Name one of --mcp, --openapi, --webhook and --file.",
            hint='For example: stratagem tools add files --mcp "npx -y some-server /tmp"',
        )
    if mcp is not None:
        answer = session.call("server_add", **_server(name, mcp))
    elif openapi is not None:
        answer = session.call("openapi_add", **_document(name, openapi, base_url))
    elif webhook is not None:
        answer = session.call("tool_register", **_webhook(name, webhook, description, schema))
    else:
        assert file is not None
        answer = session.call("tool_register", **_definition(file))
    session.output.answer(answer, _show_added)


@tools.command("list")
@command
def _list(
    session: Session,
    *,
    search: Annotated[str | None, typer.Argument(metavar="[WORDS]", help="Words to find.")] = None,
    category: Annotated[str | None, typer.Option(help="Of one category.")] = None,
    provider: Annotated[str | None, typer.Option(help="Of one provider.")] = None,
    status: Annotated[str | None, typer.Option(help="active, deprecated, …")] = None,
    limit: Annotated[int, typer.Option(min=1, max=_LISTED_MAX, help="At most so many.")] = 50,
) -> None:
    """Show the registered tools, your own first."""
    filters = {"search": search, "category": category, "provider": provider, "status": status}
    given = {field: value for field, value in filters.items() if value is not None}
    answer = session.call("tools_list", **given, limit=_LISTED_MAX)
    # Those that came with Stratagem would hide the few that somebody registered.
    own_first = sorted(answer["tools"], key=lambda tool: tool["provider"] == "stratagem")
    session.output.answer(dict(answer) | {"tools": own_first[:limit]}, _show_list)


@tools.command("show")
@command
def _show(session: Session, *, name: Name) -> None:
    """Show everything about a tool."""
    session.output.answer(session.call("tool_get", toolId=name), _show_tool)


@tools.command("call")
@command
def _call(
    session: Session,
    *,
    name: Name,
    arguments: Annotated[
        str, typer.Argument(metavar="[JSON]", help="The tool's arguments; - reads stdin.")
    ] = "{}",
    timeout: Annotated[
        int | None, typer.Option(metavar="MS", min=1, help="Milliseconds to wait.")
    ] = None,
    confirm: Annotated[
        str | None,
        typer.Option(metavar="CORRECTION", help="Call it with a correction that was offered."),
    ] = None,
    correct: Annotated[
        bool,
        typer.Option(
            " /--as-is", show_default=False, help="Refuse what does not fit; correct nothing."
        ),
    ] = True,
) -> None:
    """Call a tool; arguments that do not fit are corrected where one reading is possible."""
    text = typer.get_text_stream("stdin").read() if arguments == "-" else arguments
    given: dict[str, Any] = {"toolName": name, "arguments": _given(text)}
    options = {"timeout": timeout, "autoCorrect": None if correct else False}
    given["options"] = {field: each for field, each in options.items() if each is not None}
    if confirm is not None:
        given |= {"correctionId": confirm, "confirm": True}
    try:
        answer = session.call("tool_execute", **given)
    except StratagemError as error:
        if not session.output.json:
            error.hint = _hint_for_shell(error)
        raise
    session.output.answer(answer, _show_result)
    if not session.output.json:
        session.output.note(_about(answer))


@tools.command("history")
@command
def _history(
    session: Session,
    *,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Of one tool.")] = None,
    status: Annotated[str | None, typer.Option(help="success, failed or timeout.")] = None,
    agent: Annotated[str | None, typer.Option(help="Of one agent.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most so many.")] = 20,
) -> None:
    """Show what was recorded of calls, newest first."""
    filters = {"toolId": name, "status": status, "agentId": agent}
    given = {field: value for field, value in filters.items() if value is not None}
    session.output.answer(session.call("tool_executions", **given, limit=limit), _show_history)


@tools.command("rm")
@command
def _rm(session: Session, *, name: Name) -> None:
    """Take a tool out of the registry; its history stays."""
    answer = session.call("tool_remove", toolId=name)
    session.output.answer(answer, lambda console, said: console.print(f"Removed {said['name']}."))


@tools.command("servers")
@command
def _servers(session: Session) -> None:
    """Show the upstream MCP servers."""
    session.output.answer(session.call("servers_list"), _show_servers)


@tools.command("refresh")
@command
def _refresh(
    session: Session,
    *,
    name: Annotated[str, typer.Argument(metavar="SERVER", help="An upstream server.")],
    approve: Annotated[
        bool, typer.Option("--approve", help="Take changed tools as they are now.")
    ] = False,
) -> None:
    """List a server's tools anew: changed ones are quarantined, or approved."""
    answer = session.call("server_refresh", name=name, approve=approve)
    session.output.answer(answer, _show_added)


@tools.command("grant")
@command
def _grant(
    session: Session,
    *,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="A tool, or an upstream server.")],
    secret: Annotated[str, typer.Argument(metavar="SECRET", help="The NAME in ${NAME}.")],
    host: Annotated[str, typer.Argument(metavar="HOST", help="Where it may be sent.")],
) -> None:
    """Let a tool send a secret to one host; its value is STRATAGEM_SECRET_NAME of the server."""
    answer = session.call("secret_grant", tool=tool, name=secret, host=host)
    session.output.answer(
        answer,
        lambda console, said: console.print(
            f"{said['tool']} may send {said['name']} to {said['host']}."
        ),
    )


@tools.command("retention")
@command
def _retention(
    session: Session,
    *,
    days: Annotated[
        float, typer.Option(metavar="DAYS", min=0, help="How long executions are kept.")
    ] = limits.EXECUTION_DAYS_KEPT,
) -> None:
    """Erase for good what old calls were made with, and what they gave."""
    answer = session.call("executions_erase", days=days)
    session.output.answer(answer, _show_erased)


def _show_erased(console: Console, answer: Mapping[str, Any]) -> None:
    left = " There are more: run it again." if answer["more"] else ""
    console.print(f"Erased the content of {answer['erased']:,} records.{left}")


def _hint_for_shell(error: StratagemError) -> str:
    """Return the next step as somebody at a terminal takes it."""
    if error.details.get("corrections"):
        return "If one of them is what you meant, call it again with --confirm CORRECTION."
    if body := error.details.get("body"):
        return f"It said: {body if isinstance(body, str) else str(body)}"
    return error.hint


def _given(text: str) -> Any:
    """Return the arguments of a call; what is no JSON is left to the gateway to read."""
    import orjson

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _server(name: str | None, where: str) -> dict[str, Any]:
    if where.startswith(("http://", "https://")):
        return {"name": name or _host_name(where), "url": where}
    command_line = shlex.split(where)
    if not command_line:
        raise ValidationFailed("--mcp is a command, or a URL.", field="mcp")
    return {
        "name": name or Path(command_line[-1]).name.split("@")[0] or "server",
        "command": command_line[0],
        "args": command_line[1:],
    }


def _host_name(url: str) -> str:
    from urllib.parse import urlsplit

    return (urlsplit(url).hostname or "server").replace(".", "-")


def _document(name: str | None, where: str, base_url: str | None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if where.startswith(("http://", "https://")):
        given["url"] = where
    else:
        given["document"] = _text_of(Path(where))
    given |= {"prefix": f"{name}_"} if name else {}
    return given | ({"baseUrl": base_url} if base_url else {})


def _webhook(name: str | None, url: str, description: str, schema: str | None) -> dict[str, Any]:
    if name is None:
        raise InvalidInput("A webhook needs a NAME.", hint="stratagem tools add NAME --webhook URL")
    return {
        "name": name,
        "description": description or f"Call {url}.",
        "inputSchema": _arguments(schema) if schema else {"type": "object"},
        "handler": {"type": "webhook", "url": url},
    }


def _definition(file: Path) -> Any:
    return _arguments(_text_of(file))


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(
            f"{file} cannot be read: {reason}.", hint="Check the path and its permissions."
        ) from error


def _arguments(text: str) -> Any:
    import orjson

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(
            f"This is no JSON: {error}.", hint="""Quote it: '{"key": "value"}'."""
        ) from error


def _show_added(console: Console, answer: Mapping[str, Any]) -> None:
    if "toolId" in answer:
        console.print(f"Registered {answer['name']} ({answer['toolId']}).")
        warnings = answer["validation"]["warnings"]
    else:
        for word in ("registered", "updated", "quarantined"):
            if answer[word]:
                names = ", ".join(map(printable, answer[word]))
                console.print(f"{word.capitalize()} {len(answer[word])}: {names}", soft_wrap=True)
        warnings = answer["warnings"]
    for warning in warnings:
        console.print(printable(f"Note: {warning}"), style="dim", soft_wrap=True)


def _show_list(console: Console, answer: Mapping[str, Any]) -> None:
    from stratagem.surfaces.cli.tables import brief, show, table

    if not answer["tools"]:
        console.print("No tool fits.")
        return
    # Where all is well a column that says so would leave no room for what the tools do.
    unusual = any(each["status"] != "active" for each in answer["tools"])
    rows = table("NAME", "PROVIDER", *(["STATUS"] if unusual else ()), "WORKS", "DESCRIPTION")
    for each in answer["tools"]:
        rate = each["performance"]["successRate"]
        rows.add_row(
            printable(each["name"]),
            printable(each["provider"]),
            *([each["status"]] if unusual else ()),
            "–" if rate is None else f"{rate:.0%}",
            brief(each["description"]),
        )
    show(console, rows)
    left = answer["total"] - len(answer["tools"])
    if left > 0:
        console.print(f"{left:,} more; see --limit.", style="dim")


def _show_tool(console: Console, answer: Mapping[str, Any]) -> None:
    from stratagem.surfaces.cli.tables import show_fields

    show_fields(console, answer["tool"])


def _show_result(console: Console, answer: Mapping[str, Any]) -> None:
    result = answer["result"]
    text = printable(result) if isinstance(result, str) else json_text(result, indented=True)
    console.print(text, soft_wrap=True)


def _about(answer: Mapping[str, Any]) -> str:
    notes = answer["metadata"]
    cached = ", from the cache" if notes["cached"] else ""
    said = f"{answer['executionId']}, {notes['duration']:.1f} ms{cached}"
    correction = notes.get("correction")
    if not correction:
        return said
    from stratagem.surfaces.cli.advice_tables import reasons

    return "\n".join(
        ["Corrected:", *(f"  {each}" for each in reasons(correction["reasoning"])), said]
    )


def _show_history(console: Console, answer: Mapping[str, Any]) -> None:
    from stratagem.surfaces.cli.tables import brief, show, table, when

    calls = answer["executions"]
    if not calls:
        console.print("Nothing was called yet.")
        return
    # Who called is worth a column only where it was not always the command line.
    others = any(each["caller"] != "cli" for each in calls)
    callers = ("CALLER",) if others else ()
    rows = table("STARTED", "TOOL", "STATUS", "MS", *callers, "EXECUTION", "ERROR")
    for each in calls:
        rows.add_row(
            when(each["startedAt"]),
            printable(each["tool"]),
            each["status"],
            f"{each['duration']:.0f}",
            *([printable(each["caller"])] if others else ()),
            each["executionId"],
            brief((each.get("error") or {}).get("message", "")),
        )
    show(console, rows)


def _show_servers(console: Console, answer: Mapping[str, Any]) -> None:
    from stratagem.surfaces.cli.tables import show, table

    if not answer["servers"]:
        console.print("There is none yet: stratagem tools add NAME --mcp COMMAND adds one.")
        return
    rows = table("SERVER", "WHERE", "TOOLS")
    for each in answer["servers"]:
        where = each.get("url") or shlex.join([each["command"], *each["args"]])
        names = ", ".join(
            tool["name"] if tool["status"] == "active" else f"{tool['name']} ({tool['status']})"
            for tool in each["tools"]
        )
        rows.add_row(printable(each["name"]), printable(where), printable(names))
    show(console, rows)
