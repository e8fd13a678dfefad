"""A web research agent: search, summarize each result, and name what it is about.

Over Socket.IO the same is `mcp:tools:init` and `mcp:tool:execute`; here the tools are called in
this process.
"""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import urlsplit

import stratagem

REQUIRED = ["web_search", "summarization", "entity_extraction"]


def connect_search(db: stratagem.Stratagem, searxng: str) -> None:
    """Set the search provider, as an administrator does once."""
    settings = {"provider": "searxng", "url": searxng}
    db.call("connection_set", {"name": "web", "kind": "search", "settings": settings})


def call(db: stratagem.Stratagem, tool: str, **arguments: Any) -> Any:
    """Call a tool in the name of the agent."""
    given = {
        "toolName": tool,
        "arguments": arguments,
        "context": {"agentId": "research-agent"},
    }
    return db.call("tool_execute", given)["result"]


def research(db: stratagem.Stratagem, topic: str, limit: int = 20) -> list[dict[str, Any]]:
    """Return what was found about a topic: a summary, and what is named in it, for each page."""
    found = []
    results = call(db, "web_search", query=topic, limit=limit, includeContent=True)["results"]
    for result in results:
        text = result["content"] or result["title"]
        summary = call(db, "summarization", text=text, maxLength=200)["summary"]
        named = call(db, "entity_extraction", text=text)["entities"]
        found.append(
            {
                "title": result["title"],
                "url": result["url"],
                "summary": summary,
                "entities": sorted({f"{each['type']}: {each['text']}" for each in named}),
            }
        )
    return found


def main(arguments: list[str] | None = None) -> None:
    """Research a topic and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topic")
    parser.add_argument("--searxng", default="http://localhost:8888")
    parser.add_argument("--limit", type=int, default=5)
    parser.add_argument("--db", default="research.db")
    given = parser.parse_args(arguments)
    allowed = [urlsplit(given.searxng).netloc]
    with stratagem.open(given.db, allow_hosts=allowed) as db:
        connect_search(db, given.searxng)
        ready = db.call("tools_validate", {"toolNames": REQUIRED})
        if not ready["allAvailable"]:
            raise SystemExit(
                "\n".join(each["reason"] for each in ready["results"] if not each["available"])
            )
        for page in research(db, given.topic, given.limit):
            print(f"{page['title']}\n  {page['url']}\n  {page['summary']}")
            print(f"  {', '.join(page['entities'][:8])}\n")


if __name__ == "__main__":
    main()
