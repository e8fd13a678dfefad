"""Commands made from the table of operations: their options are the parameters of an operation.

What the command line has besides (the words of a command, what is given by position, shorter
flags, the table that shows an answer) stands on the row, as a `CommandHint`. An operation without
one is a command by its own name, and every operation can be called by that name.
"""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from keyword import iskeyword
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_modules import defer
from stratagem.errors import StratagemError, ValidationFailed
from stratagem.operation import CommandHint, Operation
from stratagem.surfaces.cli.inputs import looks_like_json, read_items, read_json, read_value
from stratagem.surfaces.cli.output import Render, confirm, shell_words, with_own_times
from stratagem.surfaces.cli.session import SHARED_NAMES, Session, command

if TYPE_CHECKING:
    import typer
else:
    # A plain line is read without it (`plain_lines`).
    typer = defer("typer")

__all__ = [
    "POSITIONAL_OPTION",
    "Invocation",
    "OperationRun",
    "alias_of",
    "call_operation",
    "commands_of",
    "dash_name",
    "example_words",
    "find_command",
    "find_operation",
    "hint_of_alias",
    "make_command",
    "operations_in_order",
]

_HERE: Final = "stratagem.surfaces.cli"
_PREFIX: Final = "strata_"
_TYPES: Final[dict[str, Any]] = {"string": str, "integer": int, "number": float, "boolean": bool}
# A higher bound is there to protect the server and tells nobody anything.
_WORTH_SAYING_MAX: Final = 100_000
# Names of tools and servers, ids and words of ours have no comma, so it can part several of them.
_PARTED_BY_COMMAS: Final = frozenset(
    {
        "allow", "approve", "deny", "ids", "kinds", "outcomes", "servers", "solutions",
        "toolNames", "tools",
    }
)  # fmt: skip
# These may have one: whoever gives a single value with a comma in it is told how to give several.
_WITH_COMMAS: Final = frozenset({"capabilities", "concepts", "keys", "known", "tags", "variables"})
# Of a parameter that is also given by position: the option that does the same.
POSITIONAL_OPTION: Final = "_option"
_COMMA_WITHOUT_SPACE: Final = re.compile(r",(?=\S)")


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of an operation by a command: with these arguments, answering there."""

    session: Session
    operation: Operation
    hint: CommandHint
    arguments: dict[str, Any]

    def run(self) -> dict[str, Any]:
        """Run the operation; return its answer."""
        return call_operation(self.session, self.operation.name, self.arguments)

    def show(self, answer: Mapping[str, Any], *, renderer: str = "") -> None:
        """Show an answer: as a table where there is one, else in a sentence."""
        output = self.session.output
        renderer = renderer or self.hint.renderer
        if output.json:
            output.data(answer)
            return
        if renderer:
            output.answer(answer, cast("Render", _load(renderer)))
            said = shell_words(answer.get("note") or "")
        else:
            from stratagem.call_forms import reword_answer

            said = self.operation.describe(reword_answer(answer, shell_words), shell_words)
            output.prose(with_own_times(said))
        self._show_next(answer, said)

    def _show_next(self, answer: Mapping[str, Any], said: str) -> None:
        """Say how to go on where there is more, unless what was said does."""
        takes_cursor = "cursor" in self.operation.parameters["properties"]
        if not (answer.get("truncated") and answer.get("next") and takes_cursor):
            return
        option = f"--cursor {shlex.quote(answer['next'])}"
        if option not in said:
            self.session.output.note(f"There is more: add {option}.")


def call_operation(session: Session, name: str, arguments: Any) -> dict[str, Any]:
    """Run an operation; what asks about the server is answered though nothing can be read."""
    try:
        with session.runtime_for(name, arguments) as runtime:
            return runtime.call(name, arguments, session.caller)
    except StratagemError as error:
        from stratagem.bootstrap import now
        from stratagem.operations import answer_unopened

        return answer_unopened(name, error, now())


def alias_of(operation: str) -> str:
    """Return the command that an operation has by its name alone."""
    return operation.removeprefix(_PREFIX).replace("_", "-")


def commands_of(operation: Operation) -> list[str]:
    """Return the commands of an operation; several where each of its actions has one."""
    return [" ".join(hint.path) for hint in operation.commands] or [alias_of(operation.name)]


def find_command(name: str) -> Any:
    """Return the command of that name, or None where no operation has it."""
    found = find_operation(name)
    return None if found is None else make_command(*found)


def find_operation(name: str) -> tuple[Operation, CommandHint] | None:
    """Return the operation that the command of a name runs; None where there is none."""
    for operation in operations_in_order():
        hint = next((each for each in operation.commands if each.path == (name,)), None)
        if hint is not None:
            return operation, hint
        if name in {alias_of(operation.name), operation.name}:
            return operation, hint_of_alias(operation)
    return None


def hint_of_alias(operation: Operation) -> CommandHint:
    """Return the one command of an operation; where actions have their own, one for all of them.

    Of an operation that has none, what is required can be given by position.
    """
    if len(operation.commands) == 1:
        return operation.commands[0]
    if operation.commands:
        return CommandHint((), panel="More", renderer=operation.commands[0].renderer)
    return CommandHint((), panel="More", positional=_required_in_order(operation))


def _required_in_order(operation: Operation) -> tuple[str, ...]:
    """Return the required parameters up to the first switch, or the first that takes several words.

    Whatever follows those words would be one of them.
    """
    properties = operation.parameters["properties"]
    required = operation.parameters.get("required", ())
    plain = CommandHint(())
    given: list[str] = []
    for name in (each for each in properties if each in required):
        kind = DescribedParameter(name, properties[name], plain).type
        if kind is bool:
            break
        given.append(name)
        if kind == list[str]:
            break
    return tuple(given)


def operations_in_order() -> Iterator[Operation]:
    """Return the operations, reading a system only when those before did not do."""
    from stratagem.operations import SYSTEMS

    for rows, _toolsets in SYSTEMS:
        yield from rows()


def _load(name: str) -> Any:
    module, _, function = name.rpartition(".")
    return getattr(import_module(f"{_HERE}.{module}"), function)


class OperationRun:
    """How a command runs an operation: with which parameters, and by which function."""

    def __init__(self, operation: Operation, hint: CommandHint) -> None:
        self.operation = operation
        self.hint = hint
        self.parameters = _Parameters(operation, hint)
        self.handler: Callable[..., None] = (
            _load(hint.handler) if hint.handler else _handler_of(operation)
        )
        # What the function takes besides; its annotations are texts.
        self.extras = list(inspect.signature(self.handler).parameters.values())[1:]

    def run(self, session: Session, given: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
        """Run the operation with what was given."""
        try:
            arguments = self.parameters.read(session, given)
            self.handler(Invocation(session, self.operation, self.hint, arguments), **extra)
        except StratagemError as error:
            _name_options(error, self.operation, self.hint)
            raise


def make_command(operation: Operation, hint: CommandHint) -> Any:
    """Return the command that runs an operation."""
    from stratagem.surfaces.cli.command_classes import OperationCommand

    operation_run = OperationRun(operation, hint)
    evaluated = inspect.signature(operation_run.handler, eval_str=True)
    extras = list(evaluated.parameters.values())[1:]
    names = {each.name for each in extras}
    own = [each for each in operation_run.parameters.parameters() if each.name not in names]

    # By position only: an operation may have a parameter of any name.
    def run(session: Session, /, **given: Any) -> None:
        extra = {name: given.pop(name) for name in names}
        operation_run.run(session, given, extra)

    first = inspect.Parameter("session_of_command", inspect.Parameter.POSITIONAL_ONLY)
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [first, *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *extras))]
    )
    run.__name__, run.__doc__ = operation.name, hint.help or operation.description
    made = typer.Typer(add_completion=False)
    name = hint.path[-1] if hint.path else alias_of(operation.name)
    made.command(
        name,
        cls=OperationCommand,
        rich_help_panel=hint.panel or None,
        epilog=_example_line(operation, hint),
    )(command(run))
    return typer.main.get_command(made)


def _name_options(error: StratagemError, operation: Operation, hint: CommandHint) -> None:
    """Call parameters what they are called at the command line: `--tool-name` for `toolName`."""
    if "violations" in error.details:
        # These are parameters of a tool, which has names of its own.
        return
    options = {
        f"`{name}`": dashed.upper() if name in hint.positional else f"--{dashed}"
        for name in operation.parameters["properties"]
        if (dashed := dash_name(name)) != name
    }

    def rename(text: str) -> str:
        for name, option in options.items():
            text = text.replace(name, option)
        return text

    error.message = rename(error.message)
    error.reword_hint(rename)


def _example_line(operation: Operation, hint: CommandHint) -> str | None:
    """Return a command that works on any database, made from the example of the operation."""
    words = example_words(operation, hint)
    if words is None:
        return None
    # A bracket would begin a style of the help.
    return f"Example: {shlex.join(['stratagem', *words])}".replace("[", r"\[")


def example_words(operation: Operation, hint: CommandHint) -> list[str] | None:
    """Return the words of a command that runs the example of an operation; None: there is none."""
    if operation.example is None:
        return None
    given = dict(operation.example)
    if any(given.pop(name, None) != value for name, value in hint.fixed.items()):
        return None
    for several, one in hint.single.items():
        if one in given:
            given[several] = [given.pop(one)]
    if hint.only is not None and not set(given) <= set(hint.only):
        return None
    words = [*(hint.path or (alias_of(operation.name),))]
    for name in hint.positional:
        if name in given:
            words += _as_words(given.pop(name))
    for name, value in given.items():
        flag = f"--{dash_name(name)}"
        texts = () if value is True else _as_words(value)
        words += [flag] if value is True else [word for each in texts for word in (flag, each)]
    return words


def _as_words(value: Any) -> list[str]:
    """Return a value as it is written at the command line: a list of texts as several words."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    return [orjson.dumps(value).decode()]


