"""The common options of all commands: the database, namespace and branch, and the form of answers.

They can be given before the command, after it, or as environment variables; the one nearest to
the command wins.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_modules import defer
from stratagem.engine.relevance import TRY_MIN
from stratagem.errors import DatabaseNotFound, StratagemError, ValidationFailed
from stratagem.places import (
    check_place,
    check_there,
    database_path,
    is_address,
    is_there,
    personal_path,
)
from stratagem.surfaces.cli.output import Output
from stratagem.surfaces.cli.settings import SETTINGS, FileSettings, option

if TYPE_CHECKING:
    import typer

    from stratagem.bootstrap import Runtime, Settings
    from stratagem.operation import Caller
    from stratagem.storage.contract import Store
else:
    # A plain line is read without it (`plain_lines`).
    typer = defer("typer")

__all__ = ["SHARED_NAMES", "Options", "Session", "command", "shared_parameters"]

ACTOR = "cli"
_PLACES = ("db", "namespace", "branch")
PANEL = "Everywhere"

Durability = Literal["full", "fast"]
Embedder = Literal["static", "minilm", "none"]
Redaction = Literal["basic", "strict", "none"]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of every command, as given so far."""

    db: str | None = None
    namespace: str | None = None
    branch: str | None = None
    durability: Durability | None = None
    embedder: Embedder | None = None
    auto_embed: bool | None = None
    redaction: Redaction | None = None
    relevance_min: float | None = None
    read_only: bool | None = None
    json: bool | None = None
    # A namespace from the environment is where to write, not a filter for searches.
    namespace_asked: bool = False
    file_settings: FileSettings = field(default_factory=FileSettings)

    def overridden(self, given: Mapping[str, Any]) -> Options:
        """Return the options with those that were given nearer to the command.

        Raises:
            ValidationFailed: A place to work in is blank. Another would be worked in, unnoticed.
        """
        nearer = {name: value for name, value in given.items() if value is not None}
        blank = next((each for each in _PLACES if not nearer.get(each, each).strip()), None)
        if blank is not None:
            raise ValidationFailed(
                f"--{blank} is empty.", field=blank, hint="Give it a value, or leave it out."
            )
        asked = self.namespace_asked or "namespace" in nearer
        return replace(self, **nearer, namespace_asked=asked)


