"""Write what is generated from the typed methods of the services: `make generate`.

The sources are the signatures of the methods (or the fields of the object that a method takes),
their docstrings and the types that they return. Written from them are the JSON Schemas in
`src/stratagem/schemas` and the methods of the SDK in `src/stratagem/sdk/generated`; the packages in
`plugins` are written from `stratagem.clients.packages`. All are checked in; a test compares them
with what this would write now.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import orjson

from stratagem import limits
from stratagem.capture.review import Review
from stratagem.clients.packages import package_files
from stratagem.debugging.curation import CuratedDebugging
from stratagem.developer.operations import OPERATIONS as DEVELOPER
from stratagem.gateway.operations import OPERATIONS as GATEWAY
from stratagem.knowledge.service import Knowledge
from stratagem.memory.service import Memory
from stratagem.operation import Operation
from stratagem.operations import TABLE
from stratagem.parameters import (
    ADVERTISED,
    ALIASES,
    MISSING,
    PLURAL,
    QUIET,
    STRICT,
    TIME,
    UNLISTED,
    Cursor,
    Input,
    MaxChars,
    Param,
    TransactionId,
    wire_name,
)
from stratagem.surfaces.cli.app import COMMANDS, root_command

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "src/stratagem/schemas"
SDK = ROOT / "src/stratagem/sdk/generated"
COMMAND_LINE = ROOT / "src/stratagem/surfaces/cli"
PLUGINS = ROOT / "plugins"

_SERVICES: Mapping[str, type] = {
    "memory": Memory,
    "debugging": CuratedDebugging,
    "knowledge": Knowledge,
    "review": Review,
}
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
# Parameters of answers, which no method declares.
_ANSWER_OPTIONS: Mapping[str, tuple[Any, Any]] = {
    "cursor": (Cursor, None),
    "max_chars": (MaxChars, limits.ANSWER_CHARS_DEFAULT),
    "transaction": (TransactionId, None),
}


@dataclass(frozen=True)
class Parameter:
    """A parameter as its source declares it."""

    name: str
    hint: Any
    default: Any
    positional: bool = False
    said: Param | None = None

    @property
    def required(self) -> bool:
        """Whether it has to be given."""
        return self.default is inspect.Parameter.empty


# --- reading the sources


def method_parameters(method: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a method, or of a function whose first is a service."""
    hints = get_type_hints(method, include_extras=True)
    _first, *declared = inspect.signature(method).parameters.values()
    return [
        Parameter(
            each.name,
            hints[each.name],
            each.default,
            positional=each.kind is each.POSITIONAL_OR_KEYWORD,
        )
        for each in declared
    ]


def input_parameters(model: type[Input]) -> list[Parameter]:
    """Return the parameters that travel as one object."""
    hints = get_type_hints(model, include_extras=True)
    return [
        Parameter(
            each.name, hints[each.name], _field_default(each), said=each.metadata.get("param")
        )
        for each in fields(model)
    ]


def entry_parameters(entry: Any) -> list[Parameter]:
    """Return the entries of a dict whose names are declared."""
    hints = get_type_hints(entry, include_extras=True)
    return [
        # `__required_keys__` knows nothing of annotations that were not evaluated.
        Parameter(name, get_args(hint)[0], inspect.Parameter.empty)
        if get_origin(hint) is Required
        else Parameter(name, hint, MISSING)
        for name, hint in hints.items()
    ]


def _field_default(each: Any) -> Any:
    if each.default is not NO_DEFAULT:
        return each.default
    if each.default_factory is not NO_DEFAULT:
        return each.default_factory()
    return inspect.Parameter.empty


def operation_parameters(operation: Operation) -> list[Parameter]:
    """Return the parameters of an operation, in the order in which they are declared."""
    if operation.takes is not None:
        return input_parameters(operation.takes)
    extra = [Parameter(name, *_ANSWER_OPTIONS[name]) for name in operation.answer_options]
    return [*method_parameters(operation.method), *extra]


