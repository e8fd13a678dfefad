"""config: which settings are in force, and where each comes from.

A setting is given on the command line, in the environment (`STRATAGEM_NAME`), or in a file of
settings; the nearer one wins. The file is `.stratagem/config.toml` of the project, then
`config.toml` in the user's own settings folder.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Console

from stratagem.errors import InvalidInput
from stratagem.places import PROJECT_FOLDER
from stratagem.surfaces.cli.output import printable
from stratagem.surfaces.cli.session import Session, command

__all__ = ["SETTINGS", "app", "read_files"]

app = typer.Typer()
FILE_NAME: Final = "config.toml"
_PREFIX: Final = "STRATAGEM_"
_HIDDEN: Final = ("password", "secret", "token")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name in files, and what holds where nobody says."""

    name: str
    default: str
    what: str

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return _PREFIX + self.name.upper()


SETTINGS: Final = (
    Setting("db", "the project's .stratagem/, else your own", "which database"),
    Setting("namespace", "default", "where keys belong"),
    Setting("branch", "default", "the branch to work on"),
    Setting("durability", "full", "what a write survives: full or fast"),
    Setting("embedder", "static", "what finds by meaning"),
    Setting("redaction", "basic", "what is masked: basic, strict or none"),
    Setting("read_only", "no", "refuse to write"),
    Setting("toolsets", "memory,debugging", "which tools a server offers"),
    Setting("expose", "none", "registered tools offered by their own names"),
    Setting("host", "127.0.0.1", "where a server listens"),
    Setting("port", "7437", "the port of a server"),
    Setting("server_name", "none", "names that a server is reached by"),
    Setting("allow_hosts", "none", "private hosts that registered tools may call"),
    Setting("auth", "auto", "whether a token is needed: auto or token"),
    Setting("workers", "1", "how many processes serve"),
    Setting("redis", "none", "what several servers share Socket.IO rooms and rates by"),
    Setting("log_format", "text", "text or json"),
    Setting("graph", "built in", "what answers questions about the graph of concepts"),
    Setting("vectors", "built in", "what finds concepts by meaning"),
)
# Where a value that a file gave came from, by the variable it was put into.
_FROM_FILE: Final[dict[str, str]] = {}


def read_files(environment: dict[str, str] | os._Environ[str] = os.environ) -> None:
    """Put the settings of files where the environment has none.

    Raises:
        InvalidInput: A file is no TOML, or has a setting that does not exist.
    """
    for file in _files():
        try:
            given = tomllib.loads(file.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InvalidInput(f"{file} cannot be read: {error}.", path=str(file)) from error
        known = {setting.name: setting for setting in SETTINGS}
        for name, value in given.items():
            if name not in known:
                raise InvalidInput(
                    f"{file} has a setting that does not exist: {name}.",
                    path=str(file),
                    hint=f"There are: {', '.join(known)}.",
                )
            variable = known[name].variable
            if variable not in environment:
                environment[variable] = _text(name, value)
                _FROM_FILE[variable] = str(file)


@app.command("config", rich_help_panel="Upkeep")
@command
def _config(session: Session) -> None:
    """Show which settings are in force, and where each comes from."""
    rows = [_row(setting) for setting in SETTINGS]
    session.output.answer({"settings": rows, "files": [str(file) for file in _files()]}, _show)


def _row(setting: Setting) -> dict[str, str]:
    value = os.environ.get(setting.variable)
    if value is None:
        origin, value = "default", setting.default
    elif setting.variable in _FROM_FILE:
        origin = _FROM_FILE[setting.variable]
    else:
        origin = setting.variable
    return {
        "name": setting.name,
        "value": _shown(setting.name, value),
        "from": origin,
        "what": setting.what,
    }


def _shown(name: str, value: str) -> str:
    """Return a value without what nobody should see over a shoulder."""
    if any(word in name for word in _HIDDEN):
        return "***"
    from stratagem.places import shown_place

    return shown_place(value)


def _files() -> list[Path]:
    """Return the files of settings that are there, the nearest first."""
    from platformdirs import user_config_dir

    here = Path.cwd().resolve()
    project = next(
        (
            place / PROJECT_FOLDER
            for place in (here, *here.parents)
            if (place / PROJECT_FOLDER).is_dir()
        ),
        None,
    )
    places = [project, Path(user_config_dir("stratagem", appauthor=False))]
    return [file for place in places if place and (file := place / FILE_NAME).is_file()]


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    # Options that can be repeated are parted by spaces in the environment.
    between = " " if name in {"allow_hosts", "server_name"} else ","
    return between.join(map(str, value)) if isinstance(value, list) else str(value)


def _show(console: Console, answer: Mapping[str, Any]) -> None:
    from stratagem.surfaces.cli.tables import show, table

    rows = table("SETTING", "VALUE", "FROM", "WHAT")
    for each in answer["settings"]:
        rows.add_row(each["name"], printable(each["value"]), printable(each["from"]), each["what"])
    show(console, rows)
    if not answer["files"]:
        console.print(f"No {FILE_NAME} was found.", style="dim")
