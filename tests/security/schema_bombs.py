"""Schemas and arguments that ask for far more work than they have bytes, and what each costs.

`python -m tests.security.schema_bombs` prints a table: each bomb is registered and called in a
process of its own, through every operation that reads schemas.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import stratagem
from stratagem.errors import StratagemError

HOOK = {"type": "webhook", "url": "https://127.0.0.1/"}
# More than any of them takes; the first release took 22 GB.
MEGABYTES_MAX = 200
SECONDS_MAX = 10.0


class Bomb(NamedTuple):
    """A schema, arguments for it, and whether the schema can be registered."""

    schema: dict[str, Any]
    arguments: Any
    registered: bool = True


def doubled(keyword: str, levels: int = 30) -> dict[str, Any]:
    """Return a schema each of whose definitions refers twice to the next."""
    definitions: dict[str, Any] = {
        f"d{level}": {keyword: [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "string"}
    return {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/d0"}},
        "$defs": definitions,
    }


def _deep(levels: int, end: Any) -> Any:
    for _ in range(levels):
        end = {"x": end}
    return end


def _of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


def _again(keyword: str) -> dict[str, Any]:
    return {keyword: [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}


def _recursive(keyword: str) -> dict[str, Any]:
    node = {"additionalProperties": False, "properties": {"x": _again(keyword)}}
    return {"type": "object", "properties": {"x": _again(keyword)}, "$defs": {"n": node}}


def _by_turns(count: int) -> dict[str, Any]:
    """Some definitions, each of which refers to all of them one level further inside."""
    again = {"allOf": [{"$ref": f"#/$defs/n{at}"} for at in range(count)]}
    node = {"additionalProperties": False, "properties": {"x": again}}
    definitions = {f"n{at}": node for at in range(count)}
    return {"type": "object", "properties": {"x": again}, "$defs": definitions}


def _conditional() -> dict[str, Any]:
    """A definition that refers to itself in both arms of a condition, and one level inside."""
    again = {
        "if": {"minProperties": 2},
        "then": {"$ref": "#/$defs/n"},
        "else": {"$ref": "#/$defs/n"},
    }
    node = {"additionalProperties": False, "properties": {"x": again}}
    return {"type": "object", "properties": {"x": again}, "$defs": {"n": node}}


def _dynamic() -> dict[str, Any]:
    both = [{"$dynamicRef": "#n"}, {"$dynamicRef": "#n"}]
    return {"$id": "https://x/", "$dynamicAnchor": "n", "properties": {"x": {"allOf": both}}}


def _through_properties() -> dict[str, Any]:
    """Each level refers twice to the next, one level further inside the arguments."""
    definitions: dict[str, Any] = {
        f"d{level}": {"allOf": [{"properties": {"x": {"$ref": f"#/$defs/d{level + 1}"}}}] * 2}
        for level in range(30)
    }
    definitions["d30"] = {"type": "string"}
    return {"$ref": "#/$defs/d0", "$defs": definitions}


def _chain(links: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {
        f"d{link}": {"$ref": f"#/$defs/d{link + 1}"} for link in range(links)
    }
    definitions[f"d{links}"] = {"properties": {"x": {"$ref": "#/$defs/d0"}}}
    return {"$ref": "#/$defs/d0", "$defs": definitions}


def _wide() -> dict[str, Any]:
    """Three levels of a thousand parameters each, of which every one holds the next level."""
    definitions = {
        f"d{level}": {
            "type": "object",
            "properties": {f"p{at}": {"$ref": f"#/$defs/d{level + 1}"} for at in range(1_000)},
        }
        for level in range(3)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, "d3": {"type": "object"}}}


BOMBS: dict[str, Callable[[], Bomb]] = {
    "allOf, 30 levels": lambda: Bomb(doubled("allOf"), {"a": 1}, registered=False),
    "anyOf, 30 levels": lambda: Bomb(doubled("anyOf"), {"a": 1}, registered=False),
    "oneOf, 30 levels": lambda: Bomb(doubled("oneOf"), {"a": 1}, registered=False),
    "allOf, just allowed": lambda: Bomb(doubled("allOf", 9), {"a": 1}),
    "anyOf, just allowed": lambda: Bomb(doubled("anyOf", 9), {"a": 1}),
    "properties, 30 levels": lambda: Bomb(_through_properties(), _deep(30, 1), registered=False),
    "dependentSchemas": lambda: Bomb(
        {"dependentSchemas": {f"k{at}": {"required": ["z"]} for at in range(1_500)}},
        {f"k{at}": 1 for at in range(1_500)},
    ),
    "refers to itself": lambda: Bomb({"$ref": "#"}, {}, registered=False),
    "anyOf, recursive": lambda: Bomb(_recursive("anyOf"), _deep(40, {"z": 1})),
    "allOf, recursive": lambda: Bomb(_recursive("allOf"), _deep(40, {"z": 1})),
    "allOf, by turns": lambda: Bomb(_by_turns(2), _deep(40, {"z": 1})),
    "allOf, many by turns": lambda: Bomb(_by_turns(6), _deep(40, {"z": 1})),
    "conditional, recursive": lambda: Bomb(_conditional(), _deep(40, {"z": 1})),
    "recursive, in text": lambda: Bomb(_recursive("anyOf"), json.dumps(_deep(40, {"z": 1}))),
    "$dynamicRef": lambda: Bomb(_dynamic(), _deep(40, {"z": 1})),
    "references, 2,000 long": lambda: Bomb(_chain(2_000), _deep(60, 1), registered=False),
    "references, 60 long": lambda: Bomb(_chain(60), _deep(60, 1)),
    "elsewhere": lambda: Bomb({"$ref": "http://127.0.0.1:9/x"}, {}, registered=False),
    "a million errors": lambda: Bomb(_of({"items": {"type": "string"}}), {"a": [1] * 1_000_000}),
    "errors of a large value": lambda: Bomb(
        {"allOf": [{"required": [f"x{at}"]} for at in range(300)]}, {"a": "x" * 3_000_000}
    ),
    "errors of long names": lambda: Bomb(
        {"propertyNames": {"maxLength": 5}}, {f"{'x' * 600}{at}": 1 for at in range(3_000)}
    ),
    "unexpected names": lambda: Bomb(
        {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
        {f"{'x' * 600}{at}": 1 for at in range(3_000)},
    ),
    "enum of objects": lambda: Bomb(
        _of({"items": {"enum": [{"x": "y", "k": at} for at in range(8_000)]}}),
        {"a": [{"x": "y", "k": -1}] * 20_000},
        registered=False,
    ),
    "enum of texts": lambda: Bomb(
        _of({"items": {"enum": [f"s{at}" for at in range(15_000)]}}), {"a": ["z"] * 20_000}
    ),
    "pattern, repetitions": lambda: Bomb(
        _of({"pattern": "(([ab]{1,50}){1,50}){1,10}c"}), {"a": "ab" * 10_000}, registered=False
    ),
    "pattern, long text": lambda: Bomb(
        _of({"pattern": "[ab]*a[ab]{200}c"}), {"a": "abbab" * 200_000}
    ),
    "pattern, look-around": lambda: Bomb(
        _of({"pattern": "(?=a)[ab]*a[ab]{500}c"}), {"a": "abbab" * 3_000}
    ),
    "pattern, catastrophic": lambda: Bomb(_of({"pattern": "^(a+)+$"}), {"a": "a" * 50_000 + "!"}),
    "patternProperties": lambda: Bomb(
        {"patternProperties": {f"^a{at}.*x": {"type": "string"} for at in range(1_500)}},
        {f"a{at}": 1 for at in range(20_000)},
    ),
    "format": lambda: Bomb(
        _of({"items": {"format": "regex"}}), {"a": ["((a{1,1000}){1,1000}){1,1000}"] * 1_000}
    ),
    "multipleOf": lambda: Bomb(_of({"multipleOf": 1e-300}), {"a": 1e300}),
    "uniqueItems": lambda: Bomb(
        _of({"uniqueItems": True}), {"a": [{"k": at} for at in range(20_000)] + [{"k": 1}]}
    ),
    "unevaluatedProperties": lambda: Bomb(
        {
            "allOf": [{"properties": {f"k{at}": True}} for at in range(800)],
            "unevaluatedProperties": False,
        },
        {f"n{at}": 1 for at in range(5_000)},
    ),
    "deep": lambda: Bomb(_of({"type": "string"}), {"a": _deep(60, 1)}),
    "many parameters": lambda: Bomb(_wide(), {"q1": {"q2": 1}}),
}


def operations(name: str, arguments: Any) -> dict[str, dict[str, Any]]:
    """Return what reads the tool's schema, each with what it is called with."""
    given = arguments if isinstance(arguments, dict) else {"text": arguments}
    return {
        "tool_execute": {"toolName": name, "arguments": arguments},
        "error_diagnose": {"error": "it failed", "toolName": name, "parameters": given},
        "tools_recommend_on_error": {
            "failedTool": name,
            "errorMessage": "the arguments do not fit",
            "failedParameters": given,
        },
        "tools_validate": {"toolNames": [name]},
        "tools_recommend": {"intent": "use the bomb"},
        "tools_discover": {"includeSchema": True},
        "tools_compare": {"toolNames": [name, "calculator"], "intent": "use the bomb"},
        "tool_help": {"toolName": name},
        "workflow_plan": {"goal": "use the bomb, then the calculator"},
        "provider_tools": {"provider": "gemini"},
        "tools_list": {},
        "tool_get": {"toolId": name},
        "auto_correction_test": {
            "testCases": [{"toolName": name, "parameters": given}],
            "testSuite": "comprehensive",
        },
    }


