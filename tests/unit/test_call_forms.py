"""Calls in the words of whoever reads of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from stratagem import errors
from stratagem.call_forms import CallForm, reword, reword_answer, reword_for_tools
from stratagem.errors import StratagemError
from stratagem.operations import DEFAULT_TOOLSETS, TABLE
from stratagem.surfaces.mcp import instructions
from stratagem.surfaces.mcp.operation_tools import OperationTools
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings

SOURCES = Path(errors.__file__).parent
NAME = re.compile(r"(?<![\w'\"-])[a-z]+(?:_[a-z]+)+(?![\w'\"])")


@cache
def hints() -> tuple[str, ...]:
    """Return every text of the package that is a hint of an error."""
    return tuple(_hints())


def _hints() -> Iterator[str]:
    for path in SOURCES.rglob("*.py"):
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)) if "hint" in source else ():
            if (isinstance(node, ast.keyword) and node.arg == "hint") or (
                isinstance(node, ast.Assign) and "hint" in ast.unparse(node.targets[0])
            ):
                yield from _texts(node.value)


@cache
def advice() -> tuple[str, ...]:
    """Return every text of the package that is read by callers and names an operation."""
    return tuple(_advice())


def _advice() -> Iterator[str]:
    for path in SOURCES.rglob("*.py"):
        if path.parent.name == "generated" or path.name in {"guidance.py", "instructions.py"}:
            continue
        source = path.read_text("utf-8")
        names_some = any(name in source for name in TABLE)
        for node in ast.walk(ast.parse(source)) if names_some else ():
            if isinstance(node, ast.Constant | ast.JoinedStr):
                said = _written(node)
                if " " in said.strip() and operations_in(said):
                    yield said


def _written(node: ast.expr) -> str:
    """Return a text as it will be read, with a word in the place of what is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_written(each) for each in parts)
        case ast.FormattedValue(conversion=conversion):
            return "'it'" if conversion == ord("r") else "it"
    return ""


def _texts(node: ast.expr) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def operations_in(text: str) -> list[str]:
    return [name for name in NAME.findall(text) if name in TABLE]


@pytest.mark.parametrize("form", ["command", "method"])
def test_no_hint_names_a_tool_where_there_are_none(form: CallForm) -> None:
    naming = [hint for hint in hints() if operations_in(hint)]

    reworded = {hint: reword(hint, form) for hint in naming}

    assert len(naming) > 5
    for said in reworded.values():
        # As a method or as an argument of `call` an operation may keep its name.
        left = re.sub(r"\b\w+\.\w+\([^)]*\)|call\(\"\w+\"\)|`[^`]*`", "", said)
        assert not operations_in(left), said


@pytest.mark.parametrize(
    ("text", "command", "method"),
    [
        (
            'List the branches with strata_branch, action "list".',
            "List the branches with `stratagem branch list`.",
            "List the branches with memory.branches().",
        ),
        (
            "strata_branch with action \"restore\" and name 'a b' restores it.",
            "`stratagem branch restore 'a b'` restores it.",
            "memory.restore('a b') restores it.",
        ),
        (
            "strata_recall with prefix 'user' lists them.",
            "`stratagem list user` lists them.",
            "memory.list('user') lists them.",
        ),
        (
            "Search for one with tools_discover.",
            "Search for one with `stratagem tools discover`.",
            "Search for one with gateway.discover().",
        ),
        (
            "Call ranked_solutions; as_of '@5' shows it.",
            "Call `stratagem ranked-solutions`; --as-of @5 shows it.",
            "Call debugging.ranked_solutions(); as_of '@5' shows it.",
        ),
        ("The key 'strata_store' is near.", "The key 'strata_store' is near.", None),
        ("Nothing to call.", "Nothing to call.", None),
    ],
)
def test_a_call_is_written_as_it_is_made(text: str, command: str, method: str | None) -> None:
    assert reword(text, "command") == command
    assert reword(text, "method") == (method or text)


def test_a_reworded_hint_is_the_one_that_a_traceback_shows() -> None:
    error = StratagemError("No.", hint="Call strata_status.")

    error.reword_hint(lambda hint: reword(hint, "method"))

    assert error.hint == "Call memory.status()."
    assert error.__notes__ == ["Call memory.status()."]


SERVERS: dict[str, ServerSettings] = {
    "agent": ServerSettings("x.db", toolsets=DEFAULT_TOOLSETS),
    "memory": ServerSettings("x.db", toolsets=("memory",)),
    "developer": ServerSettings("x.db", toolsets=("developer",)),
    "debugging": ServerSettings("x.db", toolsets=("debugging",)),
    "knowledge": ServerSettings("x.db", toolsets=("knowledge",)),
    "gateway": ServerSettings("x.db", toolsets=("gateway",)),
    "read-only": ServerSettings(
        "x.db", toolsets=("memory", "debugging", "knowledge", "gateway"), read_only=True
    ),
}


