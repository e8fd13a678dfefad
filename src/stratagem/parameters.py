"""The parameters of operations: how they are described, and how arguments are checked.

A parameter is described once, where a service method (or the dataclass that it takes) declares
it: its type, its default and, by `Param` in an `Annotated` type, its words and bounds. From these
`scripts/generate.py` writes the JSON Schemas in `stratagem/schemas`. At run time arguments are
checked against these schemas alone, so that nothing has to build models when it is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING as _NO_DEFAULT
from dataclasses import dataclass, field, fields
from functools import cache
from keyword import iskeyword
from math import isfinite
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import orjson

from stratagem import limits
from stratagem.errors import InvalidInput, MissingRequired, StratagemError, ValidationFailed

__all__ = [
    "ADVERTISED",
    "ALIASES",
    "COUNT_ALIASES",
    "MISSING",
    "OWN_KEYWORDS",
    "PLURAL",
    "QUIET",
    "STRICT",
    "TIME",
    "UNLISTED",
    "AsOf",
    "BranchName",
    "Cursor",
    "Input",
    "MaxChars",
    "Namespace",
    "Param",
    "RequestId",
    "Schema",
    "TransactionId",
    "check",
    "param",
    "python_name",
    "wire_name",
]

Schema = Mapping[str, Any]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


# The default of a parameter that can be left out, and for which None is a value like any other.
MISSING: Final[Any] = _Missing()

# Keywords that steer the check and are not shown to callers.
STRICT: Final = "x-strict"
QUIET: Final = "x-quiet"
ADVERTISED: Final = "x-advertised"
ALIASES: Final = "x-aliases"
PLURAL: Final = "x-plural"
TIME: Final = "x-time"
UNLISTED: Final = "x-unlisted"
OWN_KEYWORDS: Final = frozenset({STRICT, QUIET, ADVERTISED, ALIASES, PLURAL, TIME, UNLISTED})

_SHOWN_CHARS_MAX: Final = 100
# The similarity from which on a word may be a slip for an allowed one: `remove` is not `restore`.
_NEAR_CHOICE: Final = 0.7
# The same for names, and for those that may as well be arguments of a tool.
_NEAR_NAME: Final = 0.6
_SURE_NAME: Final = 0.8
# The parameter that holds what a tool is called with.
_ARGUMENTS: Final = "arguments"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "1", "yes", "on", 1), True),
    **dict.fromkeys(("false", "0", "no", "off", 0), False),
}
_TYPE_WORDS: Final = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


# By identity: its mappings have no hash, and a union of annotated types needs one.
@dataclass(frozen=True, slots=True, eq=False)
class Param:
    """The description and bounds of a parameter, beside its type and default.

    `description` stands wherever the parameter is explained. `quiet`: the list of tools that a
    model is shown leaves it out, because the name says enough and each conversation pays for it.
    `unlisted`: the list that agents are shown has not even the parameter; programs may give it.
    `strict` takes no text in the place of a number. `advertised` are keywords for the schema that
    callers see and that the service itself checks, such as an `enum` in any case. `schema`
    replaces what would be made from the type. `time`: in the SDK a moment may be a `datetime` or a
    `date`, a duration a `timedelta`, and so may be those of items. `aliases` are names that models
    send for it: no schema that callers see lists them, and a call that uses one is corrected
    (`call_correction`). `plural` is the parameter that takes several of what this one takes.
    """

    description: str
    quiet: bool = False
    unlisted: bool = False
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    strict: bool = False
    advertised: Mapping[str, Any] | None = None
    schema: Mapping[str, Any] | None = None
    alias: str | None = None
    time: Literal["moment", "duration", "items"] | None = None
    aliases: tuple[str, ...] = ()
    plural: str | None = None


# Parameters that most operations have.
BranchName = Annotated[
    str | None, Param("The branch to work on; the caller's current one by default", quiet=True)
]
Namespace = Annotated[
    str | None,
    Param("The group that a key belongs to; the caller's by default", quiet=True, aliases=("ns",)),
]
AsOf = Annotated[
    str | int | None,
    Param(
        "Past: ISO 8601, 1h ago, @version",
        time="moment",
        aliases=("at", "moment", "point_in_time"),
    ),
]
RequestId = Annotated[str | None, Param("Same id, written once", aliases=("idempotency_key",))]
Cursor = Annotated[
    str | None, Param("`next` of the last answer", quiet=True, aliases=("next", "page_token"))
]
TransactionId = Annotated[
    str | None,
    Param("Id of its transaction", quiet=True, unlisted=True, aliases=("txn", "txn_id")),
]
MaxChars = Annotated[
    int,
    Param(
        "Answer budget",
        quiet=True,
        ge=limits.ANSWER_CHARS_MIN,
        le=limits.ANSWER_CHARS_MAX,
        aliases=("max_characters",),
    ),
]
# What models call a number of results.
COUNT_ALIASES: Final = ("count", "k", "limit", "max", "max_results", "n", "num_results", "top_k")


def param(
    description: str,
    default: Any = _NO_DEFAULT,
    *,
    default_factory: Callable[[], Any] | Any = _NO_DEFAULT,
    **said: Any,
) -> Any:
    """Return a field of an `Input`, described by the arguments of `Param`."""
    given: dict[str, Any] = {"metadata": {"param": Param(description, **said)}}
    if default is not _NO_DEFAULT:
        given["default"] = default
    if default_factory is not _NO_DEFAULT:
        given["default_factory"] = default_factory
    return field(**given)


@dataclass(kw_only=True)
class Input:
    """The base of parameters that travel as one object; callers write their names in camel case.

    `open_ended`: unknown names are allowed, and kept in `extras`.
    """

    open_ended: ClassVar[bool] = False

    @classmethod
    def read(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the object for arguments that were checked."""
        hints = _hints(cast("Hashable", cls))
        own = {
            name: _read_value(hints[name], arguments[name]) for name in hints if name in arguments
        }
        made = cls(**own)
        extras = {name: value for name, value in arguments.items() if name not in hints}
        vars(made).update(_named=frozenset(own), _extras=extras)
        return made

    def to_arguments(self, *, leave_out: Collection[str] = ()) -> dict[str, Any]:
        """Return the arguments that were given, under the names callers use, without some."""
        named: frozenset[str] | None = vars(self).get("_named")
        if named is None:
            named = frozenset(each.name for each in fields(self) if not self._is_default(each))
        shown = {
            _alias(each): _plain(getattr(self, each.name))
            for each in fields(self)
            if each.name in named and each.name not in leave_out
        }
        return shown | self.extras

    @property
    def extras(self) -> dict[str, Any]:
        """What was given under names that are not declared."""
        extras: dict[str, Any] = vars(self).get("_extras", {})
        return extras

    def _is_default(self, each: Any) -> bool:
        value = getattr(self, each.name)
        if each.default_factory is not _NO_DEFAULT:
            return bool(value == each.default_factory())
        return value is each.default or bool(value == each.default)


