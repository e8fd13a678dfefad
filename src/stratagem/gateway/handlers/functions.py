"""Describes a Python function as a tool: schema from its type hints, texts from its docstring.

Parameters may have every type that pydantic can read from JSON: plain types, `Literal`, enums,
dates, dataclasses, pydantic models, and lists and mappings of them. A parameter annotated with
`Run` or `ProgressReport` is not an argument: the runner passes the attempt, or a function that
reports progress.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final, TypeVar, cast, overload

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, create_model
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, PydanticUndefined, to_json, to_jsonable_python

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ValidationFailed
from stratagem.gateway.definitions.argument_models import strip_titles
from stratagem.gateway.definitions.contract import ProgressReport, Run

__all__ = ["PythonTool", "describe_function", "tool"]

F = TypeVar("F", bound=Callable[..., Any])

_MARK: Final = "__stratagem_tool__"
_INJECTED: Final = (Run, ProgressReport)
_SECTION: Final = re.compile(
    r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Note):\s*$"
)
_GOOGLE_ENTRY: Final = re.compile(r"^\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_REST_ENTRY: Final = re.compile(r"^\s*:param\s+(?:[\w.\[\]]+\s+)?(\w+):\s*(.*)$")
_UNREADABLE: Final = (PydanticSchemaGenerationError, PydanticUserError, TypeError, ValueError)


@dataclass(frozen=True)
class PythonTool:
    """A function with its definition as a tool.

    `options` are further fields of the definition, as given to the decorator.
    """

    function: Callable[..., Any]
    name: str
    description: str
    long_description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    is_async: bool
    options: Mapping[str, Any]
    _model: type[BaseModel]
    _injected: Mapping[str, Any]
    _returns: TypeAdapter[Any] | None

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as it is registered, without its handler."""
        definition: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "inputSchema": dict(self.input_schema),
        }
        if self.long_description:
            definition["longDescription"] = self.long_description
        if self.output_schema is not None:
            definition["outputSchema"] = dict(self.output_schema)
        return definition | dict(self.options)

    def bind(self, arguments: Mapping[str, Any], run: Run) -> Callable[[], Any]:
        """Return the function bound to arguments that are given as JSON.

        Raises:
            pydantic.ValidationError: They do not match the parameters.
        """
        # Strict: "5" is not a number, but JSON has no dates and tuples, so texts and lists serve.
        read = self._model.model_validate_json(to_json(dict(arguments)), strict=True)
        given = {info.alias or name: getattr(read, name) for name, info in _fields(self._model)}
        for name, kind in self._injected.items():
            given[name] = run if kind is Run else run.progress
        return _bind_parameters(self.function, given)

    def as_json(self, result: Any) -> Any:
        """Return a result as plain JSON, with models and dataclasses as objects.

        Raises:
            PydanticSerializationError: It contains a value that JSON cannot express.
            ValueError: It contains itself.
        """
        if self._returns is not None:
            try:
                return self._returns.dump_python(
                    result, mode="json", by_alias=True, warnings="error"
                )
            except PydanticSerializationError:
                # The result is not of the declared type; the output schema is checked later.
                pass
        return to_jsonable_python(result, by_alias=True)


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, **options: Any
) -> Callable[[F], F]: ...
def tool(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> F | Callable[[F], F]:
    """Mark a function as a tool; it stays an ordinary function.

    The name and the description default to those of the function. `options` are further fields of
    the definition: category, tags, examples, configuration, and so on.

    Raises:
        ValidationFailed: A parameter has a type that cannot be read from JSON.
    """

    def mark(function: F) -> F:
        made = _build_tool(function, name, description, options)
        setattr(function, _MARK, made)
        return function

    return mark if function is None else mark(function)


def describe_function(function: Callable[..., Any]) -> PythonTool:
    """Return a function as a tool, marked or not.

    Raises:
        ValidationFailed: It cannot be one.
    """
    made = getattr(function, _MARK, None)
    return made if isinstance(made, PythonTool) else _build_tool(function, None, None, {})


def _build_tool(
    function: Callable[..., Any],
    name: str | None,
    description: str | None,
    options: Mapping[str, Any],
) -> PythonTool:
    name = name or getattr(function, "__name__", "")
    if not callable(function) or not name:
        raise ValidationFailed("A tool is a function with a name.", field="handler.callable")
    hints = _type_hints(function, name)
    summary, details, words = _parse_docstring(inspect.getdoc(function) or "")
    parameters = _parameters(function, name)
    injected = {
        each.name: _unwrap_hint(hints[each.name])
        for each in parameters
        if each.name in hints and _unwrap_hint(hints[each.name]) in _INJECTED
    }
    taken = [each for each in parameters if each.name not in injected]
    model = _model(name, taken, hints, words)
    returns = _returns(hints.get("return"), name)
    return PythonTool(
        function=function,
        name=name,
        description=description or summary or name,
        long_description="" if description else details,
        input_schema=_schema(model, name),
        output_schema=None if returns is None else _output_schema(returns),
        is_async=_is_async(function),
        options=dict(options),
        _model=model,
        _injected=injected,
        _returns=returns,
    )


def _is_async(function: Callable[..., Any]) -> bool:
    inner: Any = function.func if isinstance(function, partial) else function
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(
        getattr(inner, "__call__", None)  # noqa: B004 -- the method itself is wanted
    )


def _type_hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    inner: Any = function.func if isinstance(function, partial) else function
    owner = inner if inspect.isroutine(inner) else type(inner).__call__
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise _refusal(name, f"its annotations cannot be evaluated: {error}") from error


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise _refusal(name, "it is a generator; a tool must return its result")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise _refusal(name, "its parameters cannot be read") from error
    for each in parameters:
        if each.kind in {each.VAR_POSITIONAL, each.VAR_KEYWORD}:
            raise _refusal(name, f"*{each.name} accepts anything; a tool must name its parameters")
    return parameters


def _unwrap_hint(hint: Any) -> Any:
    """Return an annotation without `Annotated` and `| None` around it."""
    if typing.get_origin(hint) is Annotated:
        return _unwrap_hint(typing.get_args(hint)[0])
    choices = [each for each in typing.get_args(hint) if each is not type(None)]
    optional = type(None) in typing.get_args(hint) and len(choices) == 1
    return choices[0] if optional else hint


def _model(
    name: str,
    parameters: list[inspect.Parameter],
    hints: Mapping[str, Any],
    words: Mapping[str, str],
) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for index, each in enumerate(parameters):
        hint = hints.get(each.name, Any)
        # Only the alias is visible, so a parameter may have the name of a method of the model.
        fields[f"field_{index}"] = (hint, _field(each, hint, words.get(each.name)))
    try:
        return cast(
            "type[BaseModel]",
            create_model(name, __config__=ConfigDict(extra="forbid"), **fields),
        )
    except _UNREADABLE as error:
        raise _refusal(name, f"its parameters have no JSON Schema: {_first_line(error)}") from error


def _field(parameter: inspect.Parameter, hint: Any, words: str | None) -> Any:
    default = parameter.default
    options: dict[str, Any] = {"alias": parameter.name}
    description = _annotated_description(hint) or words
    if description:
        options["description"] = description
    if isinstance(default, FieldInfo):
        # `x: int = Field(3, ge=1)`, as pydantic's own models have it.
        return FieldInfo.merge_field_infos(default, **options)
    if default is parameter.empty:
        default = PydanticUndefined
    return Field(default, **options)


def _annotated_description(hint: Any) -> str | None:
    for each in getattr(hint, "__metadata__", ()):
        if isinstance(each, str):
            return each
        if isinstance(each, FieldInfo) and each.description:
            return each.description
    return None


def _schema(model: type[BaseModel], name: str) -> dict[str, Any]:
    try:
        schema = model.model_json_schema(by_alias=True)
    except _UNREADABLE as error:
        raise _refusal(name, f"its parameters have no JSON Schema: {_first_line(error)}") from error
    shown: dict[str, Any] = strip_titles(schema)
    return shown


def _returns(hint: Any, name: str) -> TypeAdapter[Any] | None:
    if hint in {None, Any, type(None)} or hint is inspect.Signature.empty:
        return None
    try:
        return TypeAdapter(hint)
    except _UNREADABLE as error:
        raise _refusal(name, f"its return value is not JSON: {_first_line(error)}") from error


def _output_schema(returns: TypeAdapter[Any]) -> dict[str, Any] | None:
    try:
        schema = returns.json_schema(mode="serialization", by_alias=True)
    except _UNREADABLE:
        return None
    shown: dict[str, Any] = strip_titles(schema)
    return shown


def _fields(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    return list(model.model_fields.items())


def _bind_parameters(function: Callable[..., Any], given: Mapping[str, Any]) -> Callable[[], Any]:
    parameters = inspect.signature(function).parameters.values()
    first = [given[each.name] for each in parameters if each.kind is each.POSITIONAL_ONLY]
    rest = {
        each.name: given[each.name] for each in parameters if each.kind is not each.POSITIONAL_ONLY
    }
    return partial(function, *first, **rest)


def _parse_docstring(text: str) -> tuple[str, str, dict[str, str]]:
    """Return the first paragraph, the rest, and the description of each parameter."""
    prose: list[str] = []
    words: dict[str, str] = {}
    section = ""
    current = ""
    for line in text.splitlines():
        if heading := _SECTION.match(line):
            section, current = heading[1], ""
        elif entry := _REST_ENTRY.match(line):
            words[entry[1]] = entry[2].strip()
        elif section in {"Args", "Arguments", "Parameters"}:
            current = _argument_line(line, words, current)
        elif not section and not line.lstrip().startswith(
            (":return", ":rtype", ":raises", ":type")
        ):
            prose.append(line)
    summary, _, details = "\n".join(prose).strip().partition("\n\n")
    return " ".join(summary.split()), details.strip(), words


def _argument_line(line: str, words: dict[str, str], current: str) -> str:
    entry = _GOOGLE_ENTRY.match(line)
    indent = len(line) - len(line.lstrip())
    if entry and indent <= 4:  # noqa: PLR2004 -- what is indented further goes on with the last
        words[entry[1]] = entry[2].strip()
        return entry[1]
    if current and line.strip():
        words[current] = f"{words[current]} {line.strip()}".strip()
    return current


def _refusal(name: str, why: str) -> ValidationFailed:
    return ValidationFailed(
        f"{name} cannot be a tool: {why}.",
        field="handler.callable",
        hint="Annotate each parameter with a type that can be read from JSON.",
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
