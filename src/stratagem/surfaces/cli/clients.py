"""init: our server in the settings of an agent's client."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from stratagem.errors import InvalidInput, MissingRequired, StorageUnavailable, ValidationFailed
from stratagem.places import PROJECT_FOLDER, own_command
from stratagem.surfaces.cli.output import confirm
from stratagem.surfaces.cli.session import Session, command
from stratagem.surfaces.cli.settings_files import with_json_server, with_section, with_toml_server

__all__ = ["app"]

app = typer.Typer()

Client = Literal["claude-code", "cursor", "vscode", "codex"]

GUIDANCE = """\
## Memory

This project has a memory, reachable by the `strata_*` tools.

- Before a task, `strata_search` for what is known about it.
- `strata_store` decisions, preferences and facts that will matter later, under a telling key.
- `strata_log` what happened and will not change: attempts, results, errors.
- Before something risky, `strata_branch` with action `fork`; `merge` it back if it was right.
"""
RULE_HEADER = "---\ndescription: How to use the project's memory\nalwaysApply: true\n---\n"


class _Place(NamedTuple):
    """Where a client keeps its servers, and in which form."""

    file: Path
    section: str = "mcpServers"
    form: Literal["json", "toml"] = "json"
    typed: bool = False


class _Change(NamedTuple):
    """A file as it is and as it would be."""

    file: Path
    before: str | None
    after: str


@app.command("init", rich_help_panel="For agents")
@command
def _init(
    session: Session,
    *,
    client: Annotated[Client | None, typer.Argument(help="The agent's client.")] = None,
    user: Annotated[
        bool, typer.Option("--user", metavar="", help="For all projects, not only this one.")
    ] = False,
    project: Annotated[
        bool,
        typer.Option(
            "--project", metavar="", help="Give this folder a memory of its own: .stratagem/."
        ),
    ] = False,
    guidance: Annotated[
        bool,
        typer.Option(
            "--guidance", metavar="", help="Tell the agent when to use it, in this project."
        ),
    ] = False,
    toolsets: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Which tools to offer, by commas.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--command", help='How to start it, e.g. "uvx stratagem". Default: this one.'),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask.")] = False,
) -> None:
    """Add Stratagem to the settings of Claude Code, Cursor, VS Code or Codex.

    The change is shown first, the file backed up, and the rest of it left as it is.
    """
    if client is None and not project:
        raise MissingRequired(
            "Which client?", field="client", hint="claude-code, cursor, vscode or codex."
        )
    changes = _changes(session, client, user=user, guidance=guidance, start=start, tools=toolsets)
    folder = Path.cwd() / PROJECT_FOLDER
    makes = folder if project and not folder.is_dir() else None
    _show(session, changes, makes)
    if not (changes or makes):
        _report(session, [], None)
        return
    if not confirm(session.output, "Write this?", yes=yes):
        raise typer.Abort
    backups = [_write_with_backup(change) for change in changes]
    _make_project(makes)
    _report(session, list(zip(changes, backups, strict=True)), makes)


def _changes(
    session: Session,
    client: Client | None,
    *,
    user: bool,
    guidance: bool,
    start: str | None,
    tools: str | None,
) -> list[_Change]:
    """Return the files that would change."""
    if client is None:
        return []
    place = _place(client, user=user)
    server = _server(session, start, tools, typed=place.typed)
    put = with_json_server if place.form == "json" else with_toml_server
    text = _settings_text(server, place.form)
    by_hand = f"Nothing was written. Add this by hand to {place.section}: {text}"
    changes = [_change(place.file, lambda text: put(text, place.section, server), by_hand)]
    if guidance:
        changes.append(_guidance(client))
    return [change for change in changes if change.after != change.before]


def _place(client: Client, *, user: bool) -> _Place:
    """Return where a client looks for servers: in this project, or in the user's settings."""
    here, home = Path.cwd(), Path.home()
    if client == "claude-code":
        return _Place(home / ".claude.json" if user else here / ".mcp.json", typed=True)
    if client == "cursor":
        return _Place((home if user else here) / ".cursor" / "mcp.json")
    if client == "vscode":
        file = _vscode_user_folder() / "mcp.json" if user else here / ".vscode" / "mcp.json"
        return _Place(file, "servers", typed=True)
    # Codex reads a project's own settings only where the project is trusted.
    codex = Path(os.environ.get("CODEX_HOME") or home / ".codex")
    return _Place(codex / "config.toml", "mcp_servers", "toml")


def _vscode_user_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Code" / "User"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", Path.home())) / "Code" / "User"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "Code" / "User"


