"""hook: what clients of coding agents call, what they were given, and the switch for it."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from stratagem.errors import InvalidInput, StorageUnavailable, ValidationFailed
from stratagem.hooks.clients import CLIENTS
from stratagem.hooks.session_files import log_path, read_lines
from stratagem.hooks.settings import SWITCHES
from stratagem.projects import find_memory, user_config_folder
from stratagem.surfaces.cli.output import printable
from stratagem.surfaces.cli.session import Session, command
from stratagem.surfaces.cli.settings import FILE_NAME

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["app"]

app = typer.Typer()
_PANEL: Final = "For agents"
_LOG_BYTES_READ: Final = 4_000_000
_OFF: Final = re.compile(r"^hooks_off[ \t]*=[^\n]*$", re.MULTILINE)

group = typer.Typer(
    no_args_is_help=True,
    help="Automatic memory: called by an agent's client at each event.",
)
app.add_typer(group, name="hook", rich_help_panel=_PANEL)


def _client_command(client: str) -> None:
    @group.command(client, rich_help_panel="Called by clients")
    @command
    def _hook(
        session: Session,
        *,
        event: Annotated[str, typer.Argument(help="The event, if stdin does not name it.")] = "",
    ) -> None:
        """Answer the event on stdin, in the form of this client."""
        from stratagem.hooks.command import run_hook

        if session.options.db:
            os.environ["STRATAGEM_DB"] = session.database
        run_hook(["hook", client, *([event] if event else [])])


for _each in CLIENTS:
    _client_command(_each)


@group.command("log")
@command
def _log(
    session: Session,
    *,
    limit: Annotated[
        int, typer.Option(min=1, max=1000, help="How many to show, newest first.")
    ] = 20,
    text: Annotated[
        bool, typer.Option("--text", metavar="", help="Show what was injected, too.")
    ] = False,
) -> None:
    """Show what was injected: when, why, and at what cost in tokens."""
    lines = list(read_lines(log_path(session.database), _LOG_BYTES_READ))
    rows = [_row(line) for line in reversed(lines[-limit:])]
    total = sum(line.get("tokens", 0) for line in lines)
    answer = {"results": rows, "injections": len(lines), "tokens": total}
    session.output.answer(answer, lambda console, told: _show_log(console, told, text=text))


def _row(line: Mapping[str, Any]) -> dict[str, Any]:
    at = datetime.fromtimestamp(line["at"], UTC)
    return {**line, "at": at.isoformat(timespec="seconds").replace("+00:00", "Z")}


def _show_log(console: Console, answer: Mapping[str, Any], *, text: bool) -> None:
    from stratagem.surfaces.cli.tables import show, table

    if not answer["results"]:
        console.print("Nothing was injected yet.")
        return
    rows = table("WHEN", "EVENT", "TOKENS", "SESSION", "WHY")
    for each in answer["results"]:
        why = "; ".join(map(printable, each["why"]))
        rows.add_row(
            each["at"], each["event"], str(each["tokens"]), printable(each["session"]), why
        )
    show(console, rows)
    if text:
        for each in answer["results"]:
            console.print(f"\n{each['at']} {each['event']}", style="bold")
            console.print(printable(each["text"]), markup=False, highlight=False, soft_wrap=True)
    count = answer["injections"]
    named = "1 injection" if count == 1 else f"{count} injections"
    console.print(f"{named}, {answer['tokens']} tokens.", style="dim")


Switched = Annotated[
    list[str] | None,
    typer.Argument(help="start, prompt, failure or capture; default: all of them."),
]
OfUser = Annotated[
    bool, typer.Option("--user", metavar="", help="For all projects, not only this one.")
]


@group.command("off")
@command
def _off(session: Session, *, hooks: Switched = None, user: OfUser = False) -> None:
    """Switch hooks off, here or everywhere; clients still call, and are answered with nothing."""
    _switch(session, hooks, user=user, on=False)


@group.command("on")
@command
def _on(session: Session, *, hooks: Switched = None, user: OfUser = False) -> None:
    """Switch hooks on again."""
    _switch(session, hooks, user=user, on=True)


def _switch(session: Session, hooks: list[str] | None, *, user: bool, on: bool) -> None:
    for each in hooks or ():
        if each not in SWITCHES:
            raise ValidationFailed(
                f"There is no hook {each!r}.",
                field="hooks",
                allowed=list(SWITCHES),
                hint=f"One of {', '.join(SWITCHES)}.",
            )
    file = _settings_file(user=user)
    text = file.read_text("utf-8") if file.is_file() else ""
    off = _switched_off(file, text)
    wanted = set(hooks or SWITCHES)
    off = off - wanted if on else off | wanted
    named = "all" if off == set(SWITCHES) else ",".join(each for each in SWITCHES if each in off)
    _write(file, _with_setting(text, named or "none"))
    everywhere = set() if user else _switched_off_everywhere()
    session.output.answer(
        {"file": str(file), "off": sorted(off), "off_everywhere": sorted(everywhere)},
        lambda console, told: console.print(_switch_words(told), highlight=False, soft_wrap=True),
    )


def _switch_words(answer: Mapping[str, Any]) -> str:
    off = answer["off"]
    state = f"Off: {', '.join(off)}." if off else "All hooks are on."
    words = f"{state} This is set in {answer['file']}."
    if answer["off_everywhere"]:
        still = ", ".join(answer["off_everywhere"])
        words += f" For all projects these are off: {still} (stratagem hook on --user)."
    return words


def _switched_off_everywhere() -> set[str]:
    file = _settings_file(user=True)
    return _switched_off(file, file.read_text("utf-8")) if file.is_file() else set()


def _settings_file(*, user: bool) -> Path:
    if user:
        return Path(user_config_folder()) / FILE_NAME
    memory = find_memory(str(Path.cwd()))
    if memory is None:
        raise ValidationFailed(
            "This folder has no memory of its own.",
            field="hooks",
            hint="Add --user to change hooks for every folder, or run `stratagem init --project`.",
        )
    return Path(memory) / FILE_NAME


def _switched_off(file: Path, text: str) -> set[str]:
    try:
        said = tomllib.loads(text).get("hooks_off", "none")
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{file} cannot be read: {error}.", path=str(file)) from error
    names = set(",".join(said).split(",") if isinstance(said, list) else str(said).split(","))
    stripped = {each.strip() for each in names}
    return set(SWITCHES) if "all" in stripped else stripped & set(SWITCHES)


def _with_setting(text: str, value: str) -> str:
    """Return settings with one line changed or added; the rest stays as it is."""
    line = f'hooks_off = "{value}"'
    if _OFF.search(text):
        return _OFF.sub(line, text, count=1)
    # A file of settings has no tables, so any line can be its last.
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n"


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageUnavailable(f"{file} cannot be written: {error.strerror}.") from error