def public_methods(service: type) -> list[Callable[..., Any]]:
    """Return the methods of a service that the SDK offers, in the order of their definition."""
    found = {
        name: method
        for each in reversed(service.__mro__)
        for name, method in vars(each).items()
        if not name.startswith("_") and inspect.isfunction(method)
    }
    return list(found.values())


# --- JSON Schemas of parameters


def parameters_schema(
    parameters: Iterable[Parameter], *, wire: bool, open_ended: bool = False
) -> dict[str, Any]:
    """Return the schema of an object of parameters; `wire` writes their names in camel case."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for each in parameters:
        said = _said(each)
        name = said.alias or (wire_name(each.name) if wire else each.name)
        properties[name] = parameter_schema(each, said)
        if each.required:
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema | {"additionalProperties": open_ended}


def _said(each: Parameter) -> Param:
    """Return what is said about a parameter: on its field, else on the type that names it."""
    outer, inner = each.said, _param_of(each.hint)
    if outer is None and inner is None:
        raise SystemExit(f"parameter {each.name!r} of {each.hint!r} has no description")
    if outer is None or inner is None:
        return outer or inner  # type: ignore[return-value]
    changed = {
        each.name: value
        for each in fields(Param)
        if (value := getattr(outer, each.name)) not in (None, False, ())
    }
    return replace(inner, **changed)


def _param_of(hint: Any) -> Param | None:
    if get_origin(hint) is Annotated:
        return next((each for each in hint.__metadata__ if isinstance(each, Param)), None)
    if get_origin(hint) in (Union, types.UnionType):
        return next((found for each in get_args(hint) if (found := _param_of(each))), None)
    return None


def parameter_schema(each: Parameter, said: Param) -> dict[str, Any]:
    """Return the schema of one parameter."""
    schema = dict(said.schema) if said.schema is not None else _typed(each.hint, said)
    if said.schema is not None and each.default is None:
        schema = {"anyOf": [schema, {"type": "null"}]}
    if each.default is not inspect.Parameter.empty and each.default is not MISSING:
        schema["default"] = (
            each.default.to_arguments() if isinstance(each.default, Input) else each.default
        )
    schema["description"] = said.description
    flags = ((QUIET, said.quiet), (STRICT, said.strict), (UNLISTED, said.unlisted))
    for keyword, set_ in flags:
        if set_:
            schema[keyword] = True
    if said.advertised:
        schema[ADVERTISED] = dict(said.advertised)
    if said.aliases:
        schema[ALIASES] = list(said.aliases)
    if said.plural:
        schema[PLURAL] = said.plural
    if said.time:
        schema[TIME] = said.time
    return schema


def _typed(hint: Any, said: Param | None) -> dict[str, Any]:  # noqa: C901, PLR0911 -- a case each
    origin = get_origin(hint)
    if origin is Annotated:
        inner = _param_of(hint)
        return _typed(hint.__origin__, said or inner)
    if hint is Any:
        return {}
    if hint in _TYPES:
        return {"type": _TYPES[hint], **_bounds(_TYPES[hint], said)}
    if origin is Literal:
        choices = list(get_args(hint))
        if len(choices) == 1:
            return {"const": choices[0], "type": "string"}
        return {"type": "string", "enum": choices}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_typed(each, said) for each in _ordered(get_args(hint))]}
    if origin in (list, Sequence):
        return {
            "type": "array",
            "items": _typed(get_args(hint)[0], _param_of(get_args(hint)[0])),
            **_bounds("array", said),
        }
    if origin in (dict, Mapping):
        inner = get_args(hint)[1]
        more = {} if inner is Any else {"additionalProperties": _typed(inner, None)}
        return {"type": "object", **more}
    if is_typeddict(hint):
        return parameters_schema(entry_parameters(hint), wire=False)
    if isinstance(hint, type) and issubclass(hint, Input):
        return parameters_schema(input_parameters(hint), wire=True, open_ended=hint.open_ended)
    raise SystemExit(f"no schema for the type {hint!r}")


def _ordered(choices: Sequence[Any]) -> list[Any]:
    """Return the choices of a union with null last, as callers expect it."""
    return sorted(choices, key=lambda each: each is type(None))


def _bounds(kind: str, said: Param | None) -> dict[str, Any]:
    if said is None:
        return {}
    keywords: dict[str, Any] = {}
    if kind in {"integer", "number"}:
        keywords = {"minimum": said.ge, "exclusiveMinimum": said.gt, "maximum": said.le}
    elif kind == "string":
        keywords = {
            "minLength": said.min_length,
            "maxLength": said.max_length,
            "pattern": said.pattern,
        }
    elif kind == "array":
        keywords = {"minItems": said.min_length, "maxItems": said.max_length}
    return {name: value for name, value in keywords.items() if value is not None}


# --- JSON Schemas of answers


def output_schema(operation: Operation) -> dict[str, Any]:
    """Return a short schema of an answer: every character of a tool list is paid for."""
    hint = get_type_hints(operation.method)["return"]
    models = [each for each in _models(hint) if each is not type(None)]
    properties: dict[str, Any] = {}
    required: set[str] | None = None
    for model in models:
        shown, needed = _answer_fields(model)
        properties = shown | properties
        required = needed if required is None else required & needed
    if type(None) in _models(hint):
        # A miss is an answer like any other.
        properties, required = {"found": {"type": "boolean"}, **properties}, {"found"}
    if operation.name == "strata_branch":
        properties = {"action": {"type": "string"}, **properties}
        required = {"action"}
    properties |= {name: {} for name in operation.null_fields}
    if "max_chars" in operation.answer_options:
        properties |= {"truncated": {"type": "boolean"}, "next": {"type": "string"}}
    if operation.answer_fields is not None:
        properties = {name: properties[name] for name in operation.answer_fields}
    always = [name for name in properties if name in (required or ())]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | ({"required": always} if always else {})


def _models(hint: Any) -> list[Any]:
    if get_origin(hint) in (Union, types.UnionType):
        return [model for each in get_args(hint) for model in _models(each)]
    return [hint]


def _answer_fields(model: Any) -> tuple[dict[str, Any], set[str]]:
    kind = get_origin(model) or model
    if typing.is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        needed = {name for name, each in hints.items() if _is_required(kind, name, each)}
        return {name: _entry_type(_bare(each)) for name, each in hints.items()}, needed
    if not is_dataclass(kind):
        return {}, set()
    hints = get_type_hints(kind)
    shown = {each.name: _answer_type(hints[each.name]) for each in fields(kind)}
    needed = {each.name for each in fields(kind) if type(None) not in get_args(hints[each.name])}
    return shown, needed


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    if get_origin(hint) in (typing.Required, typing.NotRequired):
        return get_origin(hint) is typing.Required
    # Of a key without a word of its own: whether the class that declares it is total.
    return name in kind.__required_keys__


def _bare(hint: Any) -> Any:
    while get_origin(hint) in (typing.Required, typing.NotRequired, Annotated):
        hint = get_args(hint)[0]
    return hint


def _entry_type(hint: Any) -> dict[str, Any]:
    """Return the schema of an entry of a dict, which stays in the answer where it is null."""
    return {} if type(None) in _models(hint) else _answer_type(hint)


def _answer_type(hint: Any) -> dict[str, Any]:
    """Return the schema of a field of a dataclass, which is left out of the answer where null."""
    choices = [each for each in _models(hint) if each is not type(None)]
    kinds = {_answer_kind(each) for each in choices}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"type": kind} if kind else {}


def _answer_kind(hint: Any) -> str | None:
    origin = get_origin(hint) or hint
    if origin is Literal:
        return _TYPES.get(type(get_args(hint)[0]))
    if origin in (list, tuple, Sequence):
        return "array"
    if origin in (dict, Mapping) or typing.is_typeddict(origin) or is_dataclass(origin):
        return "object"
    return _TYPES.get(origin)


def schema_files() -> dict[Path, bytes]:
    """Return the contents of every schema file."""
    written = {}
    systems: dict[str, list[Operation]] = {
        name: [] for name in (*_SERVICES, "gateway", "developer")
    }
    for operation in TABLE.values():
        systems[_system_of(operation)].append(operation)
    for name, rows in systems.items():
        service = _SERVICES.get(name)
        document = {
            "operations": {
                row.name: {
                    "input": parameters_schema(
                        operation_parameters(row),
                        wire=row.takes is not None,
                    ),
                    "output": output_schema(row),
                }
                for row in rows
            },
            "methods": {
                method.__name__: parameters_schema(method_parameters(method), wire=False)
                for method in (public_methods(service) if service else ())
            },
        }
        written[SCHEMAS / f"{name}.json"] = (
            orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"
        )
    return written


def _system_of(operation: Operation) -> str:
    room = operation.method.__module__.split(".")[1]
    # The service of a room that is called by what it does.
    return {"capture": "review"}.get(room, room)


# --- the methods of the SDK


class Module:
    """A generated module: its text, and the names that it imports."""

    def __init__(self, docstring: str) -> None:
        self._docstring = docstring
        self._imports: dict[str, set[str]] = {}
        self._modules: set[str] = set()
        self._lines: list[str] = []
        self.exports: list[str] = []

    def add_import(self, module: str) -> None:
        """Import a module as a whole."""
        self._modules.add(module)

    def add(self, *lines: str) -> None:
        """Append lines of text."""
        self._lines += lines

    def name(self, module: str, name: str) -> str:
        """Return a name that the text may use, imported from its module."""
        self._imports.setdefault(module, set()).add(name)
        return name

    def type_text(self, hint: Any) -> str:  # noqa: PLR0911 -- a case each
        """Return a type as source text."""
        origin = get_origin(hint)
        if origin is Annotated:
            return self.type_text(hint.__origin__)
        if hint is Any:
            return self.name("typing", "Any")
        if hint is type(None) or hint is None:
            return "None"
        if origin is Literal:
            self.name("typing", "Literal")
            return f"Literal[{', '.join(map(repr, get_args(hint)))}]"
        if origin in (Union, types.UnionType):
            return " | ".join(dict.fromkeys(map(self.type_text, _ordered(get_args(hint)))))
        if isinstance(hint, type) and issubclass(hint, Input):
            self.name("typing", "Any")
            return f"{self.name('collections.abc', 'Mapping')}[str, Any]"
        if origin is not None:
            inner = ", ".join(map(self.type_text, get_args(hint)))
            # Callers may hand in any sequence or mapping.
            return f"{self._class_text(origin)}[{inner}]"
        return self._class_text(hint)

    def _class_text(self, kind: Any) -> str:
        if kind.__module__ == "builtins":
            return str(kind.__name__)
        return self.name(kind.__module__, kind.__name__)

    def text(self) -> str:
        """Return the whole module."""
        imports = [f"import {module}" for module in sorted(self._modules)] + [
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(self._imports.items())
        ]
        exported = ", ".join(f'"{name}"' for name in sorted(self.exports))
        return "\n".join(
            [
                f'"""{self._docstring}',
                "",
                "Generated by `make generate`: edit the methods it is made from instead.",
                '"""',
                "",
                "from __future__ import annotations",
                "",
                *imports,
                "",
                f"__all__ = [{exported}]",
                "",
                *self._lines,
            ]
        )


