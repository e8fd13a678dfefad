"""What the first page of help says of each command. Generated: `make generate`."""

from __future__ import annotations

from typing import Final

__all__ = ["SUMMARIES"]

# Each command with the section it stands in.
SUMMARIES: Final[dict[str, tuple[str, str]]] = {
    "store": ("Memory", "Remember a value under a key. What was there stays in its history."),
    "recall": (
        "Memory",
        "Show what is stored under a key, now or at a past moment; without a key, list it.",
    ),
    "list": ("Memory", "List what is stored, newest first or by key."),
    "search": ("Memory", "Find entries and logged events by words and by meaning, best first."),
    "forget": ("Memory", "Remove what is stored under a key. Past moments still show it."),
    "log": ("Memory", "Append an event: something that happened and will not change."),
    "events": ("Memory", "Show logged events in the order in which they were logged."),
    "history": (
        "Memory",
        "Show the versions of an entry, newest first; without a key, the time range.",
    ),
    "status": ("Memory", "Show the current branch and namespace, and how much is stored."),
    "namespaces": ("Memory", "List the namespaces, with how much each holds."),
    "tags": ("Memory", "List the tags in use, the most frequent first."),
    "delete-namespace": (
        "Memory",
        "Forget every entry of a namespace at once. It can be restored.",
    ),
    "restore-namespace": ("Memory", "Bring back what a namespace held at a moment."),
    "branch": (
        "Memory",
        "Work in isolation: fork, try something, compare, merge it back or delete it.",
    ),
    "operations": (
        "Any operation",
        "List every operation. Each is a command too, for example ranked-solutions.",
    ),
    "call": ("Any operation", "Run any operation by name, on JSON; the answer is JSON."),
    "debug": ("Debugging", "Maintain debug memory, share it, and see how well it works."),
    "env": ("Debugging", "Show this machine's environment in the form that debugging uses."),
    "knowledge": ("Knowledge", "Concepts and relationships: import, export, draw."),
    "tools": ("Gateway", "Register tools, and call them."),
    "corrections": ("Gateway", "Corrections of calls: state, policy, figures, lessons."),
    "secrets": ("Gateway", "Store secrets of tools encrypted, and see which tools may send them."),
    "guardrails": ("Gateway", "Check calls of tools, before they are made, and their results."),
    "export": (
        "Maintenance of a database",
        "Write a branch into one portable file: its entries and its logged events.",
    ),
    "import": (
        "Maintenance of a database",
        "Read an exported branch, or the memories of another tool.",
    ),
    "mcp": (
        "For agents",
        "Serve one agent on stdin and stdout. This is what an agent's settings start.",
    ),
    "serve": (
        "For agents",
        "Serve any number of agents on http://HOST:PORT/mcp, and REST under /api.",
    ),
    "console": (
        "For agents",
        "Browse a database: search, history, branches, tools. Ctrl-C stops it.",
    ),
    "demo": (
        "For agents",
        "Create an example database to explore: a month of work by a team of agents.",
    ),
    "token": ("For agents", "Tokens: who may use a server, and for what."),
    "init": ("For agents", "Set up the clients of your agents: MCP server, hooks and guidance."),
    "hook": ("For agents", "Automatic memory: called by an agent's client at each event."),
    "review": (
        "For agents",
        "Review what hooks captured: keep it, pin it, correct it or discard it.",
    ),
    "doctor": (
        "Maintenance of a database",
        "Check the file, the log's chain, the read models and the index; try the sandbox.",
    ),
    "rebuild": (
        "Maintenance of a database",
        "Rebuild every read model and the index from the log.",
    ),
    "embed": (
        "Maintenance of a database",
        "Embed the texts that have no vector yet, so that they are found by meaning too.",
    ),
    "purge": (
        "Maintenance of a database",
        "Erase an entry or a logged event for good. This cannot be undone.",
    ),
    "backup": (
        "Maintenance of a database",
        "Write the whole database, every workspace with its history, into one file, and verify it.",
    ),
    "restore": (
        "Maintenance of a database",
        "Restore a backup into an empty database: the one of --db, or your own.",
    ),
    "config": (
        "Maintenance of a database",
        "Show which settings are in force, and where each comes from.",
    ),
    "copy": (
        "Maintenance of a database",
        "Copy a database, with all workspaces and their history, into an empty one.",
    ),
    "outbox": ("External read models", "Changes that external read models have not received yet."),
    "projections": ("External read models", "External read models: Neo4j and Chroma."),
}
