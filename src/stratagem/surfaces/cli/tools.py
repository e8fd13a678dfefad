"""tools: the registry of the gateway, and calls of its tools."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console

from stratagem import limits
from stratagem.engine import values
from stratagem.errors import (
    TABLE,
    ExecutionFailed,
    InvalidInput,
    StratagemError,
    ValidationFailed,
)
from stratagem.surfaces.cli.command_classes import OperationGroup
from stratagem.surfaces.cli.operation_commands import Invocation
from stratagem.surfaces.cli.output import confirm, json_text, printable
from stratagem.surfaces.cli.session import Session, command

if TYPE_CHECKING:
    from stratagem.gateway.calls.answers import (
        CallAnswer,
        ErasedExecutions,
        ExecutionPage,
        ToolAnswer,
        ToolList,
        WorkList,
    )
    from stratagem.gateway.registry.answers import (
        NewGrant,
        OpenApiTools,
        RemovedServer,
        RemovedTool,
        ServerList,
        ServerTools,
        ToolRegistration,
    )

__all__ = [
    "app",
    "call_tool",
    "list_tools",
    "plan",
    "show_added",
    "show_erased",
    "show_granted",
    "show_history",
    "show_list",
    "show_removed",
    "show_removed_server",
    "show_result",
    "show_servers",
    "show_tool",
    "show_work",
]

# The provider of what comes with the product.
_PRODUCT = "stratagem"
_REFUSED = "refused"

app = typer.Typer()
tools = typer.Typer(cls=OperationGroup, no_args_is_help=True)
app.add_typer(tools, name="tools", rich_help_panel="Gateway")


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
        str | None, typer.Argument(metavar="[NAME]", help="The name of the tool or the server.")
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
        str | None, typer.Option(metavar="JSON", help="The parameters of a webhook: a JSON Schema.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Instead of the document's servers.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'NAME: VALUE'",
            help="Sent to a webhook or server; ${NAME} is a secret, ${user.NAME} each user's own; "
            "repeatable.",
        ),
    ] = None,
    oauth: Annotated[
        bool, typer.Option("--oauth", metavar="", help="Users sign in to the MCP server.")
    ] = False,
) -> None:
    """Register tools: of an MCP server, of an OpenAPI document, a webhook, or a definition."""
    ways = [way for way in (mcp, openapi, webhook, file) if way is not None]
    if len(ways) != 1:
        raise InvalidInput(
            "Give one of --mcp, --openapi, --webhook and --file.",
            hint='For example: stratagem tools add files --mcp "npx -y some-server /tmp"',
        )
    if mcp is not None:
        auth = {"auth": {"type": "oauth"}} if oauth else {}
        answer = session.call("server_add", **_server(name, mcp, _headers(header) | auth))
    elif openapi is not None:
        answer = session.call("openapi_add", **_document(name, openapi, base_url))
    elif webhook is not None:
        given = _webhook(name, webhook, description, schema)
        given["handler"] |= _headers(header)
        answer = session.call("tool_register", **given)
    else:
        assert file is not None
        answer = session.call("tool_register", **_definition(file))
    session.output.answer(answer, _show_registered if "toolId" in answer else show_added)


@tools.command("import")
@command
def _import(
    session: Session,
    *,
    file: Annotated[
        Path, typer.Argument(help="Settings of Claude, Cursor, VS Code or Codex, or a server.json.")
    ],
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this server; repeatable.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Show what would be added; add nothing.")
    ] = False,
) -> None:
    """Add the MCP servers that another program's settings file names."""
    from stratagem.gateway.registry.server_imports import path_variables
    from stratagem.surfaces.cli.server_import import import_servers, show_import

    text, paths = _text_of(file), path_variables(file)
    answer = import_servers(session, text, paths, only or [], dry_run=dry_run)
    session.output.answer(answer, show_import)
    if any(each["state"] == "failed" for each in answer["servers"]):
        raise typer.Exit(TABLE[ExecutionFailed.code].exit_code)


def list_tools(
    invocation: Invocation,
    *,
    include_own: Annotated[
        bool,
        typer.Option("--include-own", metavar="", help="Show Stratagem's own operations too."),
    ] = False,
) -> None:
    """Show your own tools first, and Stratagem's own operations only where they are asked for."""
    from stratagem.operations import TABLE as OPERATIONS

    arguments = invocation.arguments
    limit, offset = arguments.get("limit", limits.TOOLS_LISTED_DEFAULT), arguments.get("offset", 0)
    answer = Invocation(
        invocation.session,
        invocation.operation,
        invocation.hint,
        arguments | {"limit": limits.TOOLS_LISTED_MAX, "offset": 0},
    ).run()
    tools = [
        tool
        for tool in answer["tools"]
        if include_own or tool["provider"] != _PRODUCT or tool["name"] not in OPERATIONS
    ]
    left_out = len(answer["tools"]) - len(tools)
    tools.sort(key=lambda tool: tool["provider"] == _PRODUCT)
    shown = {"tools": tools[offset : offset + limit], "total": answer["total"] - left_out}
    invocation.show(answer | shown | ({"leftOut": left_out} if left_out else {}))