# What programs may give for a time besides, and the function that makes an argument of it.
_TIMES: Mapping[str, tuple[str, str]] = {
    # A `datetime` is a `date`.
    "moment": ("date", "moment_argument"),
    "duration": ("timedelta", "duration_argument"),
    "items": ("", "items_argument"),
}


def _hint_text(module: Module, each: Parameter, said: Param | None) -> str:
    """Return the type of a parameter as source text, with the Python types of times."""
    text = module.type_text(each.hint)
    if said is None or said.time is None or not _TIMES[said.time][0]:
        return text
    kind = module.name("datetime", _TIMES[said.time][0])
    choices = [choice for choice in text.split(" | ") if choice != "None"]
    return " | ".join([*choices, kind, *(["None"] if "None" in text.split(" | ") else [])])


def _arguments_text(module: Module, parameters: Sequence[Parameter]) -> str:
    """Return the arguments of a call as the source text of a dict."""
    return ", ".join(f'"{each.name}": {_argument_text(module, each)}' for each in parameters)


def _argument_text(module: Module, each: Parameter) -> str:
    time = _said(each).time
    if time is None:
        return each.name
    return f'{module.name("stratagem.sdk.times", _TIMES[time][1])}({each.name}, "{each.name}")'


def _default_text(module: Module, default: Any) -> str:
    if default is MISSING:
        return module.name("stratagem.parameters", "MISSING")
    return repr(default)