def run(name: str) -> dict[str, Any]:
    """Register and call a bomb in this process; return what became of it."""
    bomb = BOMBS[name]()
    tool = {
        "name": "bomb",
        "description": "Use the bomb.",
        "inputSchema": bomb.schema,
        "handler": HOOK,
    }
    outcome: dict[str, Any] = {
        "bytes": len(json.dumps(bomb.schema)),
        "given": len(json.dumps(bomb.arguments)),
        "ms": {},
        "codes": {},
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        stratagem.open(f"{folder}/bombs.db", embedder="none") as db,
    ):
        db.call("tool_execute", {"toolName": "calculator", "arguments": {"expression": "1+1"}})
        outcome["before"] = _megabytes()
        steps = {"tool_register": tool, **operations("bomb", bomb.arguments)}
        for operation, given in steps.items():
            began = time.monotonic()
            try:
                db.call(operation, given)
                code = "ok"
            except StratagemError as error:
                code = error.code
                outcome.setdefault("details", {})[operation] = {
                    "message": error.message[:300],
                    "hint": error.hint,
                    **{key: error.details.get(key) for key in ("field", "limit", "pointer")},
                }
                outcome["longest"] = max(
                    outcome.get("longest", 0), len(json.dumps(error.envelope(), default=str))
                )
            outcome["codes"][operation] = code
            outcome["ms"][operation] = round((time.monotonic() - began) * 1000, 1)
            if operation == "tool_register" and code != "ok":
                break
    outcome["peak"] = _megabytes()
    return outcome


def _megabytes() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def apart(name: str) -> dict[str, Any]:
    """Run a bomb in a process of its own, which may take so much memory and time only."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.security.schema_bombs", name],
        capture_output=True,
        check=False,
        timeout=60,
    )
    if done.returncode:
        return {"died": done.returncode, "said": done.stderr.decode()[-500:]}
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _print_table() -> None:
    _say(f"{'bomb':<26}{'bytes':>8}  {'register':<18}{'call':<18}{'slowest':<24}{'ms':>8}{'MB':>7}")
    for name in BOMBS:
        outcome = apart(name)
        if "died" in outcome:
            _say(f"{name:<26} died: {outcome}")
            continue
        slowest = max(outcome["ms"], key=outcome["ms"].__getitem__)
        codes = outcome["codes"]
        _say(
            f"{name:<26}{outcome['bytes']:>8}  {codes['tool_register']:<18}"
            f"{codes.get('tool_execute', '-'):<18}{slowest:<24}{outcome['ms'][slowest]:>8.0f}"
            f"{outcome['peak'] - outcome['before']:>7.0f}"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        _say(json.dumps(run(sys.argv[1])))
    else:
        _print_table()