def _handler_of(operation: Operation) -> Callable[..., None]:
    """Return what runs an operation: what cannot be undone is asked about first."""
    # One that takes a confirmation says what it would do until it has it.
    names = operation.parameters["properties"].keys()
    erases = operation.irreversible or (operation.destructive and "preview" in names)
    return _ask_and_run if erases and "confirm" not in names else _run_and_show


def _run_and_show(invocation: Invocation) -> None:
    invocation.show(invocation.run())


def _ask_and_run(
    invocation: Invocation,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask.")] = False,
) -> None:
    arguments = invocation.arguments
    given = shlex.join(str(word) for each in arguments.items() for word in each)
    question = f"{invocation.operation.title}: {given}? This cannot be undone."
    asks = not arguments.get("preview")
    if asks and not confirm(invocation.session.output, question, yes=yes):
        raise typer.Abort
    _run_and_show(invocation)


class _Parameters:
    """The parameters of an operation as options and arguments of its command."""

    def __init__(self, operation: Operation, hint: CommandHint) -> None:
        self._hint = hint
        self._required = {*operation.parameters.get("required", ()), *hint.required}
        # A transaction that only reads is begun in a database that may be written to.
        shared = SHARED_NAMES - {"read_only"}
        properties: Mapping[str, Mapping[str, Any]] = operation.parameters["properties"]
        self._shared = shared.intersection(properties)
        left_out = {*hint.fixed, *hint.single.values()}
        self.described = {
            name: DescribedParameter(name, each, hint)
            for name, each in properties.items()
            if name not in shared | left_out and (hint.only is None or name in hint.only)
        }
        self._budget = "max_chars" in properties

    @property
    def required_options(self) -> set[str]:
        """The options that the command cannot do without."""
        return {
            each.python_name
            for name, each in self.described.items()
            if name in self._required and name not in self._hint.positional
        }

    def positional(self) -> Iterator[tuple[str, Any, bool]]:
        """Return what is given by position, in its order: name, type, and whether it must be."""
        for name in self._hint.positional:
            each = self.described[name]
            yield each.python_name, self._type_by_position(each), name in self._required

    def flags_of(self, described: DescribedParameter) -> list[str]:
        """Return the flags of an option."""
        return described.flags(self._hint.flags.get(described.name, ()))

    def _type_by_position(self, described: DescribedParameter) -> Any:
        return list[str] if described.name == self._hint.joined else described.type

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Make the arguments, in their order, and then the options."""
        for name in self._hint.positional:
            yield self._argument(self.described[name])
        for each in self.described.values():
            yield self._option(each)
        if any(each.is_any_json for each in self.described.values()):
            yield _text_parameter()

    def read(self, session: Session, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the operation."""
        arguments: dict[str, Any] = dict(self._hint.fixed)
        for name, each in self.described.items():
            python = each.python_name
            value, by_position = given.get(python), name in self._hint.positional
            by_flag = given.get(f"{python}{POSITIONAL_OPTION}") if by_position else None
            _check_given_once(name, value, by_flag)
            if by_position and value is None:
                value, by_position = by_flag, False
            if value is None or value == []:
                continue
            if name in self._hint.files:
                arguments[name] = read_items(value)
            elif by_position and name == self._hint.joined:
                arguments[name] = " ".join(value)
            elif name in self._hint.single and len(value) == 1:
                arguments[self._hint.single[name]] = value[0]
            else:
                _say_how_several_are_given(session, each, value)
                text = bool(given.get("text")) and each.is_any_json
                arguments[name] = each.read(value, by_position=by_position, text=text)
                if each.is_any_json and not text and looks_like_json(arguments[name]):
                    session.output.note("This looks like JSON but is not, so it is stored as text.")
        # A namespace of the environment says where to write, and filters nothing.
        if "namespace" in self._shared and session.options.namespace_asked:
            arguments["namespace"] = session.namespace
        if self._budget:
            # People scroll; they have no context that an answer could fill.
            arguments.setdefault("max_chars", limits.ANSWER_CHARS_MAX)
        return arguments

    def _argument(self, described: DescribedParameter) -> inspect.Parameter:
        kind = self._type_by_position(described)
        several = kind == list[str]
        metavar = dash_name(described.name).upper() + ("..." if several else "")
        argument = typer.Argument(
            metavar=metavar,
            help=described.help,
            show_default=False,
            autocompletion=self._completion(described.name),
        )
        required = described.name in self._required
        return _parameter(described.python_name, kind, argument, required=required)

    def _option(self, described: DescribedParameter) -> inspect.Parameter:
        name, positional = described.python_name, described.name in self._hint.positional
        option = typer.Option(
            *self.flags_of(described),
            help=described.help,
            show_default=False,
            hidden=positional,
            metavar=described.metavar,
            autocompletion=self._completion(described.name),
        )
        required = described.name in self._required and not positional
        name = f"{name}{POSITIONAL_OPTION}" if positional else name
        return _parameter(name, described.type, option, required=required)

    def _completion(self, name: str) -> Callable[..., list[str]] | None:
        function = self._hint.completions.get(name)
        if function is None:
            return None

        def complete(ctx: typer.Context, incomplete: str) -> list[str]:
            names: list[str] = _load(f"completion.{function}")(ctx, incomplete)
            return names

        return complete


