"""The addresses that a client can read, in the form in which the protocol sends them."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from stratagem import limits
from stratagem.clients.skills import SKILL_DESCRIPTION, SKILL_NAME
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.memory.answer_text import brief
from stratagem.operation import Caller
from stratagem.surfaces.serving.database import Database

__all__ = ["GUIDE", "JSON", "MARKDOWN", "RESOURCES", "SKILL", "TEMPLATES", "list_entries"]

GUIDE: Final = "stratagem://guide"
SKILL: Final = f"skill://{SKILL_NAME}/SKILL.md"
JSON: Final = "application/json"
MARKDOWN: Final = "text/markdown"
# As many entries are listed to a page.
_PAGE: Final = 100
_VALUE_CHARS: Final = 200

RESOURCES: Final[list[dict[str, Any]]] = [
    {
        "uri": GUIDE,
        "name": "guide",
        "title": "How to use this memory",
        "description": "One page: what to store when, how to find it again, branches and errors.",
        "mimeType": MARKDOWN,
    },
    {
        "uri": SKILL,
        "name": SKILL_NAME,
        "title": "Skill",
        "description": SKILL_DESCRIPTION,
        "mimeType": MARKDOWN,
    },
    {
        "uri": "stratagem://status",
        "name": "status",
        "title": "Status",
        "description": "Current branch and namespace, and how much is stored.",
        "mimeType": JSON,
    },
    {
        "uri": "stratagem://namespaces",
        "name": "namespaces",
        "title": "Namespaces",
        "description": "The namespaces, with how many entries and logged events each holds.",
        "mimeType": JSON,
    },
]
TEMPLATES: Final[list[dict[str, Any]]] = [
    {
        "uriTemplate": "stratagem://entries/{namespace}/{key}{?branch,as_of}",
        "name": "entry",
        "title": "Entry",
        "description": "What is stored under a key, now or at a past moment.",
        "mimeType": JSON,
    },
    {
        "uriTemplate": "stratagem://history/{namespace}/{key}{?branch,as_of}",
        "name": "history",
        "title": "History",
        "description": "How an entry changed: its latest versions, newest first.",
        "mimeType": JSON,
    },
    {
        "uriTemplate": "stratagem://entries/{namespace}{?prefix,order,cursor,branch,as_of}",
        "name": "entries",
        "title": "Entries",
        "description": "What a namespace holds, newest first or by key, each with a short value.",
        "mimeType": JSON,
    },
    {
        "uriTemplate": "stratagem://events/{namespace}"
        "{?event,session,since,after,order,cursor,branch,as_of}",
        "name": "events",
        "title": "Events",
        "description": "The logged events of a namespace in order.",
        "mimeType": JSON,
    },
]


def list_entries(
    database: Database, caller: Caller, cursor: str | None
) -> tuple[list[dict[str, Any]], str | None]:
    """Return a page of the entries of the caller's namespace, and the cursor of the next.

    Raises:
        StratagemError: They cannot be read, or the cursor is none of this list's.
    """
    from stratagem.operations import find, may_call

    if not may_call(find("strata_list"), caller):
        return [], None
    given: dict[str, Any] = {"limit": _PAGE, "max_chars": limits.ANSWER_CHARS_MAX}
    given |= {"cursor": cursor} if cursor else {}
    answer = database.call("strata_list", given, caller)
    branch = f"?branch={quote(caller.branch, safe='')}" if caller.branch != DEFAULT_BRANCH else ""
    listed = [
        {
            "uri": f"stratagem://entries/{quote(entry['namespace'], safe='')}/"
            f"{quote(entry['key'], safe='')}{branch}",
            "name": entry["key"],
            "description": brief(entry["value"], _VALUE_CHARS),
            "mimeType": JSON,
        }
        for entry in answer["results"]
    ]
    return listed, answer.get("next")