def _signature_lines(
    module: Module,
    parameters: Sequence[Parameter],
    *,
    inputs: bool = False,
    said: Mapping[str, Param] | None = None,
) -> list[str]:
    """Return the lines of a signature; `said` is what is known of an overload's parameters."""
    known = {each.name: _said(each) for each in parameters} if said is None else said
    lines = ["        self,"]
    starred = False
    for each in parameters:
        if not each.positional and not starred:
            lines.append("        *,")
            starred = True
        hint = _hint_text(module, each, known.get(each.name))
        if inputs:
            hint = hint.replace("list[", f"{module.name('collections.abc', 'Sequence')}[").replace(
                "dict[", f"{module.name('collections.abc', 'Mapping')}["
            )
            if not each.required and each.default is not None and not _is_plain(each.default):
                hint = f"{hint} | None"
        default = each.default
        if inputs and not _is_plain(default):
            default = None
        text = "" if each.required else f" = {_default_text(module, default)}"
        lines.append(f"        {each.name}: {hint}{text},")
    return lines


def _is_plain(default: Any) -> bool:
    return default is None or isinstance(default, str | int | float | bool)


def _docstring_lines(source: str, parameters: Sequence[Parameter]) -> list[str]:
    """Return a docstring with the words of every parameter."""
    body, _sep, raises = inspect.cleandoc(source).partition("\nRaises:")
    lines = body.rstrip().splitlines()
    if parameters:
        lines += ["", "Args:"]
        for each in parameters:
            words = _said(each).description.replace("\\", "\\\\").rstrip(".")
            lines += _wrapped(f"    {each.name}: {words}.")
    if raises:
        lines += ["", "Raises:", *raises.lstrip("\n").splitlines()]
    first, *rest = lines
    if not rest:
        return [f'        """{first}"""']
    return [f'        """{first}', *(f"        {line}".rstrip() for line in rest), '        """']


