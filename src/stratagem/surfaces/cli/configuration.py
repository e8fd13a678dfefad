"""config: which settings are in force, and where each comes from.

A setting is given on the command line, in the environment (`STRATAGEM_NAME`), or in a file of
settings; the nearer one wins. The file is `.stratagem/config.toml` of the project, then
`config.toml` in the user's own settings folder.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from stratagem import limits
from stratagem.errors import InvalidInput, StratagemError
from stratagem.places import PROJECT_FOLDER
from stratagem.redaction import mask_address
from stratagem.surfaces.cli.output import printable
from stratagem.surfaces.cli.session import Session, command

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["SETTINGS", "Setting", "app", "settings_of_files"]

app = typer.Typer()
FILE_NAME: Final = "config.toml"
_PREFIX: Final = "STRATAGEM_"
_YES: Final = frozenset({"1", "true", "yes", "on", "t", "y"})
# For one run, and so no settings; and what tools are given.
_OTHER_VARIABLES: Final = frozenset({"STRATAGEM_DEBUG", "STRATAGEM_JSON"})
_SECRETS: Final = "STRATAGEM_SECRET_"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name in files, and what holds where nobody says."""

    name: str
    default: str
    what: str
    # What parts the values of one that can be repeated, in the environment.
    between: str = ","
    # Whether a project's file may have it: somebody else may have written that one.
    of_projects: bool = True

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return _PREFIX + self.name.upper()

    @property
    def is_switch(self) -> bool:
        """Whether it is yes or no."""
        return self.default in {"yes", "no"}


SETTINGS: Final = (
    Setting("db", "the project's .stratagem/, else your own", "which database"),
    Setting("namespace", "default", "where keys belong"),
    Setting("branch", "default", "the branch to work on"),
    Setting("durability", "full", "what a write survives: full or fast"),
    Setting("embedder", "static", "what finds by meaning"),
    Setting("auto_embed", "yes", "no: nothing finds by meaning"),
    Setting("redaction", "basic", "what is masked: basic, strict or none"),
    Setting("read_only", "no", "refuse to write"),
    Setting("toolsets", "memory,debugging", "which tools a server offers"),
    Setting("expose", "none", "registered tools offered by their own names"),
    Setting("host", "127.0.0.1", "where a server listens"),
    Setting("port", "7437", "the port of a server"),
    Setting("server_name", "none", "names that a server is reached by", " "),
    Setting("public_url", "none", "how clients reach the server behind a proxy"),
    Setting("allow_hosts", "none", "private hosts that registered tools may call", " "),
    Setting(
        "allow_callables",
        "none",
        "Python functions that registered tools may run",
        " ",
        of_projects=False,
    ),
    Setting("sandbox_network", "no", "yes: sandboxed code may be given the network"),
    Setting("auth", "auto", "whether a token is needed: auto or token"),
    Setting("oauth_issuer", "none", "whose JWTs are taken"),
    Setting("oauth_audience", "none", "whom such a JWT must be for", " "),
    Setting("oauth_keys", "told by the issuer", "where the issuer's keys are"),
    Setting("workers", "1", "how many processes serve"),
    Setting("redis", "none", "what several servers share Socket.IO events and rates by"),
    Setting("max_connections", f"{limits.CONNECTIONS_MAX}", "how many connections a process takes"),
    Setting("trusted_proxy", "none", "proxies whose word about a client's address is taken", " "),
    Setting("log_format", "text", "text or json"),
    Setting("graph", "built in", "what answers questions about the graph of concepts"),
    Setting("vectors", "built in", "what finds concepts by meaning"),
)
_KNOWN: Final[Mapping[str, Setting]] = {setting.name: setting for setting in SETTINGS}
# Which file a value comes from, by the variable it was put into.
_FILES: ContextVar[Mapping[str, str] | None] = ContextVar("settings_of_files", default=None)


@contextmanager
def settings_of_files(environment: MutableMapping[str, str] = os.environ) -> Iterator[None]:
    """Put the settings of files where the environment has none, for as long as the block runs.

    Raises:
        InvalidInput: A file is no TOML, or has a setting that does not exist.
    """
    origins: dict[str, str] = {}
    for file in _files():
        for variable, text in _read(file).items():
            if variable not in environment:
                environment[variable] = text
                origins[variable] = str(file)
    before = _FILES.set(origins)
    try:
        yield
    except typer.BadParameter as error:
        place = origins.get(str(getattr(getattr(error, "param", None), "envvar", None)))
        if place is not None:
            # Whoever wrote it into a file looks for no variable.
            error.message = f"{error.message.rstrip('.')}; it is set in {place}."
        raise
    finally:
        _FILES.reset(before)
        for variable in origins:
            environment.pop(variable, None)