@cache
def _hints(model: Any) -> dict[str, Any]:
    hints = get_type_hints(model)
    return {each.name: hints[each.name] for each in fields(model)}


def _read_value(hint: Any, value: Any) -> Any:
    """Make the objects that a declared type asks for out of checked JSON."""
    if isinstance(value, Mapping):
        model = _input_in(hint)
        return value if model is None else model.read(value)
    if isinstance(value, list) and get_origin(hint) is list:
        return [_read_value(get_args(hint)[0], each) for each in value]
    return value


def _input_in(hint: Any) -> type[Input] | None:
    choices = (hint, *get_args(hint))
    return next(
        (each for each in choices if isinstance(each, type) and issubclass(each, Input)), None
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Input):
        return value.to_arguments()
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value


def _alias(each: Any) -> str:
    said: Param | None = each.metadata.get("param")
    return said.alias if said and said.alias else wire_name(each.name)


def wire_name(name: str) -> str:
    """Return `toolName` for `tool_name`, and `from` for `from_`."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(each.title() for each in rest)


@cache
def python_name(name: str) -> str:
    """Return `tool_name` for `toolName`, and `from_` for `from`."""
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: f"_{found[1].lower()}", name)
    return f"{snake}_" if iskeyword(snake) else snake


def check(schema: Schema, arguments: object, operation: str) -> dict[str, Any]:
    """Return checked arguments under their Python names; what was left out stays left out.

    Numbers and booleans are also read from text, as some models send them.

    Raises:
        InvalidInput: The arguments are no object.
        MissingRequired: A parameter is missing.
        ValidationFailed: A parameter is unknown, or has a value that it cannot have.
    """
    # Told by its type first: a mapping in general takes a look at its abstract bases.
    if type(arguments) is not dict and not isinstance(arguments, Mapping):
        raise InvalidInput(
            f"The arguments of {operation} are a JSON object, not {type(arguments).__name__}."
        )
    checked = _check_exact(schema, arguments)
    if checked is not None:
        return checked
    given = {name: value for name, value in arguments.items() if value is not MISSING}
    return _Check(operation).properties(schema, given, ())


@dataclass(frozen=True, slots=True)
class _ExactTypes:
    """The types by which most calls are accepted without further checks.

    `parameters` gives each declared name its Python name, the types of values that need no further
    check (None for all), and its default: methods of the SDK hand over what nobody gave, and a
    default fits.
    """

    parameters: Mapping[str, tuple[str, frozenset[type] | None, object]]
    required: frozenset[str]


# By identity: a schema is a constant of the program, and its mappings have no hash. The schema is
# kept with its types so that its identity is never reused.
_EXACT: dict[int, tuple[Schema, _ExactTypes]] = {}


def _check_exact(schema: Schema, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return arguments whose types alone say that they fit; None where one needs a closer look."""
    known = _EXACT.get(id(schema))
    if known is None:
        known = _EXACT[id(schema)] = (schema, _exact_types(schema))
    exact = known[1]
    declared = exact.parameters
    checked: dict[str, Any] = {}
    for name, value in arguments.items():
        if value is MISSING:
            continue
        if name not in declared:
            return None
        python, types, default = declared[name]
        if value is not default:
            if types is not None and type(value) not in types:
                return None
            if type(value) is str and not value.isascii() and not _is_unicode(value):
                return None
        checked[python] = value
    return checked if exact.required <= checked.keys() else None


