"""Where answers go: to people as text and tables, to programs as JSON.

Answers go to stdout; notes, progress and errors to stderr, except errors in JSON, which are
answers. Stored text cannot move the cursor, colour the screen or change the direction of text:
control characters are escaped.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stratagem import errors
from stratagem.deferred_modules import defer
from stratagem.errors import (
    DatabaseCorrupt,
    InternalFault,
    InvalidInput,
    MissingRequired,
    StorageBusy,
    StorageFull,
    StorageUnavailable,
    StratagemError,
    ValidationFailed,
)

if TYPE_CHECKING:
    import typer
    from rich.console import Console
else:
    # A plain line is read without it (`plain_lines`).
    typer = defer("typer")

__all__ = [
    "Output",
    "Render",
    "complete_answer",
    "confirm",
    "exit_code_of",
    "json_text",
    "printable",
    "shell_words",
    "when",
    "with_own_times",
]

_PIPE_CLOSED = 141
_EXTRA_WORDS = "Got unexpected extra argument"
# Of messages of the library that parses the command line.
_LIBRARY_TYPES = re.compile(r"(?<=is not a valid )(int|float)(?: range)?(?=\.)")
_TYPE_WORDS = {"int": "integer", "float": "number"}
# Wide enough for any key: what goes into a file or a pipe is never wrapped.
_UNBOUNDED = 10_000
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
# They change the order in which a terminal shows what is around them.
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SHOWN = (
    {code: text for code, text in _CONTROL.items() if chr(code) not in "\n\t"}
    | {code: f"\\u{code:04x}" for code in _TURNING}
    | {13: ""}
)
# The same in JSON, which escapes only the first 32 by itself; for a program it means the same.
_ESCAPED_IN_JSON = {code: f"\\u{code:04x}" for code in (*range(127, 160), *_TURNING)}

# As answers have times, and nobody else writes them.
_TIMESTAMP = re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")
# What agents call, and what people type instead.
_HELP_OF = re.compile(r"\btool_help ((?!lists\b)[\w.-]*\w)")
_COMMANDS = {
    "tool_help": "stratagem tool-help",
    "options.timeout": "--timeout MS",
    "min_score=0": "--min-score 0",
    'kinds=["concept", "incident"]': "--kinds concept,incident",
    'kinds=["concept"]': "--kinds concept",
    'kinds=["incident"]': "--kinds incident",
    "Add the parameter and call again.": "Add it, or see the command's --help.",
    "Add one of them and call again.": "Add one of them, or see the command's --help.",
    "Add one or the other and call again.": "Add one or the other, or see the command's --help.",
    "The details say": "With --json, the details say",
}
# A command with several databases must name the one that it is about.
_OF_A_DATABASE = (DatabaseCorrupt, StorageBusy, StorageFull, StorageUnavailable)
# Details of a refused call that are worth a look.
_SHOWN_BELOW = frozenset({"violations", "choices", "corrections", "knownFix"})

# Of an answer of its own type, which `test_renderers` holds against what the operation returns.
Render = Callable[["Console", Any], None]


class Output:
    """Where one command's answer goes, and in which form."""

    def __init__(self, *, json: bool = False) -> None:
        self.json = json

    @cached_property
    def console(self) -> Console:
        """Where people read answers."""
        return _console(stderr=False)

    @cached_property
    def aside(self) -> Console:
        """Where people read what is said about answers."""
        return _console(stderr=True)

    def answer(self, answer: Mapping[str, Any], render: Render) -> None:
        """Give an answer: rendered for people, or as it is for programs."""
        if self.json:
            self.data(answer)
        else:
            render(self.console, answer)
            if note := answer.get("note"):
                self.note(shell_words(note))

    @property
    def is_plain(self) -> bool:
        """Whether answers are text that is neither coloured nor folded: in a file or a pipe."""
        forced = os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE")
        return not (self.json or forced or sys.stdout.isatty())

    def text(self, text: str, answer: Mapping[str, Any]) -> None:
        """Give an answer as text that is ready to be printed."""
        sys.stdout.write(text)
        if note := answer.get("note"):
            self.note(shell_words(note))

    def data(self, answer: Any) -> None:
        """Print JSON: on one line, or indented on a terminal."""
        sys.stdout.write(json_text(answer, indented=sys.stdout.isatty()) + "\n")

    def line(self, text: str, style: str = "") -> None:
        """Print a line for people."""
        self.console.print(printable(text), style=style, soft_wrap=True)

    def prose(self, text: str) -> None:
        """Print sentences: on a terminal no word is broken."""
        self.console.print(printable(text), soft_wrap=not self.console.is_terminal)

    def note(self, text: str) -> None:
        """Say something about the answer."""
        self.aside.print(printable(text), style="dim", soft_wrap=not self.aside.is_terminal)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Turn an error into words, or JSON, and its exit code."""
        try:
            yield
        except (typer.Exit, typer.Abort, typer.TyperException, BrokenPipeError):
            raise
        except StratagemError as error:
            raise typer.Exit(self.fail(error)) from error
        except PermissionError as error:
            # Of any file that a command reads or writes besides a database.
            refused = StorageUnavailable(f"You may not use {error.filename}: {error.strerror}.")
            raise typer.Exit(self.fail(refused)) from error
        except Exception as error:
            from stratagem.places import removed_working_folder

            raise typer.Exit(self.fail(removed_working_folder() or _defect(error))) from error

    def fail(self, error: StratagemError) -> int:
        """Report an error; return its exit code."""
        error.reword_hint(shell_words)
        if self.json:
            self.data(error.envelope())
        else:
            self._explain(error)
        return errors.TABLE[error.code].exit_code

    def usage(self, error: typer.TyperException) -> int:
        """Report a command line that was not understood; return the exit code."""
        # Typer has the words of its validator in front of its own.
        message = error.format_message().replace(": Value error, ", ": ")
        if not message:
            # A group without a command has shown its help page, which says all there is to say.
            return errors.TABLE[InvalidInput.code].exit_code
        message += "" if message.endswith((".", "?")) else "."
        return self.fail(_usage_error(error, message))

    def _explain(self, error: StratagemError) -> None:
        from rich.text import Text

        message = printable(with_own_times(error.message))
        self.aside.print(Text.assemble(("Error: ", "bold red"), (message, "red")))
        place = str(error.details.get("path", ""))
        if isinstance(error, _OF_A_DATABASE) and place and place not in error.message:
            self.aside.print(Text.assemble(("At: ", "bold"), printable(place)), soft_wrap=True)
        if error.details.get("conflicts"):
            from stratagem.surfaces.cli.differences import show_conflicts

            show_conflicts(self.aside, error.details)
        if not _SHOWN_BELOW.isdisjoint(error.details):
            from stratagem.surfaces.cli.advice_tables import show_refusal

            show_refusal(self.aside, error.details)
        if error.hint:
            hint = printable(error.hint)
            self.aside.print(Text.assemble(("Hint: ", "bold"), hint))


def _usage_error(error: typer.TyperException, message: str) -> StratagemError:
    """Return the error for a command line that was not understood."""
    context, param = getattr(error, "ctx", None), getattr(error, "param", None)
    # As a command is called, not as it may have been typed: operations have underscores.
    called = context.command_path.replace("_", "-") if context else "stratagem"
    help_page = f"See `{called} --help`."
    if param is None and message.startswith(_EXTRA_WORDS):
        return InvalidInput(message, hint=f"Quote what has blanks in it: 'two words'. {help_page}")
    if param is None:
        option = getattr(error, "option_name", None)
        field = {"field": option.lstrip("-")} if option else {}
        return InvalidInput(message, hint=help_page, **field)
    name = param.name.removesuffix("_option")
    # The library has a type for what is missing, which knows of what type that would be.
    if not hasattr(error, "param_type"):
        words = _LIBRARY_TYPES.sub(lambda found: _TYPE_WORDS[found[1]], message)
        return ValidationFailed(words, hint=help_page, field=name)
    shown = param.get_error_hint(context).replace("'", "")
    said = [f"{shown}: {param.help.rstrip('.')}."] if param.help else []
    if example := getattr(context and context.command, "epilog", None):
        # The help page would take a bracket for a style.
        help_page += f" {example}".replace(r"\[", "[")
    return MissingRequired(message, hint=" ".join([*said, help_page]), field=name)


@contextmanager
def complete_answer() -> Iterator[None]:
    """See to it that the answer of a command is written to its last byte."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough, as in `| head`.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(_PIPE_CLOSED) from None


