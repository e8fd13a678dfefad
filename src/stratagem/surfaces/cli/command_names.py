"""Which commands there are, and where each is written."""

from __future__ import annotations

from typing import Final

__all__ = ["COMMANDS"]

# Each command with the module that has it, in the order of the help page; None: it is made from
# the table of operations.
COMMANDS: Final[dict[str, str | None]] = {
    **dict.fromkeys(
        (
            "store",
            "recall",
            "list",
            "search",
            "forget",
            "log",
            "events",
            "history",
            "status",
            "namespaces",
            "tags",
            "delete-namespace",
            "restore-namespace",
        )
    ),
    **dict.fromkeys(("branch",), "branches"),
    **dict.fromkeys(("operations", "call"), "table"),
    **dict.fromkeys(("debug", "env"), "debugging"),
    **dict.fromkeys(("knowledge",), "knowledge"),
    **dict.fromkeys(("tools",), "tools"),
    **dict.fromkeys(("corrections",), "corrections"),
    **dict.fromkeys(("secrets",), "secrets"),
    **dict.fromkeys(("guardrails",), "guardrails"),
    **dict.fromkeys(("export", "import"), "transfer"),
    **dict.fromkeys(("mcp", "serve", "console"), "servers"),
    **dict.fromkeys(("demo",), "demo"),
    **dict.fromkeys(("token",), "tokens"),
    **dict.fromkeys(("init",), "clients"),
    **dict.fromkeys(("hook",), "hooks"),
    **dict.fromkeys(("review",), "review"),
    **dict.fromkeys(("doctor", "rebuild", "embed", "purge"), "upkeep"),
    **dict.fromkeys(("backup", "restore"), "backups"),
    **dict.fromkeys(("config",), "configuration"),
    **dict.fromkeys(("copy",), "database_copies"),
    **dict.fromkeys(("outbox", "projections"), "projections"),
}