class DescribedParameter:
    """One parameter of an operation, by its schema."""

    def __init__(self, name: str, schema: Mapping[str, Any], hint: CommandHint) -> None:
        self.name = name
        self._is_file = name in hint.files
        self._action = f"{hint.fixed['action']}: " if "action" in hint.fixed else ""
        self.python_name = f"{name}_" if iskeyword(name) else name
        choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
        # Null says something of its own here: that what is there is cleared.
        self._is_clearable = {"type": "null"} in schema.get("anyOf", ()) and "default" not in schema
        # A word in the place of JSON, such as `auto`.
        self._words = [each["const"] for each in choices if "const" in each]
        choices = [each for each in choices if "const" not in each]
        kinds = {each.get("type") for each in choices}
        # The first choice is the one that can say everything.
        self._schema = {**schema, **(choices[0] if choices else {})}
        if {"string", "array"} <= kinds:
            # One text or several: the option can be repeated.
            self._schema = next(each for each in choices if each["type"] == "array")
            self._schema = {**schema, **self._schema}
        self._kind = self._schema.get("type")
        self.is_any_json = self._kind is None
        # What is no JSON is left to the operation to read.
        self._lenient = self.is_any_json or (self._kind == "object" and "string" in kinds)

    @property
    def type(self) -> Any:
        """The type of the option."""
        if self._is_list_of_text:
            return list[str]
        return str if self._is_clearable else _TYPES.get(str(self._kind), str)

    @property
    def help(self) -> str:
        """What the parameter is for, with its choices, bounds and default."""
        words = str(self._schema.get("description", "")).removeprefix(self._action)
        if self._is_negated:
            off = words.removeprefix("false: ")
            words = off if off != words else f"Do not {words[:1].lower()}{words[1:]}"
        words = words[:1].upper() + words[1:]
        if choices := self._schema.get("enum"):
            words = f"{words}: {', '.join(map(str, choices))}".lstrip(": ")
        notes = [each for each in (self._form, self._bounds, self._default) if each]
        return f"{words} ({'; '.join(notes)})".strip() if notes else words

    @property
    def metavar(self) -> str:
        """What stands for a value in the help."""
        if self._is_file:
            return "FILE"
        numbers = {"integer": "N", "number": "N", "string": "TEXT", "boolean": ""}
        return "TEXT" if self._is_list_of_text else numbers.get(str(self._kind), "JSON")

    @property
    def _is_list_of_text(self) -> bool:
        items = self._schema.get("items") or {}
        return self._kind == "array" and items.get("type") == "string"

    @property
    def _parts_by_commas(self) -> bool:
        return self._is_list_of_text and self.name in _PARTED_BY_COMMAS

    def may_mean_several(self, given: Any) -> bool:
        """Whether one value was given, with a comma that may have been meant to part several."""
        if not self._is_list_of_text or self.name not in _WITH_COMMAS or len(given) != 1:
            return False
        return bool(_COMMA_WITHOUT_SPACE.search(given[0])) and not given[0].startswith("[")

    @property
    def _is_negated(self) -> bool:
        return self.type is bool and self._schema.get("default") is True

    @property
    def _form(self) -> str:
        if self._is_file:
            return "a JSON array, or a line each; - reads stdin"
        if self._is_list_of_text:
            return "repeat for several" + (", or a,b" if self._parts_by_commas else "")
        if self._lenient:
            return "JSON, else text; - reads stdin"
        return "JSON; - reads stdin" if self._kind in {"object", "array"} else ""

    @property
    def _bounds(self) -> str:
        low, high = self._schema.get("minimum"), self._schema.get("maximum")
        if high is None or high > _WORTH_SAYING_MAX:
            return ""
        return f"at most {high}" if low is None else f"{low} to {high}"

    @property
    def _default(self) -> str:
        default = self._schema.get("default")
        is_said = isinstance(default, str | int | float) and not isinstance(default, bool)
        return f"default {default}" if is_said and default != "" else ""

    def flags(self, others: tuple[str, ...]) -> list[str]:
        """Return the flags of the option; of a switch that is on, the one that turns it off."""
        name = dash_name(self.name)
        if self._is_negated:
            return [f"--no-{name}"]
        if self.type is bool and self._schema.get("default") is None:
            return [f"--{name}/--no-{name}"]
        return [f"--{name}", *others]

    def read(self, given: Any, *, by_position: bool, text: bool) -> Any:
        """Return the value that was given."""
        if self._is_negated:
            return not given
        if not isinstance(given, str):
            by_words = isinstance(given, list) and not by_position
            texts = _read_texts(given) if by_words else given
            return _part_by_commas(texts) if self._parts_by_commas else texts
        return self._read_word(given, by_position=by_position, text=text)

    def _read_word(self, given: str, *, by_position: bool, text: bool) -> Any:
        if given in self._words:
            return given
        if self._is_clearable:
            return self._read_clearable(given)
        if self._lenient:
            return read_value(given, text=text)
        if self._kind in {"object", "array"}:
            return read_json(given, field=self.name)
        # A log is longer than what a shell passes on: `-` reads it from stdin. A name is not.
        return given if by_position else read_value(given, text=True)

    def _read_clearable(self, given: str) -> Any:
        """Return a text or a number, or None for the word null."""
        if given == "null":
            return None
        if self._kind == "string":
            return given
        try:
            return float(given)
        except ValueError as error:
            raise ValidationFailed(
                f"`{self.name}` is a number; it was {given[:100]!r}.",
                field=self.name,
                invalid_value=given[:100],
                hint="Give a number, or the word null.",
            ) from error


