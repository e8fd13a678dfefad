"""Reshaping JSON: pick, filter, sort, group, aggregate, and more, one step after another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from stratagem import limits
from stratagem.engine import values
from stratagem.gateway.builtin.json_steps import Step, apply_step
from stratagem.gateway.definitions.argument_models import Given, plain_schema, read
from stratagem.gateway.definitions.contract import Run
from stratagem.gateway.handlers.threads import Threads

__all__ = ["TOOL", "run", "transform_data"]


class _Input(Given):
    data: Any = Field(description="Any JSON")
    operations: list[Step] = Field(
        min_length=1,
        max_length=limits.TRANSFORMATIONS_MAX,
        description="Applied in order, each to the result of the one before",
    )


TOOL: Final[dict[str, Any]] = {
    "name": "data_transformer",
    "description": "Reshape JSON: pick, filter, sort, group, aggregate, rename, select, flatten, "
    "merge, deduplicate.",
    "longDescription": (
        "Operations are applied in order. Paths are JMESPath, or JSONPath where they begin with $. "
        "filter keeps the elements for which `where` is true: age > `30` && city == 'Oslo'. sort "
        "orders any values: null, booleans, numbers, texts, lists, objects. In aggregate, "
        "missing values are ignored; the mean of no values is null."
    ),
    "category": "utility",
    "tags": ["json", "jmespath", "filter", "aggregate"],
    "inputSchema": plain_schema(_Input),
    "outputSchema": {
        "type": "object",
        "properties": {"result": {"description": "The data after the last operation"}},
        "required": ["result"],
    },
    "examples": [
        {
            "input": {
                "data": [
                    {"name": "Ada", "age": 36, "city": "London"},
                    {"name": "Bo", "age": 28, "city": "Oslo"},
                    {"name": "Cy", "age": 41, "city": "Oslo"},
                ],
                "operations": [
                    {"op": "filter", "where": "age > `30`"},
                    {"op": "sort", "by": [{"path": "age", "order": "descending"}]},
                    {"op": "pick", "path": "[*].name"},
                ],
            },
            "output": {"result": ["Cy", "Ada"]},
        },
        {
            "input": {
                "data": [
                    {"team": "a", "hours": 2},
                    {"team": "b", "hours": 5},
                    {"team": "a", "hours": 3},
                ],
                "operations": [
                    {
                        "op": "aggregate",
                        "by": "team",
                        "metrics": {
                            "total": {"metric": "sum", "path": "hours"},
                            "entries": {"metric": "count"},
                        },
                    }
                ],
            },
            "output": {
                "result": [
                    {"key": "a", "total": 5, "entries": 2},
                    {"key": "b", "total": 5, "entries": 1},
                ]
            },
        },
        {
            "input": {
                "data": {"user": {"name": "Ada", "tags": ["x", "y"]}},
                "operations": [{"op": "flatten"}],
            },
            "output": {"result": {"user.name": "Ada", "user.tags.0": "x", "user.tags.1": "y"}},
        },
    ],
    "cacheable": True,
    "idempotent": True,
    "requirements": {},
}


def transform_data(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Apply the operations to the data.

    Raises:
        ValidationFailed: One of them cannot be applied; `field` says which.
    """
    # The steps walk the data by recursion and compare it as text: it has to be plain and bounded.
    values.encode(arguments.get("data"), field="data")
    given = read(_Input, arguments)
    data = given.data
    for index, step in enumerate(given.operations):
        field = f"operations[{index}]"
        data = apply_step(step, data, field=field)
        values.encode(data, field=field)
    return {"result": data}


async def run(
    arguments: Mapping[str, Any], run: Run, threads: Threads | None = None
) -> dict[str, Any]:
    """Transform data, away from the event loop."""
    threads = threads or Threads()
    return await threads.call(lambda: transform_data(arguments), name=run.tool)
