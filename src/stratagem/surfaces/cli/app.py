"""The root of the command line: finding the command, its help page and the common options."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from stratagem.errors import ValidationFailed
from stratagem.surfaces.cli.command_names import COMMANDS
from stratagem.surfaces.cli.output import Output, complete_answer, exit_code_of
from stratagem.surfaces.cli.session import Options, shared_parameters
from stratagem.surfaces.cli.settings import FileSettings
from stratagem.version import VERSION

__all__ = ["COMMANDS", "app", "root_command"]

_HERE: Final = "stratagem.surfaces.cli"


class Root(TyperGroup):
    """The commands, each imported when it is asked for.

    An operation of the table that has no command of its own gets one from its parameters.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        del ctx
        # Every other operation is a command too; `operations` lists them.
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None where there is none of that name."""
        if cmd_name not in self.commands:
            found = _load(cmd_name)
            if found is not None:
                self.commands[cmd_name] = found
            else:
                # So that a name that is near can be suggested.
                self.commands = {name: self.get_command(ctx, name) for name in COMMANDS}
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names; suggest one that others call so."""
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            if near := _meant_commands(args[0]):
                error.message = f"No such command {args[0]!r}. Did you mean {' or '.join(near)}?"
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the first page of help, for which no command has to be imported."""
        from stratagem.surfaces.cli.command_summaries import SUMMARIES

        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, (panel, words) in SUMMARIES.items():
            sections.setdefault(panel, []).append((name, words))
        width = max(len(name) for name in SUMMARIES)
        for panel, rows in sections.items():
            # Alike in all sections, so that the page has one column of words.
            _write_section(formatter, panel, [(name.ljust(width), words) for name, words in rows])
        options: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            if record := each.get_help_record(ctx):
                panel = getattr(each, "rich_help_panel", None) or "Options"
                options.setdefault(panel, []).append(record)
        for panel, rows in options.items():
            _write_section(formatter, panel, rows)
        self.format_epilog(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run a command to the last byte of its answer."""
        with complete_answer():
            return super().invoke(ctx)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command that some arguments name, and exit with its code."""
        del standalone_mode
        given = list(sys.argv[1:] if args is None else args)
        # A line that cannot be parsed does not tell whether errors are wanted as JSON, so this is
        # checked separately.
        output = Output(json="--json" in given or "STRATAGEM_JSON" in os.environ)
        run = super().main

        def run_command() -> Any:
            words = _enter_folder(given)
            file_settings = _file_settings(words)
            with _explained_by(file_settings):
                return run(
                    words,
                    prog_name,
                    complete_var,
                    standalone_mode=False,
                    windows_expand_args=windows_expand_args,
                    obj=file_settings,
                    default_map=file_settings.defaults(shared=True),
                    **extra,
                )

        sys.exit(exit_code_of(output, run_command))


def _write_section(formatter: Any, title: str, rows: list[tuple[str, str]]) -> None:
    with formatter.section(typer.style(title, bold=True)):
        formatter.write_dl(rows)


def _enter_folder(given: list[str]) -> list[str]:
    """Work in the folder that the line begins with, as in `git -C FOLDER`; return the rest of it.

    Before anything is read: the project's memory and settings are found from there.
    """
    if given[:1] != ["-C"]:
        return given
    folder = given[1] if len(given) > 1 else ""
    try:
        os.chdir(folder)
    except OSError as error:
        raise ValidationFailed(
            f"The folder {folder!r} cannot be used: {error.strerror}.",
            field="-C",
            hint="Choose another folder: stratagem -C FOLDER COMMAND.",
        ) from error
    return given[2:]


def _file_settings(given: Sequence[str]) -> FileSettings:
    """Return the settings of files, for commands that may use them."""
    unused = not given or given[0].startswith("--completion")
    return FileSettings() if unused else FileSettings.read()


@contextmanager
def _explained_by(file_settings: FileSettings) -> Iterator[None]:
    try:
        yield
    except typer.BadParameter as error:
        file_settings.explain(error)
        raise


def root_command() -> Root:
    """Return the command line as one command."""
    command = typer.main.get_command(app)
    assert isinstance(command, Root)
    return command


def _meant_commands(word: str) -> list[str]:
    """Return the commands of the operations that others know by a word."""
    from stratagem.call_forms import command_words
    from stratagem.operations import TABLE

    name = word.casefold().replace("-", "_")
    meant = [row for row in TABLE.values() if name in row.also_called]
    # Of an operation that does several things and one that does this alone, the latter first.
    return [repr(" ".join(command_words(row, {"action": name}))) for row in reversed(meant)]


def _load(name: str) -> Any:
    """Import and return a command."""
    module = COMMANDS.get(name)
    if module is None:
        from stratagem.surfaces.cli.operation_commands import find_command

        return find_command(name)
    source: typer.Typer = import_module(f"{_HERE}.{module}").app
    # Alone: making a command out of its parameters takes longer than most of them run.
    alone = typer.Typer(add_completion=False)
    alone.registered_commands = [each for each in source.registered_commands if each.name == name]
    alone.registered_groups = [each for each in source.registered_groups if each.name == name]
    made: Any = typer.main.get_command(alone)
    return made.commands[name] if alone.registered_groups else made


def _version(wanted: bool | None) -> None:
    if wanted:
        typer.echo(f"stratagem {VERSION}")
        raise typer.Exit


def _root(ctx: typer.Context, **given: Any) -> None:
    """Memory for AI agents that branches and travels in time."""
    given.pop("version", None)
    file_settings = ctx.obj if isinstance(ctx.obj, FileSettings) else FileSettings()
    # What is given to a command wins over what is given at the root, so that the options of the
    # latter have no default below it.
    ctx.default_map = dict.fromkeys(("mcp", "serve"), file_settings.defaults(shared=False))
    ctx.obj = Options(file_settings=file_settings).overridden(given)
    source = ctx.get_parameter_source("namespace")
    if source is not None and source.name in {"ENVIRONMENT", "DEFAULT_MAP"}:
        ctx.obj = replace(ctx.obj, namespace_asked=False)
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


_root.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        inspect.Parameter(
            "version",
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                bool | None,
                typer.Option(
                    "--version", callback=_version, is_eager=True, help="Show the version."
                ),
            ],
        ),
        *shared_parameters(environment=True),
    ]
)

app = typer.Typer(
    cls=Root,
    name="stratagem",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback(
    invoke_without_command=True,
    epilog="Options under Everywhere go before or after a command, or into the environment: "
    "STRATAGEM_DB, STRATAGEM_BRANCH and so on.",
)(_root)
