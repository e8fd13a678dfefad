"""`stratagem tools`: the registry of the gateway, for people."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests import forkserver
from tests.surfaces.cli.console import Cli
from tests.unit.gateway.handlers.upstream.servers import SERVER

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example.org"}],
    "paths": {
        "/pets": {
            "get": {
                "operationId": "listPets",
                "summary": "All pets",
                "responses": {"200": {"description": "ok"}},
            }
        }
    },
}


def test_what_tools_do_can_be_read_in_eighty_columns(cli: Cli) -> None:
    shown = cli("tools", "list", "calculator", COLUMNS="80", FORCE_COLOR="1", TERM="dumb")

    assert "Evaluate an arithmetic expression" in shown
    assert "STATUS" not in shown


def test_a_list_leaves_out_the_operations_of_the_product(cli: Cli) -> None:
    listed, every = cli("tools", "list"), cli("tools", "list", "--include-own", "--limit", "200")

    assert "strata_store" not in listed
    assert "of Stratagem itself left out; see --include-own." in listed
    assert "strata_store" in every


def test_a_tool_that_cannot_be_called_is_marked(cli: Cli) -> None:
    Path("tool.json").write_text(
        json.dumps(
            {
                "name": "weather",
                "description": "The weather of a city.",
                "inputSchema": {"type": "object"},
                "handler": {"type": "python", "callable": "json:dumps"},
            }
        ),
        "utf-8",
    )
    cli("tools", "add", "--file", "tool.json", STRATAGEM_ALLOW_CALLABLES="json:dumps")

    assert [line.split()[2] for line in cli("tools", "list", "weather").splitlines()[:2]] == [
        "STATUS",
        "refused",
    ]


def test_errors_name_options_and_tools_that_are_near(cli: Cli) -> None:
    assert "Did you mean 'calculator'" in cli.refused("tools", "history", "calculatr", code=3)
    assert "--as-of 'xyz' cannot be read" in cli.refused("recall", "a", "--as-of", "xyz", code=2)
    assert "No server was added yet." in cli.refused("tools", "remove-server", "fs", code=3)


def test_where_there_is_no_server_it_is_said_how_to_add_one(cli: Cli) -> None:
    assert "stratagem tools add NAME --mcp COMMAND" in cli("tools", "servers")


def test_a_built_in_tool_is_listed_shown_called_and_remembered(cli: Cli) -> None:
    listed = cli("tools", "list", "calculator")
    shown = cli("tools", "show", "calculator")
    called = cli("tools", "call", "calculator", '{"expression": "6 * 7"}')
    piped = cli("tools", "call", "calculator", "-", given='{"expression": "1 + 1"}')
    history = cli("tools", "history", "calculator", "--status", "success")

    assert "calculator" in listed
    assert "expression" in shown
    assert '"result": 42' in called
    assert '"result": 2' in piped
    assert history.count("calculator") == 2


def test_webhooks_definitions_and_documents_are_added_and_removed(cli: Cli) -> None:
    definition = Path("tool.json")
    definition.write_text(
        json.dumps(
            {
                "name": "twice",
                "description": "Twice.",
                "inputSchema": {"type": "object"},
                "handler": {"type": "code", "language": "python", "code": "result = 2"},
            }
        ),
        "utf-8",
    )
    Path("pets.json").write_text(json.dumps(DOCUMENT), "utf-8")

    hook = cli("tools", "add", "hook", "--webhook", "https://example.org/x", "--description", "X")
    made = cli("tools", "add", "--file", str(definition))
    pets = cli("tools", "add", "pets", "--openapi", "pets.json")
    removed = cli("tools", "rm", "hook")

    assert hook.startswith("Registered hook (tool_")
    assert "No outputSchema" in hook
    assert made.startswith("Registered twice")
    assert "Registered 1: " in pets
    assert removed == "Removed hook.\n"
    assert "2" in cli("tools", "call", "twice")
    assert "no tool 'hook'" in cli.refused("tools", "show", "hook", code=3)


def test_an_mcp_server_is_added_listed_and_refreshed(cli: Cli) -> None:
    added = cli("tools", "add", "up", "--mcp", f"{forkserver.program()} {SERVER}")
    called = cli("tools", "call", "add", '{"a": 2, "b": 3}')
    servers = cli("tools", "servers")
    cli("tools", "refresh", "up")

    assert "add" in added
    assert "5" in called
    assert "up" in servers
    assert "quarantined" not in cli("tools", "servers")


def test_servers_of_another_programs_settings_are_imported(cli: Cli) -> None:
    servers = {
        "up": {"command": forkserver.program(), "args": [str(SERVER)]},
        "web": {"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer hunter22"}},
        "old": {"type": "sse", "url": "https://x.example/sse"},
    }
    Path("mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")

    planned = cli("tools", "import", "mcp.json", "--dry-run")
    added = cli("tools", "import", "mcp.json", "--only", "up")
    shown = cli("tools", "show", "add", "--json")

    assert "up: planned" in planned
    assert "old: planned" in planned
    assert "Authorization=Bearer ${WEB_AUTHORIZATION}" in planned
    assert "stratagem tools grant web WEB_AUTHORIZATION https://x.example:443" in planned
    assert "hunter22" not in planned
    assert "up: added" in added
    tool = json.loads(shown)["tool"]
    assert tool["effectiveConfiguration"]["timeout"] == 30000
    assert "no server 'down'" in cli.refused(
        "tools", "import", "mcp.json", "--only", "down", code=2
    )


def test_servers_of_cursors_own_file_are_imported(cli: Cli) -> None:
    shutil.copy(SERVER, "server.py")
    Path(".cursor").mkdir()
    entry = {"command": forkserver.program(), "args": ["${workspaceFolder}/server.py"]}
    Path(".cursor/mcp.json").write_text(json.dumps({"mcpServers": {"up": entry}}), "utf-8")

    planned = cli("tools", "import", ".cursor/mcp.json", "--dry-run")
    before = cli("tools", "servers")
    added = cli("tools", "import", ".cursor/mcp.json")

    assert "up: planned" in planned
    assert "up" not in before
    assert "up: added" in added
    assert "5" in cli("tools", "call", "add", '{"a": 2, "b": 3}')


def test_grants_and_retention(cli: Cli) -> None:
    cli("tools", "add", "weather", "--webhook", "https://api.example.org/", "--description", "W")
    granted = cli("tools", "grant", "weather", "API_KEY", "api.example.org")
    cli("tools", "call", "calculator", '{"expression": "1"}')
    asked = cli.refused("tools", "retention", "--days", "0", code=2)
    kept = cli("tools", "retention", "--yes")
    erased = cli("tools", "retention", "--days", "0", "--yes")

    assert granted.startswith("weather may send API_KEY to https://api.example.org:443.\n")
    assert "--yes" in asked
    assert kept == "Erased the content of 0 records.\n"
    assert erased == "Erased the content of 1 records.\n"
    assert cli.json("tools", "history")["executions"] == []


def test_a_failing_call_says_why_and_ends_with_its_code(cli: Cli) -> None:
    assert "calculator" in cli.refused("tools", "call", "calculatr", code=3)
    assert "expression" in cli.refused("tools", "call", "calculator", "{}", code=2)
    assert "text, not an object" in cli.refused("tools", "call", "calculator", "{", code=2)
    assert "--mcp" in cli.refused("tools", "add", "x", code=2)
