"""`code_analysis`, `code_parser`, `complexity_analyzer` and `security_scanner`.

The last three are steps of one pipeline: each takes `files`, adds what it found to every file and
gives `files` on, with a report of everything found so far as `content`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from stratagem import limits
from stratagem.gateway.catalogue.code_checks import check_quality, check_security, find_secrets
from stratagem.gateway.catalogue.code_report import code_report
from stratagem.gateway.catalogue.source_files import (
    LANGUAGES,
    SourceFile,
    files_schema,
    read_sources,
    with_languages,
)
from stratagem.gateway.catalogue.standard_tool import StandardTool, ToolRun, define, examples
from stratagem.gateway.handlers.child_processes import run_worker

__all__ = ["TOOLS"]

_READER: Final = Path(__file__).parent / "workers" / "code_reader.py"
_THRESHOLD: Final = 10
_PACKAGES: Final = (
    "tree_sitter",
    "tree_sitter_python",
    "tree_sitter_javascript",
    "tree_sitter_typescript",
    "tree_sitter_java",
    "tree_sitter_go",
    "tree_sitter_rust",
    "tree_sitter_c",
    "tree_sitter_cpp",
    "tree_sitter_c_sharp",
    "tree_sitter_ruby",
    "tree_sitter_php",
    "lizard",
)


async def _read_code(
    files: Sequence[SourceFile], wanted: Sequence[str], seconds: float
) -> list[dict[str, Any]]:
    order = {
        "files": [{"content": each["content"], "language": each["language"]} for each in files],
        "wanted": list(wanted),
    }
    found: list[dict[str, Any]] = await run_worker(
        _READER, order, seconds=min(seconds, limits.CODE_SECONDS_MAX)
    )
    return found


async def _parse(run: ToolRun) -> dict[str, Any]:
    files = await read_sources(run)
    outlines = await _read_code(files, ["outline"], run.seconds)
    parsed = [
        {**file, "lines": file["content"].count("\n") + 1, **outline}
        for file, outline in zip(files, outlines, strict=True)
    ]
    if not run.arguments.get("includeContent", True):
        parsed = [{name: each[name] for name in each if name != "content"} for each in parsed]
    return {"files": parsed, **_totals(parsed), "content": code_report(parsed)}


async def _measure(run: ToolRun) -> dict[str, Any]:
    files = with_languages(run.arguments["files"])
    threshold = run.arguments.get("threshold", _THRESHOLD)
    measured = [
        {**file, "functions": found["functions"]}
        for file, found in zip(
            files, await _read_code(files, ["complexity"], run.seconds), strict=True
        )
    ]
    functions = [
        {"path": file["path"], **function} for file in measured for function in file["functions"]
    ]
    functions.sort(key=lambda each: -each["complexity"])
    return {
        "files": measured,
        "threshold": threshold,
        "exceeding": [each for each in functions if each["complexity"] > threshold][:500],
        "functions": len(functions),
        "averageComplexity": _mean([each["complexity"] for each in functions]),
        "maxComplexity": functions[0]["complexity"] if functions else 0,
        "content": code_report(measured, threshold=threshold),
    }


async def _scan(run: ToolRun) -> dict[str, Any]:
    files = with_languages(run.arguments["files"])
    rules = run.arguments.get("rules", "all")
    if rules == "secrets":
        found = [find_secrets(each["content"]) for each in files]
    else:
        found = await check_security(files, min(run.seconds, limits.CODE_SECONDS_MAX))
    if rules == "owasp-top-10":
        found = [[each for each in issues if "owasp" in each] for issues in found]
    scanned = [{**file, "security": issues} for file, issues in zip(files, found, strict=True)]
    issues = [{"path": file["path"], **each} for file in scanned for each in file["security"]]
    return {
        "files": scanned,
        "rules": rules,
        "issues": issues[: limits.CODE_ISSUES_MAX],
        "total": len(issues),
        "bySeverity": _counts(issues, "severity"),
        "byCategory": _counts(issues, "owasp"),
        "content": code_report(scanned),
    }


async def _analyze(run: ToolRun) -> dict[str, Any]:
    files = await read_sources(run)
    seconds = min(run.seconds, limits.CODE_SECONDS_MAX)
    read = await _read_code(files, ["outline", "complexity"], seconds)
    quality = await check_quality(files, seconds)
    security = await check_security(files, seconds)
    threshold = run.arguments.get("threshold", _THRESHOLD)
    analysed = [
        {
            "path": file["path"],
            "language": file["language"],
            "lines": file["content"].count("\n") + 1,
            **found,
            "issues": issues,
            "security": dangers,
        }
        for file, found, issues, dangers in zip(files, read, quality, security, strict=True)
    ]
    functions = [function for file in analysed for function in file["functions"]]
    return {
        "files": analysed,
        **_totals(analysed),
        "summary": {
            "functions": len(functions),
            "averageComplexity": _mean([each["complexity"] for each in functions]),
            "maxComplexity": max((each["complexity"] for each in functions), default=0),
            "exceeding": sum(each["complexity"] > threshold for each in functions),
            "issues": sum(len(each["issues"]) for each in analysed),
            "securityIssues": sum(len(each["security"]) for each in analysed),
        },
        "content": code_report(analysed, threshold=threshold),
    }


def _totals(files: Sequence[SourceFile]) -> dict[str, Any]:
    return {
        "totalFiles": len(files),
        "totalLines": sum(each["lines"] for each in files),
        "languages": _counts(files, "language"),
    }


def _counts(items: Sequence[dict[str, Any]], field: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in items:
        if field in each:
            counts[each[field]] = counts.get(each[field], 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))


def _mean(numbers: Sequence[int]) -> float:
    return round(sum(numbers) / len(numbers), 2) if numbers else 0.0


_SOURCES: Final[dict[str, Any]] = {
    "code": {
        "type": "string",
        "minLength": 1,
        "maxLength": limits.CODE_CHARS_MAX,
        "description": "One text; say its `language`",
    },
    "language": {"type": "string", "enum": list(LANGUAGES), "description": "Of `code`"},
    "path": {"type": "string", "maxLength": 500, "description": "What `code` is called"},
    "files": files_schema("Files by path and content"),
    "repository": {
        "type": "string",
        "maxLength": 2_000,
        "description": "github.com/owner/name, or the address of a .tar.gz or .zip",
    },
    "folder": {
        "type": "string",
        "maxLength": 1_000,
        "description": "A folder connection, with a path below it: project/src",
    },
    "paths": {
        "type": "string",
        "maxLength": 200,
        "description": "Only files of a repository or folder that match: *.py or src/*.ts",
    },
}
_FILES: Final = {"type": "array", "items": {"type": "object"}}
_CONTENT: Final = {"type": "string", "description": "A report in Markdown"}
_THRESHOLD_SCHEMA: Final = {
    "type": "integer",
    "minimum": 1,
    "maximum": 1_000,
    "default": _THRESHOLD,
    "description": "Functions above it are reported",
}
_TAGS: Final = ("code", "source", "quality")
_CODE: Final = "def add(a, b):\n    return a + b\n"

TOOLS: Final = (
    StandardTool(
        define(
            "code_analysis",
            "Analyse code: symbols, imports, complexity, likely bugs, dangerous calls and secrets "
            "in it.",
            category="analysis",
            details=(
                "Reads one text, a list of files, a folder or a repository in eleven languages: "
                f"{', '.join(each for each in LANGUAGES if each != 'tsx')}. Symbols and imports "
                "come from tree-sitter, complexity from lizard, issues of Python from ruff and "
                "bandit, secrets and dangerous calls of other languages from patterns. The code "
                "is read, never run. `content` is a report in Markdown."
            ),
            takes={**_SOURCES, "threshold": _THRESHOLD_SCHEMA},
            gives={
                "files": _FILES,
                "totalFiles": {"type": "integer"},
                "totalLines": {"type": "integer"},
                "languages": {"type": "object"},
                "summary": {"type": "object"},
                "content": _CONTENT,
            },
            gives_always=("files", "summary", "content"),
            tags=_TAGS,
            shown=examples(("One text", {"code": _CODE, "language": "python"})),
            cache=True,
            seconds=60,
            output_bytes=limits.CODE_RESULT_BYTES_MAX,
        ),
        _analyze,
        packages=(*_PACKAGES, "ruff", "bandit"),
        connection="folder",
        optional=True,
    ),
    StandardTool(
        define(
            "code_parser",
            "Parse code: the functions, classes and imports of each file, with their lines.",
            category="analysis",
            details=(
                "Reads one text, a list of files, a folder or a repository. `files` can "
                "be passed on to complexity_analyzer and security_scanner unchanged; a pipeline "
                "does so automatically. With `includeContent` false the code is left out. "
                "The code "
                "is read, never run."
            ),
            takes={
                **_SOURCES,
                "includeContent": {
                    "type": "boolean",
                    "default": True,
                    "description": "Keep the code in `files`, for later steps",
                },
            },
            gives={
                "files": _FILES,
                "totalFiles": {"type": "integer"},
                "totalLines": {"type": "integer"},
                "languages": {"type": "object"},
                "content": _CONTENT,
            },
            gives_always=("files", "totalFiles", "totalLines", "languages", "content"),
            tags=(*_TAGS, "parse", "symbols"),
            shown=examples(
                ("One text", {"code": _CODE, "language": "python"}),
                ("A repository", {"repository": "github.com/user/repo", "paths": "*.py"}),
            ),
            cache=True,
            seconds=60,
            output_bytes=limits.CODE_RESULT_BYTES_MAX,
        ),
        _parse,
        packages=_PACKAGES,
        connection="folder",
        optional=True,
    ),
    StandardTool(
        define(
            "complexity_analyzer",
            "Measure the cyclomatic complexity and length of every function, and report "
            "those above a threshold.",
            category="analysis",
            details=(
                "Takes `files` as code_parser returns them, or your own list of paths and "
                "contents. "
                "Complexity is the number of paths through a function, by lizard; above 10 a "
                "function is hard to test."
            ),
            takes={
                "files": files_schema("As code_parser returns them"),
                "threshold": _THRESHOLD_SCHEMA,
            },
            required=("files",),
            gives={
                "files": _FILES,
                "threshold": {"type": "integer"},
                "exceeding": {"type": "array", "items": {"type": "object"}},
                "functions": {"type": "integer"},
                "averageComplexity": {"type": "number"},
                "maxComplexity": {"type": "integer"},
                "content": _CONTENT,
            },
            gives_always=("files", "exceeding", "functions", "content"),
            tags=(*_TAGS, "complexity", "metrics"),
            shown=examples(("One file", {"files": [{"path": "add.py", "content": _CODE}]})),
            cache=True,
            seconds=60,
            output_bytes=limits.CODE_RESULT_BYTES_MAX,
        ),
        _measure,
        packages=_PACKAGES,
    ),
    StandardTool(
        define(
            "security_scanner",
            "Scan code for secrets and dangerous calls, each with its CWE and its category of the "
            "OWASP Top 10.",
            category="analysis",
            details=(
                "Takes `files` as code_parser returns them, or your own list of paths and "
                "contents. "
                "Python is scanned by bandit, other languages by a small set of patterns: "
                "they find the usual dangerous calls, not every vulnerability, and each "
                "finding has to be checked. `rules`: all, owasp-top-10 (only what belongs "
                "to a category), or "
                "secrets. A secret that is found is not repeated in the answer's issues."
            ),
            takes={
                "files": files_schema("As code_parser returns them"),
                "rules": {
                    "type": "string",
                    "enum": ["all", "owasp-top-10", "secrets"],
                    "default": "all",
                },
            },
            required=("files",),
            gives={
                "files": _FILES,
                "rules": {"type": "string"},
                "issues": {"type": "array", "items": {"type": "object"}},
                "total": {"type": "integer"},
                "bySeverity": {"type": "object"},
                "byCategory": {"type": "object"},
                "content": _CONTENT,
            },
            gives_always=("files", "issues", "total", "content"),
            tags=("code", "security", "secrets", "owasp"),
            shown=examples(
                (
                    "One file",
                    {
                        "files": [{"path": "run.py", "content": "import os\nos.system(input())\n"}],
                        "rules": "owasp-top-10",
                    },
                )
            ),
            cache=True,
            seconds=60,
            output_bytes=limits.CODE_RESULT_BYTES_MAX,
        ),
        _scan,
        packages=("bandit",),
    ),
)
