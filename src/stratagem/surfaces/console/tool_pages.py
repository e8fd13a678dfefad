"""Tools: servers, tools to try, calls with what was corrected, approvals, work under way."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from stratagem.engine.moments import iso
from stratagem.errors import StratagemError, ToolNotFound, ValidationFailed
from stratagem.surfaces.console.pages import ConsolePage, Done, PageRoute, whole_number
from stratagem.surfaces.console.schema_forms import form_fields, read_form
from stratagem.surfaces.console.visits import Visit

__all__ = ["TOOL_PAGES"]

_TOOLS: Final = 60
_CALLS: Final = 50
# Charts are drawn from so many calls, the latest.
_CALLS_DRAWN: Final = 500
_DAYS_DRAWN: Final = 31
_PRESENT: Final = "Servers, and how well tools work, are shown as they are now."


async def tools(visit: Visit) -> ConsolePage:
    """Show servers with their health, what waits for a person, what runs, and the tools."""
    query = visit.query
    offset = whole_number(query.get("offset") or "0", field="offset")
    past = visit.moment is not None
    listed = await visit.read(
        "tools_list",
        search=query.get("find") or None,
        category=query.get("category") or None,
        status=query.get("status") or None,
        limit=_TOOLS,
        offset=offset,
    )
    data = {
        "tools": listed["tools"],
        "total": listed["total"],
        "categories": listed["categories"],
        "offset": offset,
        "page": _TOOLS,
        "find": query.get("find", ""),
        "category": query.get("category", ""),
        "servers": (await visit.try_read("servers_list")).get("servers", []),
        # What waited, ran or was paused at a past moment is not known.
        "approvals": [] if past else (await visit.try_read("approvals_list")).get("approvals", []),
        "work": [] if past else (await visit.try_read("work_list")).get("work", []),
        "breakers": [] if past else (await visit.try_read("breakers_list")).get("breakers", []),
        "days": _by_day(await _latest_calls(visit)),
    }
    return ConsolePage("tools.html", "Tools", data, "tools", present=_PRESENT)


async def _until(visit: Visit) -> str | None:
    """Return the time of the last call that a past moment shows; None is now."""
    if visit.moment is None:
        return None
    return await visit.last_shown() or iso(0)


async def _latest_calls(visit: Visit, **which: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    until, cursor = await _until(visit), None
    while len(found) < _CALLS_DRAWN:
        page = await visit.try_read("tool_executions", to=until, limit=100, cursor=cursor, **which)
        found += page.get("executions", [])
        cursor = page.get("next")
        if not cursor:
            break
    return found


def _by_day(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return calls, errors and the usual time by day, oldest first."""
    days: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for call in calls:
        days[call["startedAt"][:10]].append(call)
    return [
        {
            "label": day,
            "calls": len(each),
            "errors": sum(call["status"] not in {"success", "running"} for call in each),
            "latency": _median([call.get("duration") or 0 for call in each]),
        }
        for day, each in sorted(days.items())[-_DAYS_DRAWN:]
    ]


