"""`data_analyzer`: what is in a table: its columns, their figures, or what a query finds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median, stdev
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.gateway.builtin import tables
from stratagem.gateway.builtin.html_text import markdown_table
from stratagem.gateway.catalogue.database_query import check_statement, query_file
from stratagem.gateway.catalogue.standard_tool import StandardTool, ToolRun, define, examples

__all__ = ["TOOLS"]

Rows = list[dict[str, Any]]

_TOP: Final = 5
_OUTLIER_FENCE: Final = 1.5
_CORRELATED: Final = 0.3
_ENOUGH: Final = 3
_COLUMNS_CORRELATED: Final = 30


async def _analyze(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    rows: Rows = await run.in_thread(lambda: _read(given["content"]))
    answer: dict[str, Any] = await run.in_thread(lambda: _describe(rows))
    if given.get("query"):
        answer["query"] = await _query(run, rows, given["query"])
    answer["content"] = _report(answer)
    return answer


def _read(content: Any) -> Rows:
    """Return the rows of a list, or of a text that is JSON or CSV.

    Raises:
        ValidationFailed: It is no table.
    """
    value = content
    if isinstance(content, str):
        value = _parse(content)
    if isinstance(value, Mapping):
        # Answers of services hold their rows in a field.
        value = next((each for each in value.values() if tables.is_tabular(each)), [value])
    if not isinstance(value, list) or not value:
        raise ValidationFailed("`content` has no rows.", field="content")
    if isinstance(value[0], list):
        value = [{f"column_{at}": cell for at, cell in enumerate(row, 1)} for row in value]
    if not all(isinstance(row, dict) for row in value):
        raise ValidationFailed(
            "`content` must be a list of objects, or CSV or JSON as text.", field="content"
        )
    if len(value) > limits.ANALYSED_ROWS_MAX:
        raise ValidationFailed(
            f"`content` has {len(value):,} rows; {limits.ANALYSED_ROWS_MAX:,} are analysed.",
            field="content",
            limit=limits.ANALYSED_ROWS_MAX,
        )
    return value


def _parse(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    try:
        return tables.from_csv(text, delimiter=delimiter, header=True, infer=True)
    except tables.TableFault as error:
        raise ValidationFailed(
            f"`content` is neither JSON nor CSV: {error}.", field="content"
        ) from error


def _describe(rows: Rows) -> dict[str, Any]:
    names = list(dict.fromkeys(name for row in rows for name in row))[: limits.ANALYSED_COLUMNS_MAX]
    columns = {name: [row.get(name) for row in rows] for name in names}
    described = [_column(name, values) for name, values in columns.items()]
    distinct = {orjson.dumps(row, option=orjson.OPT_SORT_KEYS) for row in rows}
    return {
        "rowCount": len(rows),
        "columns": described,
        "duplicateRows": len(rows) - len(distinct),
        "correlations": _correlations(columns),
    }


def _column(name: str, values: Sequence[Any]) -> dict[str, Any]:
    present = [value for value in values if value is not None and value != ""]
    numbers = [value for value in present if _is_number(value)]
    texts = [value if isinstance(value, str) else orjson.dumps(value).decode() for value in present]
    counts = Counter(texts)
    shown: dict[str, Any] = {
        "name": name,
        "type": _type_of(present),
        "missing": len(values) - len(present),
        "distinct": len(counts),
    }
    if numbers and len(numbers) == len(present):
        return {**shown, **_figures(numbers)}
    shown["top"] = [
        {"value": text[:100], "count": count} for text, count in counts.most_common(_TOP)
    ]
    return shown


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _type_of(values: Sequence[Any]) -> str:
    kinds = {
        "boolean" if isinstance(value, bool)
        else "number" if _is_number(value)
        else "text" if isinstance(value, str)
        else "object"
        for value in values
    }  # fmt: skip
    return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "empty"


def _figures(numbers: Sequence[float]) -> dict[str, Any]:
    ordered = sorted(numbers)
    low, high = _quantile(ordered, 0.25), _quantile(ordered, 0.75)
    fence = _OUTLIER_FENCE * (high - low)
    outliers = [value for value in ordered if value < low - fence or value > high + fence]
    return {
        "minimum": ordered[0],
        "maximum": ordered[-1],
        "mean": _round(fmean(ordered)),
        "median": _round(median(ordered)),
        "standardDeviation": _round(stdev(ordered)) if len(ordered) > 1 else 0.0,
        "quartiles": [_round(low), _round(high)],
        "sum": _round(math.fsum(ordered)),
        "outliers": {"count": len(outliers), "values": outliers[:_TOP]},
    }


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _round(value: float) -> float:
    return float(f"{value:.6g}") if abs(value) < 1e15 else value  # noqa: PLR2004 -- exact floats


def _correlations(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return which columns of numbers go together, the strongest first."""
    numeric = [name for name, values in columns.items() if sum(map(_is_number, values)) >= _ENOUGH]
    found: list[dict[str, Any]] = []
    for at, first in enumerate(numeric[:_COLUMNS_CORRELATED]):
        for second in numeric[at + 1 : _COLUMNS_CORRELATED]:
            pairs = [
                (x, y)
                for x, y in zip(columns[first], columns[second], strict=True)
                if _is_number(x) and _is_number(y)
            ]
            strength = _pearson(pairs)
            if strength is not None and abs(strength) >= _CORRELATED:
                found.append(
                    {"columns": [first, second], "pearson": round(strength, 4), "rows": len(pairs)}
                )
    return sorted(found, key=lambda each: -abs(each["pearson"]))[:50]