def _wrapped(line: str) -> Iterator[str]:
    width = 88
    while len(line) > width:
        cut = line.rfind(" ", 0, width)
        yield line[:cut]
        line = "        " + line[cut + 1 :]
    yield line


def service_module(system: str, service: type) -> str:
    """Return the module with the SDK's methods of a system, to be called and to be awaited."""
    title, kind = system.capitalize(), service.__name__
    module = Module(f"The methods of {system} in the SDK.")
    for waits in (False, True):
        name = f"Async{title}Methods" if waits else f"{title}Methods"
        base = "AsyncServiceMethods" if waits else "ServiceMethods"
        module.exports.append(name)
        module.name(service.__module__, kind)
        how = ", to be awaited" if waits else ""
        words = (service.__doc__ or "").strip().splitlines()[0].rstrip(".")
        if service is Memory and not waits:
            parent = module.name("stratagem.sdk.key_access", "KeyAccess")
        else:
            parent = f"{module.name('stratagem.sdk.method_bases', base)}[{kind}]"
        module.add("", f"class {name}({parent}):", f'    """{words}{how}."""', "")
        for method in public_methods(service):
            _add_service_method(module, service, method, waits=waits)
    return module.text()


def _add_service_method(
    module: Module, service: type, method: Callable[..., Any], *, waits: bool
) -> None:
    parameters = method_parameters(method)
    returns = module.type_text(get_type_hints(method)["return"])
    if inspect.isfunction(getattr(service, "list", None)) and "list[" in returns:
        # The class has a method of that name.
        module.add_import("builtins")
        returns = returns.replace("list[", "builtins.list[")
    define = "    async def" if waits else "    def"
    overloads = typing.get_overloads(method)
    for overload in overloads:
        module.name("typing", "overload")
        hints = get_type_hints(overload)
        _self, *declared = inspect.signature(overload).parameters.values()
        inner = [
            Parameter(
                each.name,
                hints[each.name],
                each.default,
                positional=each.kind is each.POSITIONAL_OR_KEYWORD,
            )
            for each in declared
        ]
        module.add(
            "    @overload",
            f"{define} {method.__name__}(",
            *_signature_lines(module, inner, said={each.name: _said(each) for each in parameters}),
            f"    ) -> {module.type_text(hints['return'])}: ...",
            "",
        )
    given = _arguments_text(module, parameters)
    call = f"self._invoke({service.__name__}.{method.__name__}, {{{given}}})"
    module.add(
        f"{define} {method.__name__}(",
        *_signature_lines(module, parameters),
        f"    ) -> {returns}:",
        *_docstring_lines(method.__doc__ or "", parameters),
        f"        return {'await ' if waits else ''}{call}",
        "",
    )