def exit_code_of(output: Output, run: Callable[[], object]) -> int:
    """Run a command, report what is wrong with it, and return the code to exit with."""
    try:
        with output.reporting():
            code = run()
    except typer.Exit as error:
        code = error.exit_code
    except typer.Abort:
        output.note("Stopped. Nothing was changed.")
        code = 1
    except typer.TyperException as error:
        code = output.usage(error)
    return code if isinstance(code, int) else 0


def confirm(output: Output, question: str, *, yes: bool) -> bool:
    """Ask whether to continue; without a terminal the answer must be given by an option.

    Raises:
        InvalidInput: Nobody can be asked.
    """
    if yes:
        return True
    if output.json or not sys.stdin.isatty():
        raise InvalidInput(
            "This needs confirmation, and the input is not a terminal.",
            hint="Nothing was changed. Add --yes to do it.",
        )
    return typer.confirm(printable(question), err=True)


def shell_words(text: str) -> str:
    """Return advice with commands in place of operations."""
    text = _HELP_OF.sub(r"stratagem tool-help --tool-name \1", text)
    for said, meant in _COMMANDS.items():
        text = text.replace(said, meant)
    # Only now: it reads the whole table of operations.
    from stratagem.call_forms import reword

    return reword(text, "command")


def when(timestamp: str) -> str:
    """Return a time in the reader's own zone, to the second."""
    return datetime.fromisoformat(timestamp).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def with_own_times(text: str) -> str:
    """Return a text with its times in the reader's own zone."""
    return _TIMESTAMP.sub(lambda found: when(found[0]), text)


def json_text(value: Any, *, indented: bool) -> str:
    """Return JSON in which nothing that was stored reaches a terminal as a control character."""
    import orjson

    option = orjson.OPT_INDENT_2 if indented else None
    return orjson.dumps(value, option=option, default=str).decode().translate(_ESCAPED_IN_JSON)


def printable(text: str) -> str:
    """Return a text whose control characters are seen instead of obeyed."""
    return text.translate(_SHOWN)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            # Rich would end the process here, with another code than ours.
            raise BrokenPipeError

    console = Plain(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _UNBOUNDED
    return console


def _defect(error: Exception) -> InternalFault:
    if os.environ.get("STRATAGEM_DEBUG", "0") not in {"", "0"}:
        import traceback

        traceback.print_exception(error)
    return InternalFault(
        f"{type(error).__name__}: {error}",
        hint="This is a defect: please report it, with what STRATAGEM_DEBUG=1 prints.",
    )