def _server(
    session: Session, start: str | None, tools: str | None, *, typed: bool
) -> dict[str, Any]:
    """Return the entry that starts our server as this command was told to work."""
    program, *rest = start.split() if start else _program()
    options = session.options
    given = {
        "--db": str(Path(session.database).resolve()) if options.db else None,
        "--namespace": options.namespace,
        "--branch": options.branch,
        "--embedder": session.embedder,
        "--redaction": options.redaction,
        "--relevance-min": None if options.relevance_min is None else str(options.relevance_min),
        "--toolsets": tools,
    }
    arguments = [part for name, value in given.items() if value for part in (name, value)]
    if options.read_only:
        arguments.append("--read-only")
    kind = {"type": "stdio"} if typed else {}
    return {**kind, "command": program, "args": [*rest, "mcp", *arguments]}


def _program() -> list[str]:
    """Return how to start this very Stratagem.

    By its absolute path: a client that was not started from a shell does not know the shell's
    PATH. But for one that uvx made for a single run, whose path may be gone tomorrow.
    """
    found = own_command()
    cache = Path(os.environ.get("UV_CACHE_DIR") or Path.home() / ".cache" / "uv")
    if found is None or cache in Path(found).parents or "archive-v0" in Path(found).parts:
        return ["uvx", "stratagem"]
    return [found]


def _guidance(client: Client) -> _Change:
    """Return the change to the file in which a project instructs its agents."""
    here = Path.cwd()
    if client == "cursor":
        rule = here / ".cursor" / "rules" / "stratagem.mdc"
        return _change(rule, lambda text: with_section(text or RULE_HEADER, GUIDANCE))
    file = here / ("CLAUDE.md" if client == "claude-code" else "AGENTS.md")
    return _change(file, lambda text: with_section(text, GUIDANCE))


def _change(file: Path, put: Callable[[str], str], by_hand: str = "") -> _Change:
    try:
        before = file.read_bytes().decode("utf-8") if file.exists() else None
        return _Change(file, before, _with_same_line_ends(before or "", put))
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error.message}", hint=by_hand, file=str(file)) from error
    except UnicodeDecodeError as error:
        raise ValidationFailed(f"{file} is not text in UTF-8.", file=str(file)) from error
    except OSError as error:
        raise StorageUnavailable(f"{file} cannot be read: {error.strerror}.") from error


def _with_same_line_ends(before: str, put: Callable[[str], str]) -> str:
    lines = before.count("\n")
    if not lines or before.count("\r\n") < lines:
        return put(before)
    return put(before.replace("\r\n", "\n")).replace("\n", "\r\n")


def _settings_text(server: dict[str, Any], form: str) -> str:
    if form == "json":
        return f'"stratagem": {json.dumps(server, ensure_ascii=False)}'
    fields = ", ".join(
        f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in server.items()
    )
    return f"stratagem = {{{fields}}}"


def _show(session: Session, changes: list[_Change], makes: Path | None) -> None:
    """Show what would be written."""
    if session.output.json:
        return
    for change in changes:
        for line in difflib.unified_diff(
            (change.before or "").splitlines(),
            change.after.splitlines(),
            str(change.file) if change.before is not None else "(no file yet)",
            str(change.file),
            lineterm="",
        ):
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[0], "")
            session.output.line(line, style)
    if makes:
        session.output.line(f"+ {makes}/", "green")


def _write_with_backup(change: _Change) -> Path | None:
    """Write a file, after a copy of what it was; return the copy."""
    # A link is kept, and what it leads to is changed: so do people who keep settings elsewhere.
    file = change.file.resolve()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        backup = None
        if change.before is not None:
            backup = _free_name(file)
            shutil.copy2(file, backup)
        handle, aside = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        with os.fdopen(handle, "wb") as new:
            new.write(change.after.encode())
        Path(aside).chmod(file.stat().st_mode if backup else 0o644)
        Path(aside).replace(file)
    except OSError as error:
        raise StorageUnavailable(f"{file} cannot be written: {error.strerror}.") from error
    return backup


def _free_name(file: Path) -> Path:
    names = (file.with_name(f"{file.name}.bak{number or ''}") for number in range(1_000_000))
    return next(name for name in names if not name.exists())


def _make_project(folder: Path | None) -> None:
    if folder is not None:
        folder.mkdir(mode=0o700)
        # What an agent remembers is not for the repository, unless somebody decides so.
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")


def _report(
    session: Session, written: list[tuple[_Change, Path | None]], made: Path | None
) -> None:
    if session.output.json:
        files = [
            {"file": str(change.file), "backup": str(backup) if backup else None}
            for change, backup in written
        ]
        session.output.data({"written": files, "made": str(made) if made else None})
        return
    for change, backup in written:
        kept = f" What was there is in {backup.name}." if backup else ""
        session.output.line(f"Wrote {change.file}.{kept}")
    if made:
        session.output.line(f"Made {made}: the memory of this folder and those below.")
    if not (written or made):
        session.output.line("Everything is set up already; nothing to change.")