def listed_by(settings: ServerSettings) -> set[str]:
    return {tool["name"] for tool in OperationTools(settings, Database(settings)).listing}


@pytest.mark.parametrize("server", SERVERS)
def test_no_advice_leads_to_a_tool_that_is_not_listed(server: str) -> None:
    listed = listed_by(SERVERS[server])
    texts = {*advice(), *(hint for hint in hints() if operations_in(hint))}

    for text in texts:
        said = reword_for_tools(text, listed)

        # A command may be called as the operation is.
        left = [name for name in operations_in(re.sub(r"`[^`]*`", "", said)) if name not in listed]
        assert not left, (text, said)
        if not {*operations_in(text)} - listed:
            assert said == text
    assert len(texts) > 60


@pytest.mark.parametrize("server", SERVERS)
def test_what_a_server_says_of_itself_leads_to_its_own_tools(server: str) -> None:
    settings = SERVERS[server]

    said = instructions.instructions(settings)

    assert {*operations_in(said)} <= listed_by(settings)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'List the branches with strata_branch, action "list".',
            "List the branches with strata_branch_list.",
        ),
        (
            "strata_branch with action \"switch\" and name 'a b' chooses that one.",
            "strata_branch_use with name 'a b' chooses that one.",
        ),
        (
            "strata_branch with action \"restore\" and name 'old' restores it.",
            "`stratagem branch restore old` restores it.",
        ),
        ("strata_recall with prefix 'a' lists.", "strata_kv_list with prefix 'a' lists."),
        ("strata_recall with key 'a' reads it.", "strata_kv_get with key 'a' reads it."),
        ("Use strata_search.", "Use strata_search."),
        (
            "Create one with create_concept.",
            "Create one with `stratagem create-concept` (toolset 'knowledge').",
        ),
    ],
)
def test_developer_mode_is_told_of_its_own_tools(text: str, said: str) -> None:
    assert reword_for_tools(text, listed_by(SERVERS["developer"])) == said


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("agent", "Call `stratagem get-concept --concept-id KEY` (toolset 'knowledge')."),
        ("knowledge", "Call get_concept with concept_id 'KEY'."),
    ],
)
def test_the_toolset_of_a_tool_is_named_where_a_server_has_none_of_it(
    server: str, said: str
) -> None:
    text = "Call get_concept with concept_id 'KEY'."

    assert reword_for_tools(text, listed_by(SERVERS[server])) == said


def test_no_text_names_the_toolset_by_itself() -> None:
    naming = [
        path.name
        for path in SOURCES.rglob("*.py")
        if re.search(r"\(toolset [a-z]", path.read_text("utf-8"))
    ]

    # A setting's help, which no server rewords.
    assert naming == ["settings.py"]


def test_no_toolset_is_named_for_a_tool_that_the_server_leaves_out_of_it() -> None:
    said = reword_for_tools("Call strata_store.", listed_by(SERVERS["read-only"]))

    assert said == "Call `stratagem store`."


def test_advice_of_an_answer_is_reworded_and_its_data_is_not() -> None:
    answer = {
        "note": "Call strata_status.",
        "notices": ["delete_relationship with source_id 'a' and target_id 'b' breaks it."],
        "next_action": {"kind": "K", "instructions": "Call add_incident."},
        "value": {"note": "Call strata_status."},
    }

    said = reword_answer(answer, lambda text: reword(text, "method"))

    assert said == {
        "note": "Call memory.status().",
        "notices": ["knowledge.delete_relationship(source_id='a', target_id='b') breaks it."],
        "next_action": {"kind": "K", "instructions": "Call debugging.add_incident()."},
        "value": {"note": "Call strata_status."},
    }
    assert answer["note"] == "Call strata_status."


def test_what_answers_say_in_words_is_advice_where_it_names_operations() -> None:
    unmarked = [
        f"{path.name}: {said}"
        for path in SOURCES.glob("*/*operations.py")
        for function in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(function, ast.FunctionDef) and "say" in function.name.split("_")
        for said in _unadvised(function)
    ]

    assert not unmarked


def _unadvised(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the texts of a function that name operations and are not passed to `advise`."""
    advised = {
        each
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "advise"
        for each in ast.walk(node)
    }
    for node in ast.walk(function):
        if node not in advised and isinstance(node, ast.Constant | ast.JoinedStr):
            said = _written(node)
            is_docstring = said == ast.get_docstring(function, clean=False)
            if not is_docstring and " " in said.strip() and operations_in(said):
                yield said