def _exact_types(schema: Schema) -> _ExactTypes:
    declared: Mapping[str, Schema] = schema.get("properties", {})
    return _ExactTypes(
        {
            name: (python_name(name), _accepted_types(each), each.get("default", MISSING))
            for name, each in declared.items()
        },
        frozenset(map(python_name, schema.get("required", ()))),
    )


def _accepted_types(schema: Schema) -> frozenset[type] | None:
    """Return the types whose every value fits a schema; None where any does."""
    if "anyOf" in schema:
        choices = [_accepted_types(each) for each in schema["anyOf"]]
        exact = [each for each in choices if each is not None]
        # The text may be the JSON of a list.
        unsure = {str} if _takes_text_or_list(schema) else set()
        return None if len(exact) < len(choices) else frozenset().union(*exact) - unsure
    says = schema.keys() - {"type", "default", "description"} - OWN_KEYWORDS
    if says or schema.get("type") == "array":
        return frozenset()
    return _PYTHON_TYPES.get(schema.get("type", ""))


_PYTHON_TYPES: Final[Mapping[str, frozenset[type]]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    # A float may be infinite, which is not a JSON number.
    "number": frozenset({int}),
    "boolean": frozenset({bool}),
    "object": frozenset({dict}),
    "null": frozenset({type(None)}),
}


_ANY_NUMBER: Final[Schema] = {"type": "number"}


class _Mismatch(Exception):
    """A value is not of the type that one of several choices asks for."""