@app.command("config", rich_help_panel="Looking after a database")
@command
def _config(session: Session) -> None:
    """Show which settings are in force, and where each comes from."""
    rows = [_row(setting, session) for setting in SETTINGS]
    answer = {
        "settings": rows,
        "files": [str(file) for file in _files()],
        "unknown": _unknown(os.environ),
    }
    session.output.answer(answer, _show)


def _row(setting: Setting, session: Session) -> dict[str, str]:
    told = os.environ.get(setting.variable)
    value, origin = (setting.default, "default") if told is None else (told, setting.variable)
    if told is not None and setting.variable in (_FILES.get() or {}):
        origin = (_FILES.get() or {})[setting.variable]
    if told is None and setting.name == "db":
        value = session.database
    if told is None and setting.name == "embedder":
        value, origin = _embedder(value, origin)
    flag = getattr(session.options, setting.name, None)
    if flag is not None and not _is(flag, told):
        value, origin = _text(setting, flag), f"--{setting.name.replace('_', '-')}"
    if setting.is_switch:
        value = "yes" if value.lower() in _YES else "no"
    return {
        "name": setting.name,
        "value": mask_address(value),
        "from": origin,
        "what": setting.what,
    }


def _is(flag: Any, told: str | None) -> bool:
    """Whether the environment says what an option says."""
    if isinstance(flag, bool):
        return told is not None and (told.lower() in _YES) == flag
    return str(flag) == told


def _embedder(value: str, origin: str) -> tuple[str, str]:
    """Return what finds by meaning, which a variable of other programs can say too."""
    from stratagem.projections.settings import ExternalSettings

    asked = ExternalSettings(embedder=None)
    with suppress(StratagemError):
        asked = ExternalSettings.from_environment(os.environ)
    return (value, origin) if asked.embedder is None else (asked.embedder, "EMBEDDING_MODEL")


def _unknown(environment: Mapping[str, str]) -> list[str]:
    """Return variables that look like settings and are none, as a misspelt one does."""
    known = {setting.variable for setting in SETTINGS} | _OTHER_VARIABLES
    ours = [name for name in environment if name.startswith(_PREFIX)]
    return sorted(name for name in ours if name not in known and not name.startswith(_SECRETS))


def _files() -> list[Path]:
    """Return the files of settings that are there, the nearest first."""
    from platformdirs import user_config_dir

    here = Path.cwd().resolve()
    projects = (place / PROJECT_FOLDER for place in (here, *here.parents))
    project = next((folder for folder in projects if folder.is_dir()), None)
    places = [project, Path(user_config_dir("stratagem", appauthor=False))]
    return [file for place in places if place and (file := place / FILE_NAME).is_file()]


def _read(file: Path) -> dict[str, str]:
    """Return the settings of a file, by the variables that they stand for."""
    try:
        given = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(
            f"{file} cannot be read: {error}.", path=str(file), hint="Correct the file."
        ) from error
    for name, value in given.items():
        if name not in _KNOWN:
            raise InvalidInput(
                f"{file} has a setting that does not exist: {name}.",
                path=str(file),
                hint=f"There are: {', '.join(_KNOWN)}.",
            )
        if file.parent.name == PROJECT_FOLDER and not _KNOWN[name].of_projects:
            raise InvalidInput(
                f"{file} cannot set {name}: a project may have been written by anybody.",
                path=str(file),
                hint=f"Set it in your own {FILE_NAME}, or as {_KNOWN[name].variable}.",
            )
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(each, str | int | float) for each in parts):
            raise InvalidInput(
                f"{file} has no value for {name}: it is text, a number, true or false, or a list.",
                path=str(file),
                hint="Correct the file.",
            )
    return {_KNOWN[name].variable: _text(_KNOWN[name], value) for name, value in given.items()}


def _text(setting: Setting, value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return setting.between.join(map(str, value)) if isinstance(value, list) else str(value)


def _show(console: Console, answer: Mapping[str, Any]) -> None:
    from stratagem.surfaces.cli.tables import show, table

    rows = table("SETTING", "VALUE", "FROM", "WHAT")
    for each in answer["settings"]:
        rows.add_row(each["name"], printable(each["value"]), printable(each["from"]), each["what"])
    show(console, rows)
    if answer["unknown"]:
        names = ", ".join(map(printable, answer["unknown"]))
        console.print(f"No settings, perhaps misspelt: {names}", style="yellow", soft_wrap=True)
    if not answer["files"]:
        console.print(f"No {FILE_NAME} was found.", style="dim")
