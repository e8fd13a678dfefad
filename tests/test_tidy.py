"""House rules, kept as tests.

The budgets are alarms: when one rings, look at the code before the number.
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from stratagem import errors
from tests import docs_tables

ROOT = docs_tables.ROOT
PACKAGE = ROOT / "src" / "stratagem"
MODULES = sorted(PACKAGE.rglob("*.py"))
SQL_FILES = sorted(PACKAGE.rglob("*.sql"))

FUNCTION_LINES_MEDIAN = 8
FUNCTION_LINES_P90 = 25
FUNCTION_LINES_MAX = 60

BANNED_MODULE_NAMES = {"common", "core", "helpers", "manager", "utils"}

# Transaction control and pragmas are commands to the driver, not queries.
SQL_IN_PYTHON = re.compile(
    r"""\s*(
        SELECT\s | WITH\s+\w+\s+AS\b | INSERT\s+(OR\s+\w+\s+)?INTO\b | REPLACE\s+INTO\b
        | UPDATE\s+\w+\s+SET\b | DELETE\s+FROM\b
        | (CREATE|DROP|ALTER)\s+(UNIQUE\s+|VIRTUAL\s+|TEMP\s+)?(TABLE|INDEX|TRIGGER|VIEW)\b
    )""",
    re.VERBOSE,
)
SQL_WORD = re.compile(r"\b(?:SELECT|WITH|INSERT|REPLACE|UPDATE|DELETE|CREATE|DROP|ALTER)\s")
SQL_QUERY = re.compile(r"^(SELECT|WITH|INSERT|REPLACE|UPDATE|DELETE)\b", re.MULTILINE)
SQL_SCHEMA = re.compile(r"^(CREATE|DROP|ALTER)\b", re.MULTILINE)
SQL_NAME = re.compile(r"^-- name:(.*)$", re.MULTILINE)

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def percentile_90(values: list[int]) -> int:
    return sorted(values)[math.ceil(len(values) * 0.9) - 1]


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def docstring_of(node: ast.AST) -> ast.Expr | None:
    body = getattr(node, "body", None)
    if not isinstance(body, list) or not body or not isinstance(body[0], ast.Expr):
        return None
    value = body[0].value
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return body[0] if is_text else None


def lines_of(node: ast.stmt) -> int:
    """Count from `def` or first line to the last; decorators lie above it."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


@dataclass(frozen=True)
class Definition:
    """A function or class of a module; the tree that it stood in is not kept, for it is large."""

    place: str
    name: str
    is_class: bool
    lines: int
    decorators: str


def definition_of(path: Path, node: ast.ClassDef | FunctionNode) -> Definition:
    docstring = docstring_of(node)
    return Definition(
        f"{short(path)}:{node.lineno}",
        node.name,
        isinstance(node, ast.ClassDef),
        lines_of(node) - (lines_of(docstring) if docstring else 0),
        " ".join(ast.unparse(each) for each in node.decorator_list),
    )


@functools.cache
def definitions(path: Path) -> tuple[Definition, ...]:
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = ast.walk(tree(path))
    return tuple(definition_of(path, node) for node in nodes if isinstance(node, kinds))


def functions() -> list[Definition]:
    return [each for path in MODULES for each in definitions(path) if not each.is_class]


def function_lines() -> dict[str, int]:
    return {f"{each.place} {each.name}": each.lines for each in functions()}


def longest(lengths: dict[str, int], count: int = 10) -> str:
    ranked = sorted(lengths.items(), key=lambda item: -item[1])[:count]
    return "\n" + "\n".join(f"{length:5} {name}" for name, length in ranked)


def sql_literals(path: Path) -> Iterator[str]:
    """Yield where a string of a module is a query; docstrings are prose."""
    if not SQL_WORD.search(path.read_text(encoding="utf-8")):
        return  # most modules, and reading them is much faster than walking through their trees
    module = tree(path)
    prose = {id(text.value) for node in ast.walk(module) if (text := docstring_of(node))}
    for node in ast.walk(module):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) not in prose and SQL_IN_PYTHON.match(node.value):
            yield f"{short(path)}:{node.lineno} {node.value.strip()[:60]!r}"


