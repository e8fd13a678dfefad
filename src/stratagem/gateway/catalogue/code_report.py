"""What was found in code, as Markdown for people and models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stratagem.gateway.builtin.html_text import markdown_table

__all__ = ["code_report"]

_SHOWN = 25
_WORST = {"high": 0, "error": 0, "medium": 1, "warning": 1, "low": 2}


def code_report(files: Sequence[dict[str, Any]], threshold: int = 10) -> str:
    """Return a report of everything that the files carry."""
    return "\n".join(
        [
            *_overview(files),
            *_complexity(files, threshold),
            *_issues(files, "security", "Security"),
            *_issues(files, "issues", "Likely bugs"),
        ]
    )


def _overview(files: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "# Code analysis\n"
    symbols = sum(len(each.get("symbols", ())) for each in files)
    lines = sum(each.get("lines") or each.get("content", "").count("\n") + 1 for each in files)
    yield f"{len(files)} files, {lines:,} lines" + (f", {symbols} symbols.\n" if symbols else ".\n")
    rows = [
        [each["path"], each["language"], str(len(each["symbols"])), str(len(each["imports"]))]
        for each in files
        if "symbols" in each
    ]
    if rows:
        yield markdown_table([["File", "Language", "Symbols", "Imports"], *rows[:_SHOWN]]) + "\n"
    broken = [each["path"] for each in files if each.get("syntaxErrors")]
    if broken:
        yield f"Not read completely, because of syntax errors: {', '.join(broken[:10])}.\n"


def _complexity(files: Sequence[dict[str, Any]], threshold: int) -> Iterator[str]:
    if not any("functions" in each for each in files):
        return
    functions = [(file["path"], each) for file in files for each in file.get("functions", ())]
    functions.sort(key=lambda pair: -pair[1]["complexity"])
    above = [pair for pair in functions if pair[1]["complexity"] > threshold]
    yield "## Complexity\n"
    yield f"{len(above)} of {len(functions)} functions are above {threshold}.\n"
    rows = [
        [f"{path}:{each['line']}", each["name"], str(each["complexity"]), str(each["lines"])]
        for path, each in functions[:_SHOWN]
    ]
    if rows:
        yield markdown_table([["Where", "Function", "Complexity", "Lines"], *rows]) + "\n"


def _issues(files: Sequence[dict[str, Any]], field: str, title: str) -> Iterator[str]:
    if not any(field in each for each in files):
        return
    issues = [(file["path"], each) for file in files for each in file.get(field, ())]
    issues.sort(key=lambda pair: _WORST.get(pair[1]["severity"], 3))
    yield f"## {title}\n"
    yield f"{len(issues)} found.\n"
    rows = [
        [f"{path}:{each['line']}", each["severity"], each["rule"], each["message"]]
        for path, each in issues[:_SHOWN]
    ]
    if rows:
        yield markdown_table([["Where", "Severity", "Rule", "What"], *rows]) + "\n"
