"""Kinds of damage that the data does not have.

Each takes a valid call and returns what a model might send instead, or None where the call does
not lend itself to it. `meant` is what the caller wanted; None says that nobody can know, so that
the call must be refused.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from evals.calls import Call
from stratagem.gateway.correction.words import METADATA, normal

__all__ = ["KINDS", "Case", "confusable", "foreign"]


class Case(NamedTuple):
    """A damaged call and what was meant by it."""

    kind: str
    call: Call
    sent: Any
    meant: dict[str, Any] | None


Damage = Callable[[Call, random.Random], tuple[Any, dict[str, Any] | None] | None]
KINDS: Final[dict[str, Damage]] = {}


def _kind(damage: Damage) -> Damage:
    KINDS[damage.__name__.strip("_")] = damage
    return damage


def _schemas(call: Call) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = call.schema.get("properties", {})
    return found


def _given(call: Call, *kinds: str) -> list[str]:
    schemas = _schemas(call)
    return [
        name
        for name in call.arguments
        if schemas[name].get("type") in kinds and not schemas[name].get("enum")
    ]


def _with(call: Call, name: str, value: Any) -> dict[str, Any]:
    return {**call.arguments, name: value}


def _renamed(arguments: dict[str, Any], name: str, other: str) -> dict[str, Any]:
    return {other if key == name else key: value for key, value in arguments.items()}


# --- text instead of an object


@_kind
def _encoded_twice(call: Call, _rng: random.Random) -> Any:
    return json.dumps(json.dumps(call.arguments)), call.arguments


@_kind
def _code_fence(call: Call, _rng: random.Random) -> Any:
    return f"```json\n{json.dumps(call.arguments, indent=2)}\n```", call.arguments


@_kind
def _python_dictionary(call: Call, _rng: random.Random) -> Any:
    return repr(call.arguments), call.arguments


@_kind
def _trailing_commas(call: Call, _rng: random.Random) -> Any:
    text = json.dumps(call.arguments, indent=1)
    return re.sub(r"\n(\s*[}\]])", r",\n\1", text).replace("{,", "{"), call.arguments


@_kind
def _names_without_quotes(call: Call, _rng: random.Random) -> Any:
    pairs = (f"{key}: {json.dumps(value)}" for key, value in call.arguments.items())
    plain = all(re.fullmatch(r"[A-Za-z_]\w*", key) for key in call.arguments)
    return ("{" + ", ".join(pairs) + "}", call.arguments) if plain else None


@_kind
def _values_without_quotes(call: Call, _rng: random.Random) -> Any:
    pairs = (
        f"{key}: {value if isinstance(value, str) else json.dumps(value)}"
        for key, value in call.arguments.items()
    )
    plain = all(re.fullmatch(r"[A-Za-z_]\w*", key) for key in call.arguments)
    return ("{" + ", ".join(pairs) + "}", call.arguments) if plain and _texted(call) else None


@_kind
def _only_the_value(call: Call, _rng: random.Random) -> Any:
    values = list(call.arguments.values())
    alone = len(values) == 1 and isinstance(values[0], str) and values[0]
    return (values[0], call.arguments) if alone else None


def _texted(call: Call) -> bool:
    """Tell whether there are texts, none of which is something else without its quotes."""
    texts = [value for value in call.arguments.values() if isinstance(value, str)]
    return bool(texts) and not any(
        re.fullmatch(r"(?i)true|false|null|none|[-+\d.]+|['\"].*", text) for text in texts
    )


@_kind
def _commented(call: Call, _rng: random.Random) -> Any:
    text = json.dumps(call.arguments, indent=1)
    return text.replace("{\n", "{ // the arguments\n", 1) + " /* done */", call.arguments


@_kind
def _last_brace_missing(call: Call, _rng: random.Random) -> Any:
    return json.dumps(call.arguments)[:-1], call.arguments


@_kind
def _cut_anywhere(call: Call, rng: random.Random) -> Any:
    text = json.dumps(call.arguments)
    return text[: rng.randint(1, len(text) - 1)], call.arguments


@_kind
def _unescaped_quotes(call: Call, _rng: random.Random) -> Any:
    text = json.dumps(call.arguments)
    return (text.replace('\\"', '"'), call.arguments) if '\\"' in text else None


@_kind
def _unescaped_backslashes(call: Call, _rng: random.Random) -> Any:
    text = json.dumps(call.arguments)
    # What stays valid JSON with another meaning cannot be told from what was meant.
    if "\\\\" not in text or "\\\\\\\\" in text:
        return None
    return text.replace("\\\\", "\\"), call.arguments


@_kind
def _single_quotes_by_hand(call: Call, _rng: random.Random) -> Any:
    text = json.dumps(call.arguments, ensure_ascii=False)
    # Quotes within a text would become other quotes, and no one could know.
    return None if '\\"' in text else (text.replace('"', "'"), call.arguments)


@_kind
def _in_prose(call: Call, _rng: random.Random) -> Any:
    return f"I will use {json.dumps(call.arguments)} for this call.", call.arguments


@_kind
def _python_call(call: Call, _rng: random.Random) -> Any:
    if not all(key.isidentifier() for key in call.arguments):
        return None
    listed = ", ".join(f"{key}={value!r}" for key, value in call.arguments.items())
    return f"{re.sub(r'[^A-Za-z0-9_.]', '_', call.tool)}({listed})", call.arguments


@_kind
def _twice_with_two_values(call: Call, _rng: random.Random) -> Any:
    if not call.arguments:
        return None
    name, value = next(iter(call.arguments.items()))
    text = json.dumps(call.arguments)
    other = json.dumps("other" if value != "other" else "another")
    return f"{text[:-1]}, {json.dumps(name)}: {other}}}", None


# --- calls instead of arguments


@_kind
def _openai_call(call: Call, _rng: random.Random) -> Any:
    function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
    return {"id": "call_1", "type": "function", "function": function}, call.arguments


@_kind
def _anthropic_call(call: Call, _rng: random.Random) -> Any:
    return {
        "type": "tool_use", "id": "toolu_1", "name": call.tool, "input": call.arguments,
    }, call.arguments  # fmt: skip


@_kind
def _json_rpc_call(call: Call, _rng: random.Random) -> Any:
    params = {"name": call.tool, "arguments": call.arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, call.arguments


@_kind
def _list_of_one_call(call: Call, _rng: random.Random) -> Any:
    return {"tool_calls": [{"name": call.tool, "args": call.arguments}]}, call.arguments


@_kind
def _list_of_two_calls(call: Call, _rng: random.Random) -> Any:
    one = {"name": call.tool, "arguments": call.arguments}
    return ({"tool_calls": [one, one]}, call.arguments) if call.arguments else None


@_kind
def _named_by_the_tool(call: Call, _rng: random.Random) -> Any:
    return {call.tool: call.arguments}, call.arguments


@_kind
def _list_of_arguments(call: Call, _rng: random.Random) -> Any:
    return [call.arguments], call.arguments


@_kind
def _by_position(call: Call, _rng: random.Random) -> Any:
    return list(call.arguments.values()), call.arguments


@_kind
def _partly_wrapped(call: Call, rng: random.Random) -> Any:
    if len(call.arguments) < 2:
        return None
    names = rng.sample(list(call.arguments), len(call.arguments) // 2)
    inner = {name: call.arguments[name] for name in names}
    rest = {name: value for name, value in call.arguments.items() if name not in inner}
    return {**rest, "arguments": inner}, call.arguments


# --- names


@_kind
def _two_slips(call: Call, rng: random.Random) -> Any:
    sent = call.arguments
    for name in rng.sample(list(sent), min(2, len(sent))):
        other = _slip(name, rng)
        if other in sent or other in _schemas(call):
            return None
        sent = _renamed(sent, name, other)
    return sent, call.arguments


@_kind
def _slip_at_the_beginning(call: Call, rng: random.Random) -> Any:
    if not call.arguments:
        return None
    name = rng.choice(list(call.arguments))
    other = rng.choice("abcdefghijklmnoprstuvw") + name[1:]
    return (
        None if other in _schemas(call) else (_renamed(call.arguments, name, other), call.arguments)
    )


def _slip(name: str, rng: random.Random) -> str:
    at = rng.randrange(1, max(2, len(name)))
    letter = rng.choice("aeiorstln")
    return rng.choice(
        (
            name[:at] + name[at + 1 :],
            name[:at] + letter + name[at:],
            name[:at] + letter + name[at + 1 :],
            name[: at - 1] + name[at : at + 1] + name[at - 1 : at] + name[at + 1 :],
        )
    )


@_kind
def _screaming_names(call: Call, _rng: random.Random) -> Any:
    sent = {key.upper(): value for key, value in call.arguments.items()}
    clash = len(sent) < len(call.arguments) or not sent
    return None if clash else (sent, call.arguments)


@_kind
def _spaced_names(call: Call, _rng: random.Random) -> Any:
    sent = {f" {key.replace('_', ' ').title()} ": value for key, value in call.arguments.items()}
    return (sent, call.arguments) if len(sent) == len(call.arguments) else None


@_kind
def _plural_or_singular(call: Call, rng: random.Random) -> Any:
    if not call.arguments:
        return None
    name = rng.choice(list(call.arguments))
    other = name[:-1] if name.endswith("s") else f"{name}s"
    return (
        None if other in _schemas(call) else (_renamed(call.arguments, name, other), call.arguments)
    )


@_kind
def _abbreviated(call: Call, rng: random.Random) -> Any:
    long = [name for name in call.arguments if len(name) > 6]
    if not long:
        return None
    name = rng.choice(long)
    other = name[: rng.choice((3, 4, 5))]
    return (
        None if other in _schemas(call) else (_renamed(call.arguments, name, other), call.arguments)
    )


_SYNONYMS: Final = {
    "location": "city", "city": "location", "query": "search", "limit": "max_results",
    "company": "organization", "name": "title", "year": "season", "radius": "distance",
    "amount": "sum", "message": "text", "date": "day", "genre": "category", "unit": "units_of",
    "language": "lang", "user_id": "account", "type": "kind", "duration": "length",
    "country": "nation", "movie": "film", "start_date": "from_date", "number": "n",
}  # fmt: skip


@_kind
def _synonym(call: Call, rng: random.Random) -> Any:
    known = [name for name in call.arguments if name in _SYNONYMS]
    if not known:
        return None
    name = rng.choice(known)
    other = _SYNONYMS[name]
    return (
        None if other in _schemas(call) else (_renamed(call.arguments, name, other), call.arguments)
    )


@_kind
def _given_twice_alike(call: Call, rng: random.Random) -> Any:
    two = [name for name in call.arguments if "_" in name]
    if not two:
        return None
    name = rng.choice(two)
    return {**call.arguments, name.replace("_", "-"): call.arguments[name]}, call.arguments


@_kind
def _given_twice_differently(call: Call, rng: random.Random) -> Any:
    two = [name for name in _given(call, "string") if "_" in name and call.arguments[name] != "x"]
    if not two:
        return None
    name = rng.choice(two)
    return {**call.arguments, name.replace("_", "-"): "x"}, None


@_kind
def _number_of_a_name_changed(call: Call, rng: random.Random) -> Any:
    numbered = [name for name in call.arguments if re.search(r"\d", name)]
    if not numbered:
        return None
    name = rng.choice(numbered)
    other = re.sub(r"\d+", lambda found: str(int(found[0]) + 7), name)
    return (_renamed(call.arguments, name, other), None) if other not in _schemas(call) else None


# --- depth


def _inner(call: Call) -> list[str]:
    schemas = _schemas(call)
    return [
        name
        for name, value in call.arguments.items()
        if isinstance(value, dict) and value and schemas[name].get("properties")
    ]


@_kind
def _flattened(call: Call, rng: random.Random) -> Any:
    inner = _inner(call)
    if not inner:
        return None
    name = rng.choice(inner)
    rest = {key: value for key, value in call.arguments.items() if key != name}
    if set(rest) & set(call.arguments[name]) or set(call.arguments[name]) & set(_schemas(call)):
        return None
    return {**rest, **call.arguments[name]}, call.arguments


@_kind
def _dotted(call: Call, rng: random.Random) -> Any:
    inner = _inner(call)
    if not inner:
        return None
    name = rng.choice(inner)
    rest = {key: value for key, value in call.arguments.items() if key != name}
    dotted = {f"{name}.{key}": value for key, value in call.arguments[name].items()}
    return {**rest, **dotted}, call.arguments


@_kind
def _pushed_inside(call: Call, rng: random.Random) -> Any:
    inner = _inner(call)
    if not inner or len(call.arguments) < 2:
        return None
    name = rng.choice(inner)
    other = rng.choice([key for key in call.arguments if key != name])
    if other in call.arguments[name] or other in _schemas(call)[name]["properties"]:
        return None
    sent = {key: value for key, value in call.arguments.items() if key != other}
    sent[name] = {**call.arguments[name], other: call.arguments[other]}
    return sent, call.arguments


@_kind
def _damaged_inside(call: Call, rng: random.Random) -> Any:
    inner = _inner(call)
    if not inner:
        return None
    name = rng.choice(inner)
    sent = {
        key.upper(): str(value) if type(value) in {int, float} else value
        for key, value in call.arguments[name].items()
    }
    return _with(call, name, json.dumps(sent)), call.arguments


# --- types


@_kind
def _fraction_for_integer(call: Call, rng: random.Random) -> Any:
    names = _given(call, "integer")
    if not names:
        return None
    value = rng.choice((3.7, "3.7", 0.5, "12.25"))
    return _with(call, rng.choice(names), value), None


@_kind
def _number_with_unit(call: Call, rng: random.Random) -> Any:
    names = _given(call, "integer", "number")
    if not names:
        return None
    name = rng.choice(names)
    return _with(call, name, f"{call.arguments[name]} {rng.choice(('kg', 'km', 'USD', '%'))}"), (
        call.arguments
    )


@_kind
def _grouped_digits(call: Call, rng: random.Random) -> Any:
    names = [name for name in _given(call, "integer", "number") if call.arguments[name] >= 1000]
    if not names:
        return None
    name = rng.choice(names)
    return _with(call, name, f"{call.arguments[name]:,}"), call.arguments


_WORDS: Final = {1: "one", 2: "two", 3: "three", 5: "five", 7: "seven", 10: "ten", 12: "twelve"}


@_kind
def _number_as_word(call: Call, rng: random.Random) -> Any:
    names = [n for n in _given(call, "integer", "number") if call.arguments[n] in _WORDS]
    if not names:
        return None
    name = rng.choice(names)
    return _with(call, name, _WORDS[int(call.arguments[name])]), call.arguments


@_kind
def _nonsense_for_number(call: Call, rng: random.Random) -> Any:
    names = _given(call, "integer", "number", "boolean")
    if not names:
        return None
    value: Any = rng.choice(
        ("", " ", "soon", "abc", "1-2", "1/2", "--", "NaN", {}, [], "2 or 3", "12abc34")
    )
    return _with(call, rng.choice(names), value), None


@_kind
def _object_for_text(call: Call, rng: random.Random) -> Any:
    names = _given(call, "string")
    return (_with(call, rng.choice(names), {"a": 1, "b": 2}), None) if names else None


@_kind
def _list_for_text(call: Call, rng: random.Random) -> Any:
    names = _given(call, "string")
    return (_with(call, rng.choice(names), ["one", "two"]), None) if names else None


@_kind
def _boolean_as_number(call: Call, rng: random.Random) -> Any:
    names = _given(call, "boolean")
    if not names:
        return None
    name = rng.choice(names)
    return _with(call, name, int(call.arguments[name])), call.arguments


@_kind
def _boolean_as_word(call: Call, rng: random.Random) -> Any:
    names = _given(call, "boolean")
    if not names:
        return None
    name = rng.choice(names)
    word = ("enabled", "t", "active") if call.arguments[name] else ("disabled", "f", "inactive")
    return _with(call, name, rng.choice(word)), call.arguments


@_kind
def _null_as_text(call: Call, rng: random.Random) -> Any:
    required = call.schema.get("required", ())
    free = [n for n in _schemas(call) if n not in call.arguments and n not in required]
    free = [n for n in free if _schemas(call)[n].get("type") in {"integer", "number", "boolean"}]
    if not free:
        return None
    return {**call.arguments, rng.choice(free): rng.choice(("null", "None"))}, call.arguments


@_kind
def _texts_in_a_list_of_numbers(call: Call, rng: random.Random) -> Any:
    names = [
        n for n in _given(call, "array") if all(type(v) in {int, float} for v in call.arguments[n])
    ]
    if not names:
        return None
    name = rng.choice(names)
    return _with(call, name, [str(item) for item in call.arguments[name]]), call.arguments


@_kind
def _value_in_an_object(call: Call, rng: random.Random) -> Any:
    names = _given(call, "string", "integer", "number", "boolean")
    if not names:
        return None
    name = rng.choice(names)
    return _with(call, name, {"value": call.arguments[name]}), call.arguments


# --- lists


def _texts(call: Call) -> list[str]:
    return [
        name
        for name in _given(call, "array")
        if call.arguments[name] and all(isinstance(item, str) for item in call.arguments[name])
    ]


def _joined(separator: str) -> Damage:
    def damage(call: Call, rng: random.Random) -> Any:
        names = _texts(call)
        if not names:
            return None
        name = rng.choice(names)
        return _with(call, name, separator.join(call.arguments[name])), call.arguments

    return damage


KINDS["joined_by_semicolons"] = _joined("; ")
KINDS["joined_by_bars"] = _joined(" | ")
KINDS["joined_by_lines"] = _joined("\n")
KINDS["joined_by_commas"] = _joined(", ")
KINDS["joined_by_bare_commas"] = _joined(",")

_ONE_ELEMENT: Final = (
    "Los Angeles, CA", "Portland, Oregon", "Paris, France", "Doe, Jane", "Hello, world",
    "March 5, 2024", "The Good, the Bad and the Ugly", "Smith & Sons, Inc.", "Washington, D.C.",
    "Earth, Wind & Fire", "2,3-dimethylbutane", "1,000", "123 Main Street, Springfield",
    "Chennai, Tamil Nadu, India", "Please wait, then try again", "Crouching Tiger, Hidden Dragon",
    "Martin Luther King, Jr.", "f(x, y)", "https://example.com/a,b", "Yes, please", "10,5",
    "if x > 0; then y", "Sales | Marketing team of the northern region and others",
    "Jane Doe, PhD", "Springfield, Illinois, USA", "To be, or not to be",
)  # fmt: skip

_ATTRIBUTES: Final = (
    "ingredient", "size", "amenit", "diet", "metric", "permission", "type", "specialization",
)  # fmt: skip


@_kind
def _one_element_with_a_separator(call: Call, rng: random.Random) -> Any:
    names = _texts(call)
    if not names:
        return None
    name, text = rng.choice(names), rng.choice(_ONE_ELEMENT)
    if any(word in name for word in _ATTRIBUTES):
        # Nobody asks for a person among the ingredients.
        return None
    return _with(call, name, text), _with(call, name, [text])


@_kind
def _joined_with_and(call: Call, rng: random.Random) -> Any:
    names = [name for name in _texts(call) if len(call.arguments[name]) > 1]
    if not names:
        return None
    name = rng.choice(names)
    *front, last = call.arguments[name]
    return _with(call, name, f"{', '.join(front)} and {last}"), call.arguments


# --- listed values


def _listed(call: Call) -> list[str]:
    schemas = _schemas(call)
    return [
        name
        for name, value in call.arguments.items()
        if schemas[name].get("enum") and isinstance(value, str) and len(value) > 2
    ]


@_kind
def _choice_misspelt(call: Call, rng: random.Random) -> Any:
    names = _listed(call)
    if not names:
        return None
    name = rng.choice(names)
    other = _slip(call.arguments[name], rng)
    return (
        None
        if other in _schemas(call)[name]["enum"]
        else (_with(call, name, other), call.arguments)
    )


@_kind
def _choice_abbreviated(call: Call, rng: random.Random) -> Any:
    names = _listed(call)
    if not names:
        return None
    name = rng.choice(names)
    other = call.arguments[name][: rng.choice((1, 2, 3))].strip()
    return (
        None
        if other in _schemas(call)[name]["enum"]
        else (_with(call, name, other), call.arguments)
    )


@_kind
def _choice_from_elsewhere(call: Call, rng: random.Random) -> Any:
    names = _listed(call)
    value = rng.choice(("other", "none of these", "all", "purple", "standard", "custom", "auto"))
    if not names:
        return None
    name = rng.choice(names)
    return None if value in _schemas(call)[name]["enum"] else (_with(call, name, value), None)


# --- several at once


@_kind
def _several_at_once(call: Call, rng: random.Random) -> Any:
    names = _given(call, "integer", "number", "boolean")
    if not names:
        return None
    sent = {
        key.upper() if rng.random() < 0.5 else key: str(value) if key in names else value
        for key, value in call.arguments.items()
    }
    if len(sent) < len(call.arguments):
        return None
    return {"name": call.tool, "arguments": json.dumps({**sent, "reasoning": "needed"})}, (
        call.arguments
    )


def confusable(call: Call, rng: random.Random, names: list[str]) -> Any:
    """Give a parameter the name of another thing that is spelt almost alike."""
    near = [
        (name, other)
        for name in call.arguments
        for other in names
        if normal(other) not in {normal(known) for known in _schemas(call)} and _nearly(name, other)
    ]
    if not near:
        return None
    name, other = rng.choice(near)
    return _renamed(call.arguments, name, other), None


def _nearly(name: str, other: str) -> bool:
    """Tell whether two names of the same length differ in one or two letters."""
    one, two = (re.sub(r"[\W_]", "", text).casefold() for text in (name, other))
    if one == two or len(one) != len(two) or one.rstrip("s") == two.rstrip("s"):
        return False
    return sum(a != b for a, b in zip(one, two, strict=True)) <= (1 if len(one) < 9 else 2)


def foreign(call: Call, rng: random.Random, names: list[str]) -> Any:
    """Add a parameter of another tool, which says something that this one cannot do."""
    other = rng.choice([name for name in names if normal(name) not in METADATA])
    value = rng.choice((5, "premium", True, ["a"], 0.5))
    return None if other in _schemas(call) else ({**call.arguments, other: value}, None)