def sql_faults(text: str) -> Iterator[str]:
    """Yield what is wrong with a file of named queries, or with one of schema."""
    if not text.startswith("-- "):
        yield "does not open with a comment that says what it is for"
    preamble, *rest = SQL_NAME.split(text)
    if SQL_QUERY.search(preamble) and not SQL_SCHEMA.search(preamble):
        yield "has a query without `-- name:`"
    names = [name.strip() for name in rest[::2]]
    for name, body in zip(names, rest[1::2], strict=True):
        lines = [line for line in body.strip().splitlines() if line.strip()]
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            yield f"has a query with a bad name: {name!r}"
        if names.count(name) > 1:
            yield f"names {name!r} twice"
        if not lines or not re.match(r"--\s*\w", lines[0]):
            yield f"does not say below its name what {name!r} is for"
        if all(line.startswith("--") for line in lines):
            yield f"has no statement for {name!r}"


def test_functions_are_short() -> None:
    lengths = function_lines()

    assert median(lengths.values()) <= FUNCTION_LINES_MEDIAN, longest(lengths)
    assert percentile_90(list(lengths.values())) <= FUNCTION_LINES_P90, longest(lengths, 30)
    assert max(lengths.values()) <= FUNCTION_LINES_MAX, longest(lengths)


def test_modules_are_named_after_the_domain() -> None:
    folders = [path for path in PACKAGE.rglob("*") if path.is_dir()]

    banned = [short(path) for path in [*MODULES, *folders] if path.stem in BANNED_MODULE_NAMES]

    assert banned == []


def test_modules_are_nouns() -> None:
    found = [
        short(path)
        for path in MODULES
        if PARTICIPLE.fullmatch(path.stem) and "_" not in path.stem and path.stem not in NOUNS
    ]

    assert found == []


def test_a_module_name_that_many_rooms_have_is_a_role_in_each_of_them() -> None:
    names = Counter(path.stem for path in MODULES)

    found = {name: count for name, count in names.items() if count > NAMESAKES_MAX}

    assert {name: count for name, count in found.items() if name not in ROLES} == {}


def test_the_engine_opens_and_prints_nothing() -> None:
    """What import-linter cannot see: input and output that needs no import."""
    calls = [
        f"{short(path)}:{node.lineno} {node.func.id}"
        for path in sorted((PACKAGE / "engine").rglob("*.py"))
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id in {"input", "open", "print"}
    ]

    assert calls == []


def test_sql_lives_in_sql_files() -> None:
    # The standard tools speak to databases of users: their SQL is in examples, and over tables
    # whose columns are only known when a caller gives them.
    ours = [path for path in MODULES if "catalogue" not in path.parts]

    assert [fault for path in ours for fault in sql_literals(path)] == []


def test_every_query_has_a_name_and_a_purpose() -> None:
    faults = [
        f"{short(path)} {fault}"
        for path in SQL_FILES
        for fault in sql_faults(path.read_text(encoding="utf-8"))
    ]

    assert faults == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("-- Queries.\n\n-- name: recall\n-- One entry.\nSELECT 1;\n", None),
        ("-- Tables.\n\nCREATE TABLE t (a);\nINSERT INTO t VALUES (1);\n", None),
        ("SELECT 1;\n", "does not open with a comment"),
        ("-- Queries.\nSELECT 1;\n", "without `-- name:`"),
        ("-- Queries.\n-- name: recall\nSELECT 1;\n", "does not say below its name"),
        ("-- Queries.\n-- name: recall\n-- One entry.\n", "no statement"),
        ("-- Queries.\n-- name: Re call\n-- One entry.\nSELECT 1;\n", "bad name"),
        ("-- Q.\n-- name: a\n-- One.\nSELECT 1;\n-- name: a\n-- Two.\nSELECT 2;\n", "twice"),
    ],
)
def test_the_rule_for_sql_files_bites(text: str, fault: str | None) -> None:
    faults = list(sql_faults(text))

    assert any(fault in found for found in faults) if fault else faults == []


