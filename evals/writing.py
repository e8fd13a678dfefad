"""More kinds of damage: calls written in other ways than as JSON, in pieces, or almost right.

The texts that calls are made of have commas, colons, quotes and nothing at all in them on purpose:
whatever a reader takes for the end of a value stands inside some value too.
"""

from __future__ import annotations

import html
import json
import random
import re
import shlex
from collections.abc import Callable
from typing import Any, Final

from evals.calls import Call
from evals.damage import Damage

__all__ = ["KINDS"]

KINDS: Final[dict[str, Damage]] = {}


def _kind(damage: Damage) -> Damage:
    KINDS[damage.__name__.strip("_")] = damage
    return damage


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _flat(call: Call) -> bool:
    values = call.arguments.values()
    # Quotes of its own would be taken for those of the text.
    quoted = any(isinstance(value, str) and value[:1] in {'"', "'", "`"} for value in values)
    return not quoted and not any(isinstance(value, dict | list) for value in values)


def _pairs(between: str, joint: str) -> Damage:
    """Return the damage of writing names and values, one after another, without quotes."""

    def damage(call: Call, _rng: random.Random) -> Any:
        if not call.arguments or not _flat(call):
            return None
        pairs = [f"{name}{joint}{_shown(value)}" for name, value in call.arguments.items()]
        return between.join(pairs), call.arguments

    return damage


KINDS["lines_of_pairs"] = _pairs("\n", ": ")
KINDS["lines_of_assignments"] = _pairs("\n", " = ")
KINDS["pairs_with_commas"] = _pairs(", ", "=")
KINDS["pairs_with_semicolons"] = _pairs("; ", ": ")
KINDS["pairs_with_spaces"] = _pairs(" ", "=")
KINDS["query_string"] = _pairs("&", "=")


def _braced(call: Call, _rng: random.Random) -> Any:
    if not call.arguments or not _flat(call):
        return None
    pairs = [f"{name}: {_shown(value)}" for name, value in call.arguments.items()]
    return "{" + ", ".join(pairs) + "}", call.arguments


KINDS["braces_without_quotes"] = _braced


def _outlined(value: Any, indent: str) -> str:
    if isinstance(value, dict) and value:
        return "".join(f"\n{indent}{name}:{_after(item, indent)}" for name, item in value.items())
    if isinstance(value, list) and value:
        return "".join(f"\n{indent}-{_after(item, indent)}" for item in value)
    return f" {_shown(value)}"


def _after(value: Any, indent: str) -> str:
    return _outlined(value, indent + "  ")


@_kind
def _outline(call: Call, _rng: random.Random) -> Any:
    quoted = any(isinstance(v, str) and v[:1] in {'"', "'"} for v in call.arguments.values())
    if not call.arguments or quoted:
        return None
    return _outlined(call.arguments, "").strip(), call.arguments


@_kind
def _flags(call: Call, rng: random.Random) -> Any:
    if not call.arguments or not _flat(call):
        return None
    joint = rng.choice((" ", "="))
    words = [
        f"--{name.replace('_', '-')}{joint}{shlex.quote(_shown(value))}"
        for name, value in call.arguments.items()
    ]
    return " ".join(words), call.arguments


def _elements(value: dict[str, Any]) -> str:
    return "\n".join(f"<{name}>{_element(item)}</{name}>" for name, item in value.items())


def _element(value: Any) -> str:
    return _elements(value) if isinstance(value, dict) else html.escape(_shown(value), quote=False)


def _marked_up(around: Callable[[str, Call], str]) -> Damage:
    def damage(call: Call, _rng: random.Random) -> Any:
        names = [*call.arguments]
        if not names or not all(re.fullmatch(r"[A-Za-z_]\w*", name) for name in names):
            return None
        return around(_elements(call.arguments), call), call.arguments

    return damage


KINDS["elements"] = _marked_up(lambda text, _call: text)
KINDS["elements_wrapped"] = _marked_up(lambda text, _call: f"<arguments>\n{text}\n</arguments>")
KINDS["elements_of_the_tool"] = _marked_up(lambda text, call: f"<{call.tool}>{text}</{call.tool}>")


def _around(before: str, after: str = "") -> Damage:
    def damage(call: Call, _rng: random.Random) -> Any:
        return f"{before}{json.dumps(call.arguments)}{after}", call.arguments

    return damage