class _Check:
    """The check of one call. A place is the path of names and positions to a value."""

    def __init__(self, operation: str) -> None:
        self._operation = operation

    def properties(
        self, schema: Schema, given: Mapping[str, Any], place: tuple[str | int, ...]
    ) -> dict[str, Any]:
        declared: Mapping[str, Schema] = schema.get("properties", {})
        required = schema.get("required", ())
        checked: dict[str, Any] = {}
        for name, value in given.items():
            if not isinstance(name, str):
                raise self._name_refusal(f"A name is text; it was {_show(name)}.", place)
            known = name if name in declared else _alias_in(declared, name)
            if known is None and schema.get("additionalProperties") is not True:
                raise self._unknown_name_error(name, declared, place, given)
            python = name if known is None else python_name(known)
            if python in checked:
                raise self._name_refusal(f"`{name}` is given twice, in two spellings.", place, name)
            checked[python] = (
                value if known is None else self.value(declared[known], value, (*place, name))
            )
        for name in required:
            if python_name(name) not in checked:
                missing = (*place, name)
                choices = _choices(declared.get(name, {}))
                raise MissingRequired(
                    f"{self._operation} needs `{_path(missing)}`.",
                    **_where(missing),
                    hint=f"Add one of: {', '.join(map(str, choices))}." if choices else None,
                )
        return checked

    def _name_refusal(
        self, message: str, place: tuple[str | int, ...], name: str | None = None
    ) -> ValidationFailed:
        inside = (*place, name) if name is not None else place
        return ValidationFailed(
            message,
            **(_where(inside) if inside else {"field": "arguments"}),
            hint=f"Give each parameter of {self._operation} once, by its name.",
        )

    def value(self, schema: Schema, value: Any, place: tuple[str | int, ...]) -> Any:
        if "anyOf" in schema:
            return self._any_of(schema, value, place)
        try:
            return self._read_typed(schema, value, place, strict=bool(schema.get(STRICT)))
        except _Mismatch:
            raise self._refusal(schema, value, place) from None

    def _any_of(self, schema: Schema, value: Any, place: tuple[str | int, ...]) -> Any:
        value = _list_from_text(schema, value)
        # A value that fits as it is comes before one that has to be read from text.
        for strict in (True, False) if not schema.get(STRICT) else (True,):
            for choice in schema["anyOf"]:
                try:
                    return self._read_typed(choice, value, place, strict=strict)
                except _Mismatch:
                    continue
        raise self._refusal(schema, value, place)

    def _read_typed(
        self, schema: Schema, value: Any, place: tuple[str | int, ...], *, strict: bool
    ) -> Any:
        """Return a value as one type has it.

        Raises:
            _Mismatch: It is of another type.
            ValidationFailed: It is of this type, and out of its bounds.
        """
        if "const" in schema or "enum" in schema:
            allowed = schema.get("enum", (schema.get("const"),))
            if value not in allowed or isinstance(value, bool) != isinstance(allowed[0], bool):
                raise _Mismatch
            return value
        kind = schema.get("type")
        if kind is None:
            return value
        typed = _READERS[kind](value, strict=strict)
        if kind == "array":
            return self._array(schema, typed, place)
        if kind == "object":
            return self._object(schema, typed, place)
        if kind == "string":
            # Of several texts, the service says which one it is.
            if not isinstance(place[-1], int) and not _is_unicode(typed):
                raise _half_pair_error(place)
            self._check_size(schema, len(typed), place, "minLength", "maxLength")
            if "pattern" in schema and not re.search(schema["pattern"], typed):
                raise self._refusal(schema, value, place, pattern=schema["pattern"])
        elif kind in {"integer", "number"} and not _is_within(schema, typed):
            raise self._refusal(schema, value, place)
        return typed

    def _array(
        self, schema: Schema, values: Sequence[Any], place: tuple[str | int, ...]
    ) -> Sequence[Any]:
        items = schema.get("items", {})
        self._check_size(schema, len(values), place, "minItems", "maxItems")
        if items == _ANY_NUMBER and _are_numbers(values):
            return values
        # Of many objects most fit as they are.
        objects = items.get("type") == "object" and "properties" in items
        exact = [_check_exact(items, each) for each in values if objects and type(each) is dict]
        if len(exact) == len(values) and None not in exact:
            return exact
        return [self.value(items, each, (*place, at)) for at, each in enumerate(values)]

    def _object(
        self, schema: Schema, value: Mapping[str, Any], place: tuple[str | int, ...]
    ) -> Any:
        if "properties" in schema:
            exact = _check_exact(schema, value)
            return self.properties(schema, value, place) if exact is None else exact
        each = schema.get("additionalProperties")
        if isinstance(each, Mapping):
            return {name: self.value(each, item, (*place, name)) for name, item in value.items()}
        return value

    def _check_size(
        self, schema: Schema, size: int, place: tuple[str | int, ...], low: str, high: str
    ) -> None:
        counted = "entries" if high == "maxItems" else "characters"
        field_name = _path(place)
        if size > schema.get(high, size):
            raise ValidationFailed(
                f"`{field_name}` has {size:,} {counted}; the limit is {schema[high]:,}.",
                **_where(place),
                limit=schema[high],
                hint=f"Shorten `{field_name}`.",
            )
        if size < schema.get(low, 0):
            need = schema[low]
            raise ValidationFailed(
                f"`{field_name}` is empty."
                if size == 0
                else f"`{field_name}` has {size:,} {counted}; it needs {need:,}.",
                **_where(place),
                limit=need,
                hint=f"Give `{field_name}` at least {need:,}.",
            )

    def _refusal(
        self, schema: Schema, value: Any, place: tuple[str | int, ...], **details: Any
    ) -> StratagemError:
        field_name = _path(place)
        choices = _choices(schema)
        if choices:
            near = _near_words(
                _show(value).strip("'"), [str(each) for each in choices], n=1, cutoff=_NEAR_CHOICE
            )
            details |= {"allowed": choices}
            details["hint"] = (
                f"Did you mean {near[0]}?"
                if near
                else f"Use one of {', '.join(map(str, choices))}."
            )
        elif isinstance(value, str) and _wants_texts(schema):
            details["hint"] = f"Send a list: {_show([value])} if it is one."
        limit = _exceeded_bound(schema, value)
        if limit is not None:
            details["limit"] = limit
        shown = _show(value)
        return ValidationFailed(
            f"`{field_name}` is {_describe(schema)}; it was {shown}.",
            **_where(place),
            invalid_value=shown,
            **details,
        )

    def _unknown_name_error(
        self,
        name: str,
        declared: Mapping[str, Schema],
        place: tuple[str | int, ...],
        given: Collection[str],
    ) -> ValidationFailed:
        known = [python_name(each) if "_" in name else each for each in declared]
        meant = [each for each, schema in declared.items() if name in schema.get(ALIASES, ())]
        # Of a call of a tool: what is no parameter is mostly an argument of the tool.
        is_argument = _ARGUMENTS in declared and _ARGUMENTS not in given
        near = meant or _near_words(
            name, known, n=2, cutoff=_SURE_NAME if is_argument else _NEAR_NAME
        )
        where = _path(place)
        said = (
            f"`{where}` of {self._operation} has no field `{name}`."
            if place
            else f"{self._operation} has no parameter `{name}`."
        )
        also = [
            each
            for each in given
            if meant and each != name and each in {meant[0], *declared[meant[0]][ALIASES]}
        ]
        if also:
            names = (
                f"`{name}` and `{also[0]}` both mean" if also[0] != meant[0] else f"`{name}` means"
            )
            hint = f"{names} `{meant[0]}`, which takes one value: send only `{meant[0]}`."
        elif near:
            hint = f"Did you mean {' or '.join(near)}?"
        elif is_argument:
            hint = f"What the tool takes goes into `{_ARGUMENTS}`. It takes: {', '.join(known)}."
        else:
            hint = f"It takes: {', '.join(known)}." if known else "It takes none."
        return ValidationFailed(said, **_where((*place, name)), hint=hint)