def test_migrations_are_numbered_without_gaps() -> None:
    folders = {path.parent for path in SQL_FILES if path.parent.name == "migrations"}
    for folder in folders:
        names = sorted(path.name for path in folder.glob("*"))

        numbers = [re.fullmatch(r"(\d{4})_[a-z0-9_]+\.sql", name) for name in names]

        expected = [f"{number:04}" for number in range(1, len(names) + 1)]
        assert [match and match[1] for match in numbers] == expected, names


def test_every_error_has_a_row_in_the_table_and_every_row_an_error() -> None:
    codes = [kind.code for kind in docs_tables.error_classes()]

    assert sorted(codes) == sorted(errors.TABLE)


def test_every_error_is_public_and_says_what_to_do() -> None:
    kinds = docs_tables.error_classes()

    assert [kind.__name__ for kind in kinds if kind.__name__ not in errors.__all__] == []
    assert [kind.__name__ for kind in kinds if not kind.__doc__ or not kind.hint_default] == []


def test_every_limit_has_a_reason() -> None:
    assert [limit.name for limit in docs_tables.all_limits() if not limit.reason] == []


@pytest.mark.parametrize(
    ("path", "page"), docs_tables.PAGES.items(), ids=[path.name for path in docs_tables.PAGES]
)
def test_reference_pages_match_the_code(path: Path, page: Callable[[], str]) -> None:
    assert path.read_text(encoding="utf-8") == page(), "stale: run `make docs`"


def public_classes() -> Iterator[tuple[str, Path]]:
    for path in MODULES:
        for each in definitions(path):
            if each.is_class and not each.name.startswith("_"):
                yield each.name, path


def test_a_public_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for name, path in public_classes():
        places.setdefault(name, []).append(short(path))

    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_every_room_is_listed_in_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    house = text[text.index("## The house") : text.index("## The log")]
    rooms = {
        path.parent.name
        for path in PACKAGE.rglob("__init__.py")
        if path.parent != PACKAGE and len(path.relative_to(PACKAGE).parts) <= 3
    }

    assert {room for room in rooms if f"{room}/" not in house} == set()


def test_the_words_of_the_glossary_are_used() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text[text.index("| word | meaning |") : text.index("## The house")]
    rows = [line.split("|")[1] for line in table.splitlines()[2:] if line.startswith("|")]
    words = [word.strip() for row in rows for word in row.split(",")]
    code = " ".join(path.read_text(encoding="utf-8") for path in MODULES).casefold()
    unused = [
        word
        for word in words
        if word.replace(" ", "") not in code
        and word not in code
        and word.replace(" ", "_") not in code
    ]

    assert len(words) == len(set(words)), "a word has two meanings"
    assert unused == []


# A participle alone says neither what is returned nor what is done. A property may be a state, and
# a context manager something that goes on.
STATE = re.compile(r"property|contextmanager")
PARTICIPLE = re.compile(
    r"_?(?:\w+(?:ed|ing)|told|kept|said|meant|shown|made|gone|seen|drawn|written|rewritten|chosen|found"
    r"|given|held|known|taken|unknown)"
)
WORDS_OF_THE_FIELD = {
    "ping", "seed", "feed", "embed", "string", "reasoning", "tracing", "ranking", "need",
    "debugging", "learning", "landing", "succeed", "remaining", "pending",
}  # fmt: skip
# What is left from before the rule; the number only falls.
PARTICIPLES_MAX = 0
# Of modules.
NOUNS = WORDS_OF_THE_FIELD | {
    "embedded", "embedding", "listing", "rendering", "spelling", "standing", "stemming",
}  # fmt: skip
# What a room has one of: whoever knows the one of a room knows what that of another is.
ROLES = {
    "__init__", "answers", "inputs", "kinds", "models", "operations", "parameters", "records",
    "service", "settings", "tools",
}  # fmt: skip
NAMESAKES_MAX = 4


def test_functions_say_what_they_return_or_do() -> None:
    found = [
        f"{each.place} {each.name}"
        for each in functions()
        if PARTICIPLE.fullmatch(each.name)
        and "_" not in each.name.strip("_")
        and each.name.strip("_") not in WORDS_OF_THE_FIELD
        and not STATE.search(each.decorators)
    ]

    assert len(found) <= PARTICIPLES_MAX, "\n".join(found)
