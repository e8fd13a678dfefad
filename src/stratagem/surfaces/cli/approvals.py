"""What waits for a person, shown so that it can be judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console

from stratagem.surfaces.cli.output import json_text, printable

if TYPE_CHECKING:
    from stratagem.gateway.registry.answers import ApprovalList

__all__ = ["show_approvals"]


def show_approvals(console: Console, answer: ApprovalList) -> None:
    """Show each thing with everything that a decision needs."""
    if not answer["approvals"]:
        console.print("Nothing is waiting for approval.")
        return
    for each in answer["approvals"]:
        console.print(printable(f"{each['id']}  {each['kind']} of {each['tool']}: {each['state']}"))
        if each["kind"] == "call":
            place = f"on branch {each['branch']}, namespace {each['namespace']}"
            console.print(
                printable(f"  by {each['caller']}, {each['askedAt']}, {place}"), style="dim"
            )
            console.print(printable(json_text(each["arguments"], indented=True)), soft_wrap=True)
        else:
            _show_definition(console, each)
    console.print("stratagem tools approve ID, or reject ID, decides.", style="dim")


def _show_definition(console: Console, approval: Mapping[str, Any]) -> None:
    """Show what a server says now beside what was approved."""
    new = "a new tool" if approval["isNew"] else "changed"
    console.print(printable(f"  {new} of the server {approval['server']}"), style="dim")
    for each in approval["differences"]:
        console.print(printable(f"  {each['place']}"))
        for sign, value in (("-", each["before"]), ("+", each["after"])):
            if value is not None:
                text = value if isinstance(value, str) else json_text(value, indented=False)
                console.print(printable(f"    {sign} {text}"), soft_wrap=True)
