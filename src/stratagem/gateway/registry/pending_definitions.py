"""Definitions of tools from a source, and changes that wait for a person's approval.

A tool whose source changes its definition keeps the approved one, and beside it the new one, as
`pending`. Both are shown side by side; invisible characters are spelled out, although they are
removed from the registered definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stratagem.gateway.definitions.contract import ListedTool
from stratagem.gateway.definitions.sanitize import reveal_all
from stratagem.gateway.registry.answers import Approval
from stratagem.gateway.registry.tools import Tool

__all__ = ["approval_of", "definition_of", "pending_changes", "was_rejected"]

_COMPARED: Final = (
    "name", "title", "description", "inputSchema", "outputSchema", "annotations",
)  # fmt: skip
_ID_CHARS: Final = 16


def definition_of(tool: ListedTool, name: str, source: str) -> dict[str, Any]:
    """Return the definition under which a tool of a source is registered."""
    hints: Mapping[str, Any] = tool.annotations or {}
    given = {
        "name": name,
        "title": tool.title,
        "description": tool.description or tool.title or name,
        "annotations": dict(hints) or None,
        "icons": [dict(icon) for icon in tool.icons] or None,
        "inputSchema": dict(tool.input_schema),
        "outputSchema": dict(tool.output_schema) if tool.output_schema else None,
        "handler": {**tool.handler, "source": source},
        "provider": source,
        "tags": list(tool.tags),
        "status": "active",
        "configuration": {"idempotent": True}
        if hints.get("idempotentHint") or hints.get("readOnlyHint")
        else {},
    }
    return {field: value for field, value in given.items() if value is not None}


def pending_changes(tool: ListedTool, own: Tool | None, name: str, source: str) -> dict[str, Any]:
    """Return the changes that have a new definition of a tool wait; of a new tool `own` is None."""
    definition = definition_of(tool, name, source)
    named = {"name": tool.handler.get("tool", tool.name), **tool.said}
    shown = {field: reveal_all(value) for field, value in named.items()}
    pending = {
        "definition": {field: definition[field] for field in definition if field != "status"},
        # Where nothing is hidden, what was sent is what is registered.
        "said": {
            field: value
            for field, value in shown.items()
            if field == "name" or value != named[field]
        },
        "isNew": own is None,
    }
    return {"status": "quarantined", "pending": pending}


def was_rejected(own: Tool, listed: ListedTool) -> bool:
    """Whether a person has rejected this very definition."""
    rejected = (own.content.get("pending") or {}).get("rejected")
    return rejected is not None and rejected == listed.handler.get("fingerprint")


def approval_of(tool: Tool) -> Approval | None:
    """Return what a person is asked about a tool, where its definition waits."""
    pending = tool.content.get("pending") or {}
    if "definition" not in pending:
        return None
    definition, said = pending["definition"], pending["said"]
    is_new = bool(pending.get("isNew"))
    before: dict[str, Any] = {} if is_new else {**tool.content}
    if not is_new:
        before["name"] = tool.handler.get("tool", tool.name)
    after = {**definition, **said}
    return {
        "id": _id_of(tool.name, definition["handler"].get("fingerprint", "")),
        "kind": "definition",
        "tool": tool.name,
        "state": "waiting",
        "server": str(tool.handler.get("source", "")),
        "isNew": is_new,
        "differences": [
            difference
            for field in _COMPARED
            for difference in _differences(field, before.get(field), after.get(field))
        ],
        "definition": {field: after[field] for field in _COMPARED if field in after},
    }


def _id_of(tool: str, fingerprint: str) -> str:
    return f"{tool}@{fingerprint.removeprefix('sha256:')[:_ID_CHARS]}"


def _differences(path: str, before: Any, after: Any) -> Iterator[dict[str, Any]]:
    """Yield the places where two values differ, each with both."""
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in [*before, *(each for each in after if each not in before)]:
            yield from _differences(f"{path}.{name}", before.get(name), after.get(name))
        return
    yield {"place": path, "before": before, "after": after}
