"""17. No text makes a regular expression slow: every one of the package, attacked."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from stratagem.redaction import mask_json
from tests.security.house import House
from tests.security.patterns import (
    MADE_WHEN_NEEDED,
    METHODS,
    PACKAGE,
    Pattern,
    Source,
    collect_apart,
    possessive_groups,
    try_all,
)

# Of the first release, with how each was used. Each was quadratic or worse.
_NO_SECRET = (
    r"(?i)(?:none|null|nil|true|false|yes|no|undefined|str(?:ing)?|int|bytes|bool|any|object"
    r"|optional.*|required|missing|empty|invalid|expired|not|is|was|the|an?|of|in|for|must|should"
    r"|cannot|char|const|var|let|void|number|text|type|auto|default|unknown|unset|set|on|off|~|\*"
    r"|[*x.•…-]{2,}|<[^>]*>|[$%{].*|\[[^\]]*\]|\(\w*\)|(?:~|/[\w.-]+)(?:/[\w.-]*)+|[a-z_]+=\S*"
    r"|(?:os|process|env|self|config|settings|args|ctx|this|request|secrets?|vault)[.\[].*"
    r"|(?:[a-z_]\w*\.[\w.]*|(?:get|read|load|fetch|new|input|prompt)\w*)\(.*"
    r")[.,;:!?)\]}>]*"
)
DEFECTIVE = [
    Pattern("rest/bodies", r'"(?:[^"\\]|\\.)*"|[\[\]{}]', methods=("sub",), in_bytes=True),
    Pattern(
        "placing._PATH",
        r"[\w$-]+(?:(?:\.|/|__|:)[\w$-]+|\[['\"]?[\w$-]+['\"]?\])+",
        methods=("fullmatch",),
    ),
    Pattern("lists._SENTENCE", r"[A-Z][^?!.]*\s[^?!]+[?!]", methods=("fullmatch",)),
    Pattern("formats._LINK", r"\[([^\[\]]*)\]\(\s*<?(\S+?)>?\s*\)"),
    Pattern(
        "pairs._PAIR",
        r"\s*(?:[-*•]\s+)?([A-Za-z_][\w .-]*?)\s*(?:[:=])\s*(.*?)\s*",
        int(re.DOTALL),
        ("fullmatch",),
    ),
    Pattern("redaction._NO_SECRET", _NO_SECRET, methods=("fullmatch",)),
]
# What may not be called slow: the same, mended, and others that only look dangerous.
SOUND = [
    Pattern("possessive", r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]'),
    Pattern("disjoint", r"(?:[a-z]+ )*[0-9]+", methods=("fullmatch",)),
    Pattern("bounded", r"(?<!\w)\w{1,60}@\w{1,60}"),
    Pattern("stated", r"\s*x|\s*y", chars_max=200),
]


def test_the_tester_finds_every_defect_of_the_first_release() -> None:
    found = {each.place: each for each in try_all(DEFECTIVE)}

    assert [place for place, each in found.items() if not each.wrong] == []
    assert found["placing._PATH"].growth == float("inf")


def test_the_tester_calls_nothing_slow_that_is_not() -> None:
    assert [str(each) for each in try_all(SOUND) if each.wrong] == []


@pytest.mark.timeout(400)
def test_every_pattern_of_the_package_is_linear() -> None:
    found = try_all(collect_apart(), attacks_max=12)

    assert len(found) > 400
    assert [str(each) for each in found if each.wrong] == []


def test_no_pattern_of_the_package_has_a_possessive_group() -> None:
    """Python before 3.11.5 misses matches of them."""
    assert [each.place for each in collect_apart() if possessive_groups(each)] == []


@pytest.mark.parametrize(
    ("text", "is_group"),
    [
        (r"(?:ab)*+", True),
        (r"(?:a|\\.)++", True),
        (r"(ab)?+", True),
        (r"x(?:ab){2,3}+y", True),
        (r"(?>ab)", True),
        (r"(?:x(?:ab|c)*+)?", True),
        (r"[ab]*+\)++\w?+a{2,3}+", False),
        (r"(?:ab)*(c)+", False),
    ],
)
def test_a_possessive_group_is_told_from_a_possessive_letter(text: str, is_group: bool) -> None:
    assert bool(possessive_groups(Pattern("here", text))) is is_group


# Each attack is bounded by itself; all of them take minutes, more on a busy machine.
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_pattern_of_the_package_is_linear_whatever_is_tried() -> None:
    patterns = collect_apart()

    found = try_all(patterns)

    assert {method for each in patterns for method in each.methods} == set(METHODS)
    assert [str(each) for each in found if each.wrong] == []


@pytest.mark.parametrize(
    "parameters",
    [
        {"expression": "1+1", "__a" * 200 + "!": 1},
        {"expression": ["A " * 30_000]},
        {"expression": "1", "precision": "a" + " " * 60_000},
        {"expression": "1", "password": "." * 60_000 + "y"},
    ],
    ids=["a name", "a sentence", "a pair", "a password"],
)
def test_no_argument_makes_a_call_slow(house: House, parameters: dict[str, Any]) -> None:
    given = {"error": "x", "toolName": "calculator", "parameters": parameters}
    began = time.perf_counter()

    client = house.client("runner")
    told = client.post("/api/gateway/error_diagnose", json=given)
    called = client.post("/api/mcp/tools/calculator/execute", json={"arguments": parameters})

    assert told.status_code == 200
    assert called.json()["error"]["code"] == "VALIDATION_ERROR"
    # Seconds are for a busy machine; a pattern that goes back and forth takes minutes.
    assert time.perf_counter() - began < 60


def test_masking_a_long_value_takes_no_time() -> None:
    value = {"password": "." * 500_000 + "y", "token": "optional" + "." * 500_000 + "\n"}
    began = time.thread_time()

    masked = mask_json(value)

    assert masked == {"password": "[secret]", "token": "[secret]"}
    assert time.thread_time() - began < 10.0


def test_every_function_that_makes_patterns_is_known_to_the_tester() -> None:
    paths = [path for path in PACKAGE.rglob("*.py") if "import re\n" in path.read_text("utf-8")]

    found = {place for path in paths for place in Source(path).made_when_needed()}

    assert found == set(MADE_WHEN_NEEDED)


def test_no_module_hides_its_patterns_under_another_name() -> None:
    """`from re import compile` or `import regex` would not be found by the tester."""
    hidden = re.compile(r"^\s*+(?:from (?:re|regex) import|import (?:re as|regex))\b", re.MULTILINE)

    assert [
        str(path) for path in PACKAGE.rglob("*.py") if hidden.search(path.read_text("utf-8"))
    ] == []