def call_tool(
    invocation: Invocation,
    *,
    timeout: Annotated[
        int | None, typer.Option(metavar="MS", min=1, help="Milliseconds to wait.")
    ] = None,
    confirm: Annotated[
        str | None,
        typer.Option(metavar="[CORRECTION]", help="Call it with a correction that was offered."),
    ] = None,
    correct: Annotated[
        bool,
        typer.Option(
            " /--as-is", show_default=False, help="Refuse what does not fit; correct nothing."
        ),
    ] = True,
) -> None:
    """Call a tool, and say what became of the call besides its result."""
    arguments, output = invocation.arguments, invocation.session.output
    options = {"timeout": timeout, "autoCorrect": None if correct else False}
    given = {name: each for name, each in options.items() if each is not None}
    if given:
        arguments["options"] = arguments.get("options", {}) | given
    if confirm is not None:
        arguments |= {"confirm": True} | ({"correctionId": confirm} if confirm else {})
    try:
        answer = invocation.run()
    except StratagemError as error:
        if not output.json:
            error.hint = _hint_for_shell(error)
        raise
    invocation.show(answer)
    if not output.json:
        output.note(_about(answer))


def plan(
    invocation: Invocation,
    *,
    run: Annotated[
        bool, typer.Option("--run", help="Call the tools, if nothing is missing.")
    ] = False,
) -> None:
    """Plan, and run the plan where that was asked for."""
    from stratagem.surfaces.cli.advice_tables import show_run

    planned = invocation.run()
    if not run:
        invocation.show(planned)
        return
    if not planned["runnable"]:
        raise ValidationFailed(
            "The plan cannot be run as it is.",
            field="inputs",
            missing=planned["missing"],
            hint="Run it without --run to see what is missing.",
        )
    session, inputs = invocation.session, invocation.arguments.get("inputs", {})
    done = session.call("tools_pipeline", **planned["definition"], input=inputs)
    session.output.answer(done, show_run)
    if not done["success"]:
        raise typer.Exit(TABLE[ExecutionFailed.code].exit_code)


def show_removed(console: Console, answer: RemovedTool) -> None:
    """Show that a tool was removed."""
    console.print(printable(f"Removed {answer['name']}."), soft_wrap=True)


def show_removed_server(console: Console, answer: RemovedServer) -> None:
    """Show that a server was removed, and which tools with it."""
    tools = ", ".join(answer["removed"]) or "it had no tools"
    console.print(printable(f"Removed {answer['name']}: {tools}."), soft_wrap=True)


def show_granted(console: Console, answer: NewGrant) -> None:
    """Show where a tool may send a secret."""
    said = f"{answer['tool']} may send {answer['name']} to {answer['origin']}."
    console.print(printable(said), soft_wrap=True)
    if "note" in answer:
        console.print(printable(f"Note: {answer['note']}"), soft_wrap=True)


def erase_executions(
    invocation: Invocation,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask.")] = False,
) -> None:
    """Ask before the content of old calls is erased for good."""
    session, given = invocation.session, invocation.arguments
    days = given.get("days", limits.EXECUTION_DAYS_KEPT)
    question = f"Erase for good the arguments and results of calls older than {days:g} days?"
    if not given.get("preview") and not confirm(session.output, question, yes=yes):
        raise typer.Abort
    invocation.show(invocation.run())


def show_erased(console: Console, answer: ErasedExecutions) -> None:
    """Show how much was erased."""
    if answer.get("preview"):
        least = "At least " if answer["more"] else ""
        console.print(f"{least}{answer['found']:,} records would lose their content.")
        return
    left = " There are more: run it again." if answer["more"] else ""
    console.print(f"Erased the content of {answer['erased']:,} records.{left}")


def _hint_for_shell(error: StratagemError) -> str:
    """Return the next step as somebody at a terminal takes it."""
    if error.details.get("corrections"):
        return "If one of them is what you meant, call it again with --confirm CORRECTION."
    if body := error.details.get("body"):
        return f"It said: {body if isinstance(body, str) else str(body)}"
    return error.hint


def _headers(given: list[str] | None) -> dict[str, Any]:
    pairs = [each.partition(":") for each in given or ()]
    if any(not colon for _name, colon, _value in pairs):
        raise ValidationFailed("--header must be 'NAME: VALUE'.", field="header")
    headers = {name.strip(): value.strip() for name, _colon, value in pairs}
    return {"headers": headers} if headers else {}


