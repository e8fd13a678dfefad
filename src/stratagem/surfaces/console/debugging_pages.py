"""Debug memory: problems by how often they came, fixes with the evidence for and against them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from stratagem.engine import evidence
from stratagem.surfaces.console.pages import ConsolePage, Done, PageRoute
from stratagem.surfaces.console.visits import Visit

__all__ = ["DEBUGGING_PAGES"]

_PAGE: Final = 100
_OUTCOME_PAGES: Final = 5
_TREND_WINDOW: Final = 4
_NOTHING_KNOWN: Final = 0.5


async def problems(visit: Visit) -> ConsolePage:
    """List problems, the most frequent first, and the fixes that stopped working."""
    query = visit.query
    listed = await visit.read(
        "list_incidents",
        text=query.get("text") or None,
        tag=query.get("tag") or None,
        standing=query.get("standing") or None,
        limit=_PAGE,
        cursor=query.get("cursor") or None,
    )
    rows = sorted(listed["results"], key=lambda each: -(each["worked"] + each["failed"]))
    data = {
        "problems": rows,
        "next": listed.get("next"),
        "statistics": await visit.read_counts("debugging_statistics"),
        "text": query.get("text", ""),
        "standing": query.get("standing", ""),
        "tags": sorted({tag for each in rows for tag in each["tags"]}),
        "tag": query.get("tag", ""),
    }
    return ConsolePage("problems.html", "Debug memory", data, "debugging")


async def problem(visit: Visit) -> ConsolePage:
    """Show a problem, its fixes ranked, and what speaks for and against each."""
    found = await visit.read("show_record", record_id=visit.query.get("id", ""))
    shown = found.get("incident") or found.get("incidents", [{}])[0]
    outcomes = await _outcomes(visit, shown["incident_id"])
    fixes = [_with_evidence(each, outcomes) for each in found.get("solutions", [])]
    fixes.sort(key=lambda fix: -fix["belief"]["mean"])
    others = await visit.read("list_incidents", limit=_PAGE)
    data = {
        "problem": shown,
        "fixes": fixes,
        "versions": found.get("versions", []),
        "others": [
            each for each in others["results"] if each["incident_id"] != shown["incident_id"]
        ],
    }
    return ConsolePage("problem.html", str(shown["title"]), data, "debugging")


async def _outcomes(visit: Visit, incident: str) -> list[dict[str, Any]]:
    """Return the outcomes of a problem's fixes: all of them, or the newest few hundred."""
    found: list[dict[str, Any]] = []
    cursor = None
    for _ in range(_OUTCOME_PAGES):
        page = await visit.read("list_outcomes", incident_id=incident, limit=_PAGE, cursor=cursor)
        found += page["results"]
        cursor = page.get("next")
        if cursor is None:
            break
    return found


def _with_evidence(solution: dict[str, Any], outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a fix with its outcomes by environment, the belief they give, and how that went."""
    own = [each for each in outcomes if each["solution_id"] == solution["solution_id"]]
    own.sort(key=lambda each: str(each["at"]))
    counted = [each for each in own if each["standing"] != "retired"]
    places: dict[str, dict[str, int]] = defaultdict(lambda: {"worked": 0, "failed": 0})
    for each in counted:
        places[each["env_bucket"]]["worked" if each["worked"] else "failed"] += 1
    return {
        **solution,
        "outcomes": own[::-1],
        "environments": dict(places),
        "belief": _belief([each["worked"] for each in counted]),
        "trend": _trend([each["worked"] for each in counted]),
    }


def _belief(worked: list[bool]) -> dict[str, float]:
    """Return the belief that all outcomes give together, wherever and whenever they were."""
    prior = evidence.PRIOR_WEIGHT * _NOTHING_KNOWN
    alpha, beta = prior + sum(worked), prior + len(worked) - sum(worked)
    return {"alpha": alpha, "beta": beta, "mean": alpha / (alpha + beta)}


def _trend(worked: list[bool]) -> list[float]:
    """Return the share that worked, in a window that moves over the outcomes, oldest first."""
    size = min(_TREND_WINDOW, max(len(worked) // 2, 1))
    return [sum(worked[place : place + size]) / size for place in range(len(worked) - size + 1)]


def _back(visit: Visit, fields: dict[str, str]) -> str:
    return visit.url("/debugging/problem", id=fields.get("incident", ""))


async def _outcome(visit: Visit, fields: dict[str, str]) -> Done:
    worked = fields.get("worked") == "yes"
    await visit.write(
        "record_outcome",
        solution_id=fields.get("solution", ""),
        worked=worked,
        env=_environment(fields.get("env", "")),
        notes=fields.get("notes") or None,
    )
    words = "worked" if worked else "did not work"
    return Done(_back(visit, fields), f"Recorded: it {words}. The ranking uses it from now on.")


def _environment(text: str) -> dict[str, str]:
    """Return an environment that was typed as `os=linux, python=3.12`."""
    pairs = (part.partition("=") for part in text.replace(",", " ").split())
    return {name: value for name, _, value in pairs if name and value}


async def _retire(visit: Visit, fields: dict[str, str]) -> Done:
    record = fields.get("record", "")
    await visit.write("retire_record", record_id=record, reason=fields.get("reason", ""))
    return Done(
        _back(visit, fields),
        "Retired: it is no longer recommended or counted.",
        {"act": "restore", "record": record, "incident": fields.get("incident", "")},
        _back(visit, fields),
    )


async def _restore(visit: Visit, fields: dict[str, str]) -> Done:
    await visit.write("restore_record", record_id=fields.get("record", ""))
    return Done(_back(visit, fields), "Restored.")


async def _merge(visit: Visit, fields: dict[str, str]) -> Done:
    await visit.write(
        "merge_records", record_id=fields.get("record", ""), into=fields.get("into", "")
    )
    path = visit.url("/debugging/problem", id=fields.get("into", ""))
    return Done(path, "Merged: the fixes and outcomes of both are here now.")


async def _add_fix(visit: Visit, fields: dict[str, str]) -> Done:
    await visit.write(
        "add_solution",
        incident_id=fields.get("incident", ""),
        steps=fields.get("steps", ""),
        env=_environment(fields.get("env", "")),
    )
    return Done(_back(visit, fields), "Added the fix. Record its outcome after trying it.")


DEBUGGING_PAGES: Final = (
    PageRoute("/debugging", problems),
    PageRoute(
        "/debugging/problem",
        problem,
        {
            "outcome": _outcome,
            "retire": _retire,
            "restore": _restore,
            "merge": _merge,
            "add_fix": _add_fix,
        },
    ),
)