def _median(values: list[float]) -> float:
    return round(sorted(values)[len(values) // 2], 1) if values else 0.0


async def tool(visit: Visit) -> ConsolePage:
    """Show a tool: what it does, a form to try it, and its calls."""
    return await _tool_page(visit, visit.query.get("name", ""))


async def _tool_page(
    visit: Visit,
    name: str,
    given: dict[str, str] | None = None,
    answer: dict[str, Any] | None = None,
) -> ConsolePage:
    found = await visit.read("tool_get", toolId=name)
    shown = found["tool"]
    until = await _until(visit)
    calls = await visit.try_read("tool_executions", toolId=shown["id"], to=until, limit=20)
    data = {
        "tool": shown,
        "fields": form_fields(shown["inputSchema"], given or {}),
        "answer": answer,
        "calls": calls.get("executions", []),
        "patterns": await _patterns(visit, shown["name"]),
    }
    return ConsolePage("tool.html", str(shown["name"]), data, "tools")


async def _patterns(visit: Visit, name: str | None = None) -> list[dict[str, Any]]:
    found = await visit.try_read("auto_correction_patterns", action="list", toolName=name)
    patterns: list[dict[str, Any]] = found.get("patterns", [])
    return patterns


async def _try(visit: Visit, fields: dict[str, str]) -> ConsolePage:
    """Call a tool with what was filled in, and show the answer beside the form."""
    name = fields.get("tool", "")
    found = await visit.read("tool_get", toolId=name)
    answer: dict[str, Any]
    try:
        arguments = read_form(found["tool"]["inputSchema"], fields)
        answer = await visit.write(
            "tool_execute",
            toolName=name,
            arguments=arguments,
            **({"async": True} if fields.get("background") else {}),
        )
    except StratagemError as error:
        answer = {
            "error": error.message,
            "hint": error.hint,
            "code": error.code,
            "corrections": error.details.get("corrections", []),
        }
    return await _tool_page(visit, name, fields, answer)


async def calls(visit: Visit) -> ConsolePage:
    """List calls, the latest first."""
    query = visit.query
    found = await visit.read(
        "tool_executions",
        status=query.get("status") or None,
        toolId=query.get("tool") or None,
        to=await _until(visit),
        limit=_CALLS,
        cursor=query.get("cursor") or None,
    )
    data = {
        "calls": found["executions"],
        "next": found.get("next"),
        "status": query.get("status", ""),
        "days": _by_day(await _latest_calls(visit)),
    }
    return ConsolePage("calls.html", "Calls", data, "tools")


async def call(visit: Visit) -> ConsolePage:
    """Show one call: arguments, corrections, the answer or the error, and timing."""
    which = visit.query.get("id", "")
    found = await visit.read("tool_executions", executionId=which)
    if not found["executions"]:
        raise ToolNotFound(f"There is no call {which!r}.")
    return ConsolePage("call.html", f"Call {which}", {"call": found["executions"][0]}, "tools")


async def corrections(visit: Visit) -> ConsolePage:
    """Show which corrections are made, and what speaks for and against each."""
    data = {
        "patterns": await _patterns(visit),
        "insights": await visit.try_read("auto_correction_insights", timeRange="30d"),
    }
    return ConsolePage("corrections.html", "Corrections", data, "tools")


async def _decide(visit: Visit, fields: dict[str, str]) -> Done:
    approve = fields.get("act") == "approve"
    await visit.write(
        "approval_decide",
        id=fields.get("id", ""),
        decision="approve" if approve else "reject",
        reason=fields.get("reason") or None,
    )
    return Done(visit.url("/tools"), "Approved." if approve else "Rejected.")


async def _cancel(visit: Visit, fields: dict[str, str]) -> Done:
    which = fields.get("id", "")
    await visit.write("work_cancel", executionId=which)
    return Done(visit.url("/tools"), f"Cancelled {which}.")


async def _refresh(visit: Visit, fields: dict[str, str]) -> Done:
    name = fields.get("name", "")
    await visit.write("server_refresh", name=name)
    return Done(visit.url("/tools"), f"Listed the tools of {name} again.")


async def _add_server(visit: Visit, fields: dict[str, str]) -> Done:
    where = fields.get("where", "").strip()
    if not where:
        raise ValidationFailed("Give its command or its address.", field="where")
    if where.startswith(("http://", "https://")):
        place: dict[str, Any] = {"url": where}
    else:
        command, *words = where.split()
        place = {"command": command, "args": words}
    await visit.write("server_add", name=fields.get("name", ""), **place)
    return Done(visit.url("/tools"), f"Added {fields.get('name')}.")


async def _reset_breaker(visit: Visit, fields: dict[str, str]) -> Done:
    await visit.write("breaker_reset", toolName=fields.get("name", ""))
    return Done(visit.url("/tools"), "It may be called again.")


TOOL_PAGES: Final = (
    PageRoute(
        "/tools",
        tools,
        {
            "approve": _decide,
            "reject": _decide,
            "cancel": _cancel,
            "refresh": _refresh,
            "add_server": _add_server,
            "reset": _reset_breaker,
        },
    ),
    PageRoute("/tools/tool", tool, {"try": _try}),
    PageRoute("/tools/calls", calls),
    PageRoute("/tools/call", call),
    PageRoute("/tools/corrections", corrections),
)