def _server(name: str | None, where: str, headers: Mapping[str, Any]) -> dict[str, Any]:
    if where.startswith(("http://", "https://")):
        return {"name": name or _host_name(where), "url": where, **headers}
    command_line = shlex.split(where)
    if not command_line:
        raise ValidationFailed("--mcp must be a command or a URL.", field="mcp")
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
    try:
        return values.read(text.encode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise InvalidInput(
            f"This is not JSON: {error}.", hint="""Quote it: '{"key": "value"}'."""
        ) from error


def show_added(console: Console, answer: OpenApiTools | ServerTools) -> None:
    """Show which tools were registered, changed or quarantined."""
    for word, listed in (
        ("Registered", answer["registered"]),
        ("Updated", answer["updated"]),
        ("Quarantined", answer["quarantined"]),
    ):
        if listed:
            names = ", ".join(map(printable, listed))
            console.print(f"{word} {len(listed)}: {names}", soft_wrap=True)
    if "needs" in answer:
        console.print(printable(f"Added {answer.get('server')}; its tools are not known yet."))
    _show_warnings(console, answer["warnings"])


def _show_registered(console: Console, answer: ToolRegistration) -> None:
    console.print(f"Registered {answer['name']} ({answer['toolId']}).")
    _show_warnings(console, answer["validation"]["warnings"])


def _show_warnings(console: Console, warnings: Sequence[str]) -> None:
    for warning in warnings:
        console.print(printable(f"Note: {warning}"), style="dim", soft_wrap=True)


def show_list(console: Console, answer: ToolList) -> None:
    """Show tools as a table."""
    from stratagem.surfaces.cli.tables import brief, plural, show, table

    # Added by `list_tools`.
    left_out = cast("Mapping[str, int]", answer).get("leftOut", 0)
    own = f"{plural(left_out, 'operation')} of Stratagem itself left out; see --include-own."
    if not answer["tools"]:
        console.print(f"No tool fits. {own}" if left_out else "No tool fits.")
        return
    # Where all is well a column that says so would leave no room for what the tools do.
    unusual = any(_status(each) != "active" for each in answer["tools"])
    rows = table("NAME", "PROVIDER", *(["STATUS"] if unusual else ()), "WORKS", "DESCRIPTION")
    for each in answer["tools"]:
        rate = each["performance"]["successRate"]
        rows.add_row(
            printable(each["name"]),
            printable(each["provider"]),
            *([_status(each)] if unusual else ()),
            "–" if rate is None else f"{rate:.0%}",
            brief(each["description"]),
        )
    show(console, rows)
    left = answer["total"] - len(answer["tools"])
    if left > 0:
        console.print(f"{left:,} more; see --limit.", style="dim")
    if left_out:
        console.print(own, style="dim")
    if any(_status(each) == _REFUSED for each in answer["tools"]):
        console.print("Why one is refused: stratagem tools show NAME.", style="dim")


def _status(tool: Mapping[str, Any]) -> str:
    """Return whether a tool can be called, in a word."""
    if "unavailable" in tool:
        return "unavailable"
    is_refused = tool.get("callable") is False or "fault" in tool
    if not is_refused and tool.get("suspendedSecrets"):
        return "suspended"
    return _REFUSED if is_refused else str(tool["status"])


def show_tool(console: Console, answer: ToolAnswer) -> None:
    """Show everything about a tool."""
    from stratagem.surfaces.cli.tables import show_fields

    show_fields(console, answer["tool"])


def show_result(console: Console, answer: CallAnswer) -> None:
    """Show what a tool gave."""
    result = answer["result"]
    text = printable(result) if isinstance(result, str) else json_text(result, indented=True)
    console.print(text, soft_wrap=True)


def _about(answer: Mapping[str, Any]) -> str:
    notes = answer["metadata"]
    cached = ", from the cache" if notes["cached"] else ""
    said = f"{answer['executionId']}, {notes['duration']:.1f} ms{cached}"
    said = "\n".join([*notes.get("warnings", ()), said])
    correction = notes.get("correction")
    if not correction:
        return said
    from stratagem.surfaces.cli.advice_tables import reasons

    return "\n".join(
        ["Corrected:", *(f"  {each}" for each in reasons(correction["reasoning"])), said]
    )


def show_history(console: Console, answer: ExecutionPage) -> None:
    """Show recorded calls as a table."""
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
            brief(error["message"] if (error := each.get("error")) else ""),
        )
    show(console, rows)


def show_work(console: Console, answer: WorkList) -> None:
    """Show what is under way as a table, or what came of one piece of work."""
    from stratagem.surfaces.cli.tables import brief, show, show_fields, table, when

    if "outcome" in answer:
        show_fields(console, answer["outcome"])
        return
    if not answer["work"]:
        console.print("Nothing is running.")
        return
    rows = table("EXECUTION", "KIND", "NAME", "STATE", "STARTED", "SECONDS", "CALLER", "")
    for each in answer["work"]:
        rows.add_row(
            each["executionId"],
            each["kind"],
            printable(each["name"]),
            each["state"],
            when(each["startedAt"]),
            f"{each['duration'] / 1000:.1f}",
            printable(each["caller"]),
            brief(each["message"] or ""),
        )
    show(console, rows)


def show_servers(console: Console, answer: ServerList) -> None:
    """Show upstream servers as a table."""
    from stratagem.surfaces.cli.tables import show, table

    if not answer["servers"]:
        console.print("There are none yet. Add one: stratagem tools add NAME --mcp COMMAND")
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