def _pearson(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < _ENOUGH:
        return None
    mean_x, mean_y = fmean(x for x, _ in pairs), fmean(y for _, y in pairs)
    spread_x = math.fsum((x - mean_x) ** 2 for x, _ in pairs)
    spread_y = math.fsum((y - mean_y) ** 2 for _, y in pairs)
    if not spread_x or not spread_y:
        return None
    together = math.fsum((x - mean_x) * (y - mean_y) for x, y in pairs)
    return together / math.sqrt(spread_x) / math.sqrt(spread_y)


async def _query(run: ToolRun, rows: Rows, sql: str) -> dict[str, Any]:
    await run.in_thread(lambda: check_statement(sql, "duckdb", writable=False))
    order = {
        "engine": "duckdb",
        "path": ":memory:",
        "sql": sql.strip().rstrip(";"),
        "parameters": [],
        "rows_max": limits.QUERY_ROWS_MAX,
        # The database is made for this query alone; the statement itself only reads.
        "writable": True,
        "tables": {"data": rows},
    }
    found = await query_file(order, run.seconds)
    return {
        "columns": found["columns"],
        "rows": [dict(zip(found["columns"], row, strict=False)) for row in found["rows"]],
        "truncated": found["truncated"],
    }


def _report(answer: Mapping[str, Any]) -> str:
    lines = [
        "# Data analysis\n",
        (
            f"{answer['rowCount']:,} rows, {len(answer['columns'])} columns, "
            f"{answer['duplicateRows']:,} duplicate rows.\n"
        ),
    ]
    rows = [
        [
            each["name"],
            each["type"],
            str(each["missing"]),
            str(each["distinct"]),
            _range_of(each),
        ]
        for each in answer["columns"]
    ]
    lines.append(
        markdown_table([["Column", "Type", "Missing", "Distinct", "Values"], *rows]) + "\n"
    )
    if answer["correlations"]:
        lines.append("## Correlations\n")
        lines += [
            f"- {' and '.join(each['columns'])}: {each['pearson']:+.2f}"
            for each in answer["correlations"][:10]
        ]
        lines.append("")
    if (query := answer.get("query")) and query["rows"]:
        cells = [
            [
                tables.scalar_text(value) if not isinstance(value, dict | list) else "…"
                for value in row.values()
            ]
            for row in query["rows"][:50]
        ]
        lines += ["## Query\n", markdown_table([query["columns"], *cells]) + "\n"]
    return "\n".join(lines)


def _range_of(column: Mapping[str, Any]) -> str:
    if "mean" in column:
        return f"{column['minimum']} to {column['maximum']}, mean {column['mean']}"
    return ", ".join(f"{each['value']} ({each['count']})" for each in column.get("top", ())[:3])


TOOLS: Final = (
    StandardTool(
        define(
            "data_analyzer",
            "Analyse a table: types, missing values, figures, outliers and correlations of its "
            "columns, and answer a SQL query over it.",
            category="analysis",
            details=(
                "`content` is a list of objects, or a text of CSV or JSON, as read_file gives it. "
                "Each column of numbers has minimum, maximum, mean, median, quartiles and "
                "outliers, every other one its most frequent values. With `query` the rows are a "
                "table named data and the query is run by DuckDB: SELECT city, avg(price) FROM "
                "data GROUP BY city. `content` of the answer is a report in Markdown."
            ),
            takes={
                "content": {
                    "anyOf": [
                        {"type": "string", "minLength": 1, "maxLength": limits.CONVERTED_CHARS_MAX},
                        {"type": "array", "minItems": 1},
                        {"type": "object"},
                    ],
                    "description": "Rows as a list of objects, or CSV or JSON as text",
                },
                "query": {
                    "type": "string",
                    "maxLength": limits.SQL_CHARS_MAX,
                    "description": "A SELECT over the table data",
                },
            },
            required=("content",),
            gives={
                "rowCount": {"type": "integer"},
                "columns": {"type": "array", "items": {"type": "object"}},
                "duplicateRows": {"type": "integer"},
                "correlations": {"type": "array", "items": {"type": "object"}},
                "query": {"type": "object"},
                "content": {"type": "string", "description": "A report in Markdown"},
            },
            gives_always=("rowCount", "columns", "content"),
            tags=("data", "statistics", "csv", "table", "analyse"),
            shown=examples(
                (
                    "Rows with a query",
                    {
                        "content": [{"city": "Oslo", "price": 3}, {"city": "Bergen", "price": 5}],
                        "query": "SELECT max(price) AS highest FROM data",
                    },
                )
            ),
            cache=True,
            seconds=60,
        ),
        _analyze,
        packages=("duckdb", "sqlglot"),
    ),
)
