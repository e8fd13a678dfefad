"""config: which settings are in force, and where each comes from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import typer

from stratagem.errors import StratagemError
from stratagem.redaction import mask_address
from stratagem.surfaces.cli.output import printable
from stratagem.surfaces.cli.session import Session, command
from stratagem.surfaces.cli.settings import FILE_NAME, PREFIX, SETTINGS, Setting, files

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["app", "describe_settings"]

app = typer.Typer()
_YES: Final = frozenset({"1", "true", "yes", "on", "t", "y"})
# For one run, and so no settings; and what tools are given.
_OTHER_VARIABLES: Final = frozenset({"STRATAGEM_DEBUG", "STRATAGEM_JSON"})
_SECRETS: Final = "STRATAGEM_SECRET_"


@app.command("config", rich_help_panel="Maintenance of a database")
@command
def _config(session: Session) -> None:
    """Show which settings are in force, and where each comes from."""
    rows = [_row(setting, session) for setting in SETTINGS.values()]
    answer = {
        "settings": rows,
        "files": [str(file) for file in files()],
        "unknown": _misspelt_variables(os.environ),
    }
    session.output.answer(answer, _show)


def describe_settings(session: Session) -> tuple[dict[str, str], ...]:
    """Return the settings that a server is started with, each with where it comes from."""
    return tuple(_with_option(_row(each, session), each, session) for each in SETTINGS.values())


def _with_option(row: dict[str, str], setting: Setting, session: Session) -> dict[str, str]:
    """Return a row with what an option of the command itself says, where it was given."""
    # An option that can be repeated is named for one of its values.
    for name in (setting.name, setting.name.removesuffix("s")):
        if name in session.typed:
            value = mask_address(setting.text(session.typed[name]))
            return {**row, "value": value, "from": f"--{name.replace('_', '-')}"}
    return row


def _row(setting: Setting, session: Session) -> dict[str, str]:
    told, origin = os.environ.get(setting.variable), setting.variable
    if told is None:
        told, origin = session.options.file_settings.of_files.get(setting.name, (None, "default"))
    value = setting.default if told is None else told
    if told is None and setting.name == "db":
        value = session.database
    if told is None and setting.name == "embedder":
        value, origin = _embedder(value, origin)
    flag = getattr(session.options, setting.name, None)
    if flag is not None and not _is(flag, told):
        value, origin = setting.text(flag), f"--{setting.name.replace('_', '-')}"
    if setting.is_switch:
        value = "yes" if value.lower() in _YES else "no"
    return {
        "name": setting.name,
        "value": mask_address(value),
        "from": origin,
        "what": setting.words,
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


def _misspelt_variables(environment: Mapping[str, str]) -> list[str]:
    """Return variables that look like settings and are none, as a misspelt one does."""
    known = {setting.variable for setting in SETTINGS.values()} | _OTHER_VARIABLES
    ours = [name for name in environment if name.startswith(PREFIX)]
    return sorted(name for name in ours if name not in known and not name.startswith(_SECRETS))


def _show(console: Console, answer: Mapping[str, Any]) -> None:
    from stratagem.surfaces.cli.tables import show, table

    rows = table("SETTING", "VALUE", "FROM", "WHAT")
    for each in answer["settings"]:
        rows.add_row(each["name"], printable(each["value"]), printable(each["from"]), each["what"])
    show(console, rows)
    if answer["unknown"]:
        names = ", ".join(map(printable, answer["unknown"]))
        console.print(
            f"Unknown settings, perhaps misspelt: {names}", style="yellow", soft_wrap=True
        )
    if not answer["files"]:
        console.print(f"No {FILE_NAME} was found.", style="dim")