class Session:
    """One run of a command: the database it works on, and where its answer goes."""

    def __init__(self, options: Options, typed: Mapping[str, Any] | None = None) -> None:
        """Begin a run of a command; `typed` are options of its own that the line has."""
        self.options = options
        self.typed = typed or {}
        self.output = Output(json=bool(options.json))

    @cached_property
    def database(self) -> str:
        """The database to work on."""
        given = self.options.db
        check_place(given or "")
        if given is not None and (given == ":memory:" or is_address(given)):
            return given
        return str(self._path)

    @property
    def personal(self) -> str | None:
        """The person's own database, which is read beside that of the project one works in."""
        return None if self.options.db is not None else personal_path(self.database)

    @property
    def git_folder(self) -> str | None:
        """Where one works, if the memory follows git there and no branch was asked for."""
        said = self.options.file_settings.environment.get(SETTINGS["branches"].variable)
        follows = said == "git" and self.options.branch is None and self.personal is not None
        return str(Path.cwd()) if follows else None

    @property
    def command(self) -> str:
        """How a command on the same database begins, to be pasted; an address may be secret."""
        if self.options.db is None or is_address(self.database):
            return "stratagem"
        return shlex.join(["stratagem", "--db", self.database])

    @property
    def namespace(self) -> str:
        """The namespace of whatever names none."""
        return self.options.namespace or "default"

    @property
    def branch(self) -> str:
        """The branch to work on."""
        return self.options.branch or "default"

    @property
    def embedder(self) -> str | None:
        """The embedder that was asked for, if any was."""
        return "none" if self.options.auto_embed is False else self.options.embedder

    @property
    def relevance_min(self) -> float:
        """From which relevance on a fix is recommended."""
        asked = self.options.relevance_min
        return TRY_MIN if asked is None else asked

    @property
    def caller(self) -> Caller:
        """Who calls. A process ends with its command, so it has nothing to switch."""
        from stratagem.operation import Caller

        return Caller(ACTOR, self.namespace, self.branch, can_switch=False, authority="operator")

    @contextmanager
    def runtime(
        self,
        *,
        must_exist: bool = False,
        read_only: bool | None = None,
        workspace: str | None = None,
    ) -> Iterator[Runtime]:
        """Open the database, or a workspace of it, for as long as the block runs."""
        from stratagem.bootstrap import start

        settings = self._settings(must_exist=must_exist, read_only=read_only)
        if workspace is not None:
            from stratagem.access.workspaces import place_within

            settings = replace(settings, path=place_within(self.database, workspace))
        runtime = start(settings)
        try:
            yield runtime
        finally:
            runtime.close()

    @contextmanager
    def runtime_for(self, operation: str, arguments: Any) -> Iterator[Runtime]:
        """Open the database for a call; one that only reads or removes makes none.

        The gateway's own tools can be called without a database, as with an empty one.
        """
        from stratagem.bootstrap import start
        from stratagem.operations import find

        row = find(operation)
        given = arguments if isinstance(arguments, Mapping) else {}
        of_gateway = row.part == "gateway"
        must_exist = row.needs_database(given) and not of_gateway
        settings = self._settings(must_exist=must_exist, read_only=None)
        if row.reads(given) and of_gateway and not is_there(self.database):
            settings = replace(settings, path=":memory:")
        with closing(start(settings)) as runtime:
            yield runtime

    @contextmanager
    def store(self, *, read_only: bool) -> Iterator[Store]:
        """Open a database that may be damaged, and nothing that stands on it."""
        from stratagem.bootstrap import open_store, require_database

        try:
            require_database(self.database)
        except DatabaseNotFound:
            raise
        except StratagemError:
            # What is wrong with it is for the caller to find out.
            check_there(self.database)
        with open_store(self._settings(must_exist=False, read_only=read_only)) as store:
            yield store

    def _settings(self, *, must_exist: bool, read_only: bool | None) -> Settings:
        from stratagem.bootstrap import Settings, require_database

        if must_exist:
            require_database(self.database)
        return Settings(
            self.database,
            durability=self.options.durability or "full",
            embedder=self.embedder,
            read_only=bool(self.options.read_only) if read_only is None else read_only,
            redaction=self.options.redaction or "basic",
            relevance_min=self.relevance_min,
            environment=self.options.file_settings.environment,
            allow_hosts=self.options.file_settings.values_of("allow_hosts"),
            allow_callables=self.options.file_settings.values_of("allow_callables"),
            personal=self.personal,
            git_folder=self.git_folder,
            bundles=self.options.file_settings.environment.get("STRATAGEM_BUNDLES"),
        )

    def call(self, operation: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation with those arguments that were given."""
        given = {name: value for name, value in arguments.items() if value is not None}
        with self.runtime_for(operation, given) as runtime:
            return runtime.call(operation, given, self.caller)

    @property
    def _path(self) -> Path:
        return database_path(self.options.db)


def command(run: Callable[..., None]) -> Callable[..., None]:
    """Make a function of a session and its own options into a command with the shared ones."""
    own = list(inspect.signature(run, eval_str=True).parameters.values())[1:]
    names = {each.name for each in own}
    context = inspect.Parameter("ctx", _KEYWORD, annotation=typer.Context)

    def invoke(ctx: typer.Context, **given: Any) -> None:
        options: Options = ctx.obj
        nearer = {name: given.pop(name, None) for name in _SHARED if name not in names}
        # Commands below this one, where there are any, begin with what was given here.
        ctx.obj = options.overridden(nearer)
        session = Session(ctx.obj, _options_of_line(ctx, given))
        if ctx.invoked_subcommand is None:
            with session.output.reporting():
                run(session, **given)

    invoke.__name__, invoke.__doc__ = run.__name__.rstrip("_"), run.__doc__
    shared = [each for each in shared_parameters() if each.name not in names]
    parameters = [context, *(each.replace(kind=_KEYWORD) for each in own), *shared]
    invoke.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return invoke


def _options_of_line(ctx: typer.Context, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that stand in the command line, rather than in settings or nowhere."""
    sources = {name: ctx.get_parameter_source(name) for name in given}
    return {
        name: given[name]
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    }


def shared_parameters(*, environment: bool = False) -> list[inspect.Parameter]:
    """Return the shared options; with `environment`, those that the environment can set."""
    parameters = []
    for name, kind in _SHARED.items():
        details: dict[str, Any] = {
            "rich_help_panel": PANEL,
            "show_envvar": False,
            # Rarely wanted: taken by every command, shown on the first page of help alone.
            "hidden": name in _RARE and not environment,
            "autocompletion": _COMPLETIONS.get(name),
        }
        if not environment:
            details["envvar"] = None
        if name in SETTINGS:
            shared = option(name, **details)
        else:
            details["envvar"] = "STRATAGEM_JSON" if environment else None
            words = "Answer in JSON, errors too."
            shared = typer.Option("--json", metavar="", help=words, show_default=False, **details)
        annotation = Annotated[kind, shared]  # type: ignore[valid-type]
        parameters.append(inspect.Parameter(name, _KEYWORD, default=None, annotation=annotation))
    return parameters


def _branches(ctx: typer.Context, incomplete: str) -> list[str]:
    from stratagem.surfaces.cli.completion import branches

    return branches(ctx, incomplete)


def _namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    from stratagem.surfaces.cli.completion import namespaces

    return namespaces(ctx, incomplete)


_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_RARE = frozenset({"durability", "embedder", "auto_embed", "redaction", "relevance_min"})
_SHARED: dict[str, Any] = {
    "db": str | None,
    "namespace": str | None,
    "branch": str | None,
    "durability": Durability | None,
    "embedder": Embedder | None,
    "auto_embed": bool | None,
    "redaction": Redaction | None,
    "relevance_min": float | None,
    "read_only": bool | None,
    # Of one run, and so no setting.
    "json": bool | None,
}
SHARED_NAMES = frozenset(_SHARED)
_COMPLETIONS = {"namespace": _namespaces, "branch": _branches}