def _alias_in(declared: Mapping[str, Schema], name: str) -> str | None:
    """Return the declared name that was written in Python's way."""
    wire = wire_name(name)
    # `from_` stands for a keyword of Python; `key_` stands for nothing.
    return wire if wire in declared and python_name(wire) == name else None


def _read_string(value: Any, *, strict: bool) -> str:
    del strict
    if not isinstance(value, str):
        raise _Mismatch
    return value


def _half_pair_error(place: tuple[str | int, ...]) -> ValidationFailed:
    return ValidationFailed(
        f"`{_path(place)}` has half of a surrogate pair in its text.",
        **_where(place),
        hint="Decode the text as UTF-8 or UTF-16 first, or remove the character.",
    )


def _is_unicode(text: str) -> bool:
    """Whether a text can be written: half of a surrogate pair cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_integer(value: Any, *, strict: bool) -> int:
    if isinstance(value, bool):
        raise _Mismatch
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer() and not strict:
        return int(value)
    if isinstance(value, str) and not strict and _INTEGER.fullmatch(value.strip()):
        return int(value)
    raise _Mismatch


def _read_number(value: Any, *, strict: bool) -> float:
    if isinstance(value, str) and not strict:
        try:
            value = float(value)
        except ValueError:
            raise _Mismatch from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Mismatch
    try:
        is_number = isfinite(value)
    except OverflowError:
        is_number = False
    if not is_number:
        raise _Mismatch
    return value


def _are_numbers(values: Sequence[Any]) -> bool:
    """Whether a look at types and at the sum says that all are finite numbers.

    A vector has hundreds: one after the other they would take most of the time of storing it.
    """
    if not set(map(type, values)) <= {int, float}:
        return False
    try:
        return isfinite(sum(values))
    except OverflowError:
        return False


def _read_boolean(value: Any, *, strict: bool) -> bool:
    if isinstance(value, bool):
        return value
    word = value.strip().casefold() if isinstance(value, str) else value
    if strict or not isinstance(word, str | int) or word not in _BOOLEANS:
        raise _Mismatch
    return _BOOLEANS[word]


def _takes_text_or_list(schema: Schema) -> bool:
    return {"string", "array"} <= {each.get("type") for each in schema["anyOf"]}


def _list_from_text(schema: Schema, value: Any) -> Any:
    """Read the JSON of a list of texts, where a parameter takes one text or a list of them."""
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return value
    if not _takes_text_or_list(schema):
        return value
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    texts = isinstance(parsed, list) and all(isinstance(each, str) for each in parsed)
    return parsed if texts else value


def _read_array(value: Any, *, strict: bool) -> Sequence[Any]:
    del strict
    if isinstance(value, AbstractSet):
        return list(value)
    if isinstance(value, str | bytes | bytearray) or not isinstance(value, Sequence):
        raise _Mismatch
    return value


def _read_object(value: Any, *, strict: bool) -> Mapping[str, Any]:
    del strict
    if not isinstance(value, Mapping):
        raise _Mismatch
    return value


def _read_null(value: Any, *, strict: bool) -> None:
    del strict
    if value is not None:
        raise _Mismatch


_READERS: Final[Mapping[str, Callable[..., Any]]] = {
    "string": _read_string,
    "integer": _read_integer,
    "number": _read_number,
    "boolean": _read_boolean,
    "array": _read_array,
    "object": _read_object,
    "null": _read_null,
}


def _is_within(schema: Schema, number: float) -> bool:
    return schema.get("minimum", number) <= number <= schema.get("maximum", number) and (
        "exclusiveMinimum" not in schema or number > schema["exclusiveMinimum"]
    )


def _exceeded_bound(schema: Schema, value: Any) -> float | None:
    """Return the bound that a number is beyond; of what is no number, the upper one."""
    try:
        number = _read_number(value, strict=False)
    except _Mismatch:
        number = None
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high: float | None = schema.get("maximum")
    if low is not None and (high is None or (number is not None and number <= high)):
        return float(low) if isinstance(low, float) else int(low)
    return high


def _wants_texts(schema: Schema) -> bool:
    choices = schema.get("anyOf", (schema,))
    return any(
        each.get("type") == "array" and each.get("items", {}).get("type") == "string"
        for each in choices
    )


def _choices(schema: Schema) -> list[Any]:
    if "enum" in schema:
        return list(schema["enum"])
    return [each for choice in schema.get("anyOf", ()) for each in choice.get("enum", ())]


def _describe(schema: Schema) -> str:
    """Say in words what a schema takes."""
    if "anyOf" in schema:
        choices = [_describe(each) for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(choices))
    if "const" in schema:
        return f'"{schema["const"]}"'
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    said = _TYPE_WORDS.get(schema.get("type", ""), "any JSON")
    if schema.get("type") == "array" and schema.get("items", {}).get("type") == "string":
        said = "a list of texts"
    if "pattern" in schema:
        said += f" that matches {schema['pattern']}"
    return said + _describe_bounds(schema)


def _describe_bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" from {low:,} to {high:,}"
    if low is not None:
        return f" of at least {low:,}"
    above = schema.get("exclusiveMinimum")
    bounds = [f" above {above:,}"] if above is not None else []
    bounds += [f" of at most {high:,}"] if high is not None else []
    return " and".join(bounds)


def _where(place: Sequence[str | int]) -> dict[str, Any]:
    """Return the parameter that an error is about, and the place in it."""
    return {"field": place[0]} | ({"path": _path(place)} if len(place) > 1 else {})


def _path(place: Sequence[str | int]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).removeprefix(".")


def _show(value: object) -> str:
    try:
        return repr(value)[:_SHOWN_CHARS_MAX]
    except (ValueError, RecursionError):
        # A number of thousands of digits, or lists in lists without end.
        return f"{type(value).__name__} too large to show"


def _near_words(word: str, known: list[str], *, n: int, cutoff: float = _NEAR_NAME) -> list[str]:
    """Return the known words that are most like one."""
    from difflib import get_close_matches

    return get_close_matches(word, known, n=n, cutoff=cutoff)
