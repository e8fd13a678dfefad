"""Every granular tool, by the official client over stdio and over HTTP."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from stratagem.developer.operations import OPERATIONS
from tests import forkserver
from tests.surfaces.mcp.clients import http_server

# What is called after the examples of the rows, or in their place; "@name" is the answer's field.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("kv_history", {"key": "city"}),
    ("kv_delete", {"key": "city"}),
    ("kv_delete_many", {"keys": ["a"]}),
    ("json_history", {"key": "profile"}),
    ("json_delete", {"key": "profile", "path": "$.name"}),
    ("state_history", {"cell": "leader"}),
    ("state_delete", {"cell": "leader"}),
    ("vector_history", {"collection": "docs", "key": "a"}),
    ("vector_delete", {"collection": "docs", "key": "a"}),
    ("vector_delete_collection", {"name": "docs"}),
    ("branch_create", {"name": "empty"}),
    ("branch_fork", {"name": "trial"}),
    ("branch_merge", {"source": "trial"}),
    ("branch_delete", {"name": "empty"}),
    ("space_delete", {"name": "work", "force": True}),
    ("bundle_export", {"name": "one"}),
    ("bundle_validate", {"name": "one"}),
    ("bundle_import", {"name": "one"}),
    ("search", {"query": "fox", "kinds": ["kv"], "mode": "lexical"}),
]
# What a model may not do, or what nothing is configured for: the answer says what to do.
REFUSED: dict[str, dict[str, Any]] = {
    "configure_model": {"endpoint": "http://localhost:1/v1", "model": "m"},
    "generate": {"prompt": "hi"},
}
# On HTTP without a session nothing is remembered.
USES: dict[str, dict[str, Any]] = {
    "branch_use": {"name": "default"},
    "space_use": {"name": "default"},
}


@asynccontextmanager
async def _over_stdio(path: Path, bundles: Path) -> AsyncIterator[Client]:
    arguments = ["-m", "stratagem", "mcp", "--developer", "--db", str(path)]
    server = StdioServerParameters(
        command=forkserver.program(), args=[*arguments, "--bundles", str(bundles)]
    )
    async with Client(server) as client:
        yield client


@asynccontextmanager
async def _over_http(path: Path, bundles: Path) -> AsyncIterator[Client]:
    with http_server(path, toolsets=("developer",), bundles=str(bundles)) as address:
        async with Client(f"{address}/mcp") as client:
            yield client


@pytest.mark.anyio
@pytest.mark.parametrize("way", [_over_stdio, _over_http], ids=["stdio", "http"])
async def test_every_granular_tool_answers(tmp_path: Path, way: Any) -> None:
    bundles = tmp_path / "bundles"
    bundles.mkdir()
    done: set[str] = set()
    # What cannot be undone is in the toolset `admin`.
    granular = [row for row in OPERATIONS if not row.irreversible]

    async with way(tmp_path / "memory.db", bundles) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}

        async def call(name: str, arguments: dict[str, Any], *, refused: bool = False) -> Any:
            result = await client.call_tool(f"strata_{name}", arguments)
            assert result.is_error == refused, (name, result.structured_content)
            done.add(f"strata_{name}")
            return result.structured_content

        for row in granular:
            if row.example is not None:
                await call(row.name.removeprefix("strata_"), dict(row.example))
        for name, arguments in CALLS:
            await call(name, arguments)
        for name, arguments in REFUSED.items():
            answer = await call(name, arguments, refused=True)
            assert answer["hint"], name
        for name, arguments in USES.items():
            await call(name, arguments, refused=way is _over_http)
        begun = await call("txn_begin", {})
        inside = {"transaction": begun["transaction"]}
        await call("kv_put", {"key": "t", "value": 1, **inside})
        assert (await call("txn_info", inside))["branch"] == "default"
        assert not (await call("kv_get", {"key": "t"}))["found"]
        assert (await call("txn_commit", inside))["records"] == 1
        assert not (await call("txn_rollback", inside))["rolled_back"]
        retention = await call("retention_apply", {"keep": 1})

    assert retention["preview"], "an agent is shown what would go"
    assert listed == {"strata_search", *(row.name for row in granular)}
    assert done == listed


def test_the_granular_tools_cost_agents_nothing(tmp_path: Path) -> None:
    """An agent-mode server that lists its tools has read nothing of developer mode's rows."""
    code = (
        "import sys\n"
        "from stratagem.operations import DEFAULT_TOOLSETS, input_schema, of_toolsets\n"
        "import stratagem.bootstrap\n"
        "rows = of_toolsets(DEFAULT_TOOLSETS)\n"
        "[(input_schema(row.name), row.output_schema) for row in rows]\n"
        "print([name for name in sys.modules if name.startswith('stratagem.developer')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path
    )

    assert set(eval(done.stdout)) <= {  # noqa: S307 -- our own words
        "stratagem.developer",
        "stratagem.developer.kinds",
        "stratagem.developer.metadata",
    }