def gateway_module() -> str:
    """Return the module with the SDK's methods of the gateway."""
    module = Module("The methods of the gateway in the SDK.")
    for waits in (False, True):
        name = "AsyncGatewayOperations" if waits else "GatewayOperations"
        base = "AsyncOperationMethods" if waits else "OperationMethods"
        module.exports.append(name)
        module.name("stratagem.sdk.method_bases", base)
        how = ", to be awaited" if waits else ""
        module.add(
            "",
            f"class {name}({base}):",
            f'    """Registering and calling tools{how}."""',
            "",
        )
        for row in GATEWAY:
            if row.sdk is not None:
                _add_operation_method(module, row, waits=waits)
    return module.text()


def _add_operation_method(module: Module, row: Operation, *, waits: bool) -> None:
    assert row.sdk is not None
    positional = row.sdk.positional
    declared = {each.name: each for each in operation_parameters(row)}
    rest = [each for name, each in declared.items() if name not in positional]
    parameters = [
        *(replace(declared[name], positional=True) for name in positional),
        *sorted(rest, key=lambda each: not each.required),
    ]
    returns = get_type_hints(row.method)["return"]
    if row.sdk.part is not None:
        returns = get_type_hints(returns)[row.sdk.part]
    # The class has a method named `list`.
    text = module.type_text(returns).replace("list[", "builtins.list[")
    module.add_import("builtins")
    define = "    async def" if waits else "    def"
    given = _arguments_text(module, parameters)
    ask = "await self._ask_async" if waits else "self._ask"
    part = f'["{row.sdk.part}"]' if row.sdk.part else ""
    module.add(
        f"{define} {row.sdk.name}(",
        *_signature_lines(module, parameters, inputs=True),
        f"    ) -> {text}:",
        *_docstring_lines(row.description, parameters),
        f'        answer: {text} = ({ask}("{row.name}", {{{given}}})){part}',
        "        return answer",
        "",
    )


