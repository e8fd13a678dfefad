"""operations and call: the table of operations itself."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stratagem.operation import Operation
from stratagem.surfaces.cli.inputs import read_json
from stratagem.surfaces.cli.session import Session, command

__all__ = ["app"]

app = typer.Typer()


@app.command("operations", rich_help_panel="Any operation")
@command
def _operations(session: Session) -> None:
    """List every operation. Each is a command too, for example ranked-solutions."""
    from stratagem.operations import TABLE

    if session.output.json:
        session.output.data({"results": [_describe(each) for each in TABLE.values()]})
        return
    from stratagem.surfaces.cli.tables import brief, show, table

    # A table for each toolset: a column for it would leave none for what an operation does. A
    # command is its operation with hyphens.
    toolsets: dict[str, list[Operation]] = {}
    for each in TABLE.values():
        toolsets.setdefault(each.toolset, []).append(each)
    for toolset, operations in toolsets.items():
        rows = table(toolset.upper(), "DOES", "DESCRIPTION")
        for each in operations:
            first = each.description.split(". ")[0].rstrip(".")
            rows.add_row(each.name, _does(each), brief(first))
        show(session.output.console, rows)
        session.output.console.print()
    session.output.note("As commands: without strata_, with hyphens (stratagem ranked-solutions).")


@app.command("call", rich_help_panel="Any operation")
@command
def _call(
    session: Session,
    *,
    name: Annotated[str, typer.Argument(help="The operation, as strata_store.")],
    arguments: Annotated[
        str, typer.Argument(metavar="[JSON]", help="Its parameters; - reads stdin.")
    ] = "{}",
) -> None:
    """Run any operation by name, on JSON; the answer is JSON."""
    from stratagem.surfaces.cli.operation_commands import call_operation

    session.output.json = True
    given = read_json(arguments, field="arguments")
    session.output.data(call_operation(session, name, given))


def _describe(operation: Operation) -> dict[str, Any]:
    from stratagem.operations import input_schema
    from stratagem.surfaces.cli.operation_commands import commands_of

    return {
        "name": operation.name,
        "command": commands_of(operation)[0],
        "commands": commands_of(operation),
        "toolset": operation.toolset,
        "title": operation.title,
        "description": operation.description,
        "read_only": operation.read_only,
        "destructive": operation.destructive,
        "idempotent": operation.idempotent,
        "input_schema": input_schema(operation.name),
        "output_schema": operation.output_schema,
    }


def _does(operation: Operation) -> str:
    if operation.read_only:
        return "reads"
    return "erases" if operation.toolset == "admin" and operation.destructive else "writes"