KINDS["label_before"] = _around("json\n")
KINDS["tags_around"] = _around("<tool_call>\n", "\n</tool_call>")
KINDS["fence_after_a_phrase"] = _around("Here is the function call:\n```json\n", "\n```")
KINDS["input_of_an_action"] = _around("Action Input: ")
KINDS["byte_order_mark"] = _around("\ufeff")
KINDS["taken_back"] = lambda call, _rng: (f"Do not run this: {json.dumps(call.arguments)}", None)


@_kind
def _quotes_escaped(call: Call, _rng: random.Random) -> Any:
    return json.dumps(json.dumps(call.arguments))[1:-1], call.arguments


@_kind
def _arrows_for_colons(call: Call, _rng: random.Random) -> Any:
    pairs = [f"{json.dumps(n)} => {json.dumps(v)}" for n, v in call.arguments.items()]
    return "{" + ", ".join(pairs) + "}", call.arguments


@_kind
def _called_with_json(call: Call, _rng: random.Random) -> Any:
    return f"{call.tool}({json.dumps(call.arguments)})", call.arguments


# --- in pieces


@_kind
def _names_and_values(call: Call, rng: random.Random) -> Any:
    if not call.arguments:
        return None
    key = rng.choice(("name", "key"))
    sent = [{key: name, "value": value} for name, value in call.arguments.items()]
    return (sent if rng.random() < 0.5 else {"arguments": sent}), call.arguments


@_kind
def _one_object_each(call: Call, _rng: random.Random) -> Any:
    if len(call.arguments) < 2:
        return None
    return [{name: value} for name, value in call.arguments.items()], call.arguments


@_kind
def _values_with_their_types(call: Call, _rng: random.Random) -> Any:
    kinds = {str: "string", int: "integer", float: "number", bool: "boolean"}
    typed = all("type" in schema for schema in call.schema.get("properties", {}).values())
    if not call.arguments or not _flat(call) or None in call.arguments.values() or not typed:
        return None
    return {
        name: {"type": kinds[type(value)], "value": value} for name, value in call.arguments.items()
    }, call.arguments


@_kind
def _all_in_the_first(call: Call, _rng: random.Random) -> Any:
    schemas = call.schema.get("properties", {})
    first = next(iter(call.arguments), None)
    if first is None or len(call.arguments) < 2 or schemas[first].get("type") != "string":
        return None
    return {first: call.arguments}, call.arguments


def _lists(call: Call) -> list[str]:
    return [
        name for name, value in call.arguments.items() if isinstance(value, list) and len(value) > 1
    ]


@_kind
def _elements_by_number(call: Call, rng: random.Random) -> Any:
    names = _lists(call)
    if not names:
        return None
    name = rng.choice(names)
    rest = {key: value for key, value in call.arguments.items() if key != name}
    if rng.random() < 0.5:
        numbered = {str(index): item for index, item in enumerate(call.arguments[name])}
        return {**rest, name: numbered}, call.arguments
    numbered = {f"{name}[{index}]": item for index, item in enumerate(call.arguments[name])}
    return {**rest, **numbered}, call.arguments


@_kind
def _list_in_a_list(call: Call, rng: random.Random) -> Any:
    schemas = call.schema.get("properties", {})
    names = [name for name in _lists(call) if "type" in schemas[name].get("items", {})]
    if not names:
        return None
    name = rng.choice(names)
    return {**call.arguments, name: [call.arguments[name]]}, call.arguments


# --- almost right


def _listed(call: Call, kind: type) -> list[str]:
    schemas = call.schema.get("properties", {})
    return [
        name
        for name, value in call.arguments.items()
        if schemas[name].get("enum") and type(value) is kind and value
    ]


@_kind
def _sign_before_a_choice(call: Call, rng: random.Random) -> Any:
    names = _listed(call, str)
    if not names:
        return None
    name = rng.choice(names)
    return {**call.arguments, name: f"{rng.choice('-+!~')}{call.arguments[name]}"}, None


@_kind
def _choices_joined_with_and(call: Call, rng: random.Random) -> Any:
    schemas = call.schema.get("properties", {})
    names = [name for name in _lists(call) if schemas[name].get("items", {}).get("enum")]
    if not names:
        return None
    name = rng.choice(names)
    *front, last = map(str, call.arguments[name])
    return {**call.arguments, name: f"{', '.join(front)} and {last}"}, call.arguments


@_kind
def _number_in_quotes(call: Call, rng: random.Random) -> Any:
    names = [name for name, value in call.arguments.items() if type(value) in {int, float}]
    if not names:
        return None
    name, quote = rng.choice(names), rng.choice("\"'`")
    return {**call.arguments, name: f"{quote}{call.arguments[name]}{quote}"}, call.arguments