def developer_module() -> str:
    """Return the module with the SDK's methods of developer mode, a class for each group."""
    module = Module("The methods of developer mode in the SDK.")
    groups: dict[str, list[Operation]] = {}
    for row in DEVELOPER:
        if row.sdk is not None:
            groups.setdefault(row.sdk.group, []).append(row)
    for group, rows in groups.items():
        for waits in (False, True):
            name = f"{'Async' if waits else ''}{group.capitalize()}Methods"
            base = "AsyncTypedMethods" if waits else "TypedMethods"
            module.exports.append(name)
            module.name("stratagem.sdk.method_bases", base)
            how = ", to be awaited" if waits else ""
            words = f'    """What `db.{group}` offers{how}."""'
            module.add("", f"class {name}({base}):", words, "")
            for row in rows:
                _add_typed_method(module, row, waits=waits)
    return module.text()


def _add_typed_method(module: Module, row: Operation, *, waits: bool) -> None:
    assert row.sdk is not None
    parameters = method_parameters(row.method)
    returns = module.type_text(get_type_hints(row.method)["return"])
    define = "    async def" if waits else "    def"
    given = _arguments_text(module, parameters)
    ask = "await self._ask_async" if waits else "self._ask"
    module.add(
        f"{define} {row.sdk.name}(",
        *_signature_lines(module, parameters),
        f"    ) -> {returns}:",
        *_docstring_lines(row.method.__doc__ or "", parameters),
        f'        answer: {returns} = {ask}("{row.name}", {{{given}}}, {returns})',
        "        return answer",
        "",
    )


def sdk_files() -> dict[Path, bytes]:
    """Return the contents of every generated module of the SDK."""
    written = {SDK / f"{name}.py": service_module(name, each) for name, each in _SERVICES.items()}
    if any(row.sdk for row in GATEWAY):
        written[SDK / "gateway.py"] = gateway_module()
    written[SDK / "developer.py"] = developer_module()
    return {path: _formatted(text) for path, text in written.items()}


def _formatted(text: str) -> bytes:
    ruff = Path(sys.executable).with_name("ruff")
    fixed = subprocess.run(
        [
            ruff,
            "check",
            "--select",
            "I,F401,RUF022",
            "--fix",
            "--quiet",
            "--stdin-filename",
            str(SDK / "x.py"),
            "-",
        ],
        input=text.encode(),
        capture_output=True,
        check=False,
        cwd=ROOT,
    ).stdout
    return subprocess.run(
        [ruff, "format", "--quiet", "--stdin-filename", str(SDK / "x.py"), "-"],
        input=fixed,
        capture_output=True,
        check=True,
        cwd=ROOT,
    ).stdout


def summary_file() -> dict[Path, bytes]:
    """Return what the first page of the command line's help says of each command."""
    root = root_command()
    lines = [
        '"""What the first page of help says of each command. Generated: `make generate`."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
        '__all__ = ["SUMMARIES"]',
        "",
        "# Each command with the section it stands in.",
        "SUMMARIES: Final[dict[str, tuple[str, str]]] = {",
    ]
    for name in COMMANDS:
        command = root.get_command(None, name)
        if not command.hidden:
            words = " ".join((command.help or "").partition("\n\n")[0].split())
            lines.append(f"    {name!r}: ({command.rich_help_panel or 'More'!r}, {words!r}),")
    source = "\n".join([*lines, "}"]) + "\n"
    return {COMMAND_LINE / "command_summaries.py": _formatted(source)}


def generated() -> dict[Path, bytes]:
    """Return every generated file with its contents."""
    return schema_files() | sdk_files() | summary_file() | plugin_files()


def plugin_files() -> dict[Path, bytes]:
    """Return the packages that clients install, each file with its contents."""
    return {PLUGINS / name: text.encode() for name, text in package_files().items()}


if __name__ == "__main__":
    SDK.mkdir(exist_ok=True)
    for write in (schema_files, sdk_files, summary_file, plugin_files):
        for path, contents in write().items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents)