def _text_parameter() -> inspect.Parameter:
    words = "Text, even if it looks like JSON."
    return inspect.Parameter(
        "text",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option("--text", metavar="", help=words)],
    )


def _check_given_once(name: str, by_position: Any, by_flag: Any) -> None:
    if by_position is None or by_flag is None:
        return
    dashed = dash_name(name)
    raise ValidationFailed(
        f"{dashed.upper()} is given twice: {by_position!r}, and --{dashed} {by_flag!r}.",
        field=name,
        hint="Give one of them. A switch such as --worked takes no value.",
    )


def _say_how_several_are_given(session: Session, described: DescribedParameter, given: Any) -> None:
    if described.may_mean_several(given):
        option = f"--{dash_name(described.name)}"
        session.output.note(f"{given[0]!r} is taken as one value. Several: {option} A {option} B.")


def _part_by_commas(texts: list[str]) -> list[str]:
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def _read_texts(given: list[str]) -> list[str]:
    """Return several texts; one that is a JSON array of texts stands for those."""
    texts = [read_value(each, text=True) for each in given]
    if len(texts) == 1 and texts[0].startswith("["):
        with suppress(orjson.JSONDecodeError):
            values = orjson.loads(texts[0])
            texts = values if all(isinstance(each, str) for each in values) else texts
    return texts


def _parameter(name: str, kind: Any, described: Any, *, required: bool) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else None,
        annotation=Annotated[kind if required else kind | None, described],
    )


def dash_name(name: str) -> str:
    """Return `tool-name` for `tool_name` and for `toolName`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).replace("_", "-").lower()
