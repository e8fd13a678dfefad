"""init: server, hooks and guidance in the settings of agents' clients."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratagem.errors import InvalidInput, MissingRequired, ValidationFailed
from stratagem.places import display_place, own_command, refuse_memory_of_repository
from stratagem.projects import (
    DATABASE_NAME,
    PROJECT_FOLDER,
    find_memory,
    is_address,
    outside_memory,
    user_folder,
)
from stratagem.surfaces.cli.output import confirm
from stratagem.surfaces.cli.session import Session, command

if TYPE_CHECKING:
    from stratagem.clients.catalogue import AgentClient, Folders, Scope
    from stratagem.clients.setup_plan import FileChange, ServerCommand, SetupPlan

__all__ = ["app"]

app = typer.Typer()

_FAILED = 1
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Of a whole file: enough to see what it is.
_LINES_MAX = 20


def _complete_client(incomplete: str) -> list[str]:
    from stratagem.clients.catalogue import CLIENTS

    return [name for name in CLIENTS if name.startswith(incomplete)]


_Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CLIENT]...",
        help="Which clients. Default: those that are installed.",
        autocompletion=_complete_client,
    ),
]
_Project = Annotated[
    bool,
    typer.Option(
        "--project",
        metavar="",
        help="For this folder, with a memory of its own. Default in a repository.",
    ),
]
_User = Annotated[
    bool,
    typer.Option(
        "--user", metavar="", help="For all projects of yours. Default outside a repository."
    ),
]
_Outside = Annotated[
    bool,
    typer.Option(
        "--outside",
        metavar="",
        help="Keep the memory outside of the repository, for all its clones on this machine.",
    ),
]
_Hooks = Annotated[
    bool, typer.Option("--hooks/--no-hooks", help="Capture and recall automatically.")
]
_HooksServer = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Let hooks call this running server if the client supports it, e.g. "
        "http://127.0.0.1:7459.",
    ),
]
_HooksToken = Annotated[
    str | None,
    typer.Option(metavar="VARIABLE", help="The environment variable that holds its token."),
]
_GuidanceOption = Annotated[
    bool, typer.Option("--guidance/--no-guidance", help="Tell the agent when to use it.")
]
_Toolsets = Annotated[
    str | None, typer.Option(metavar="NAMES", help="Which tools to offer, separated by commas.")
]
_Start = Annotated[
    str | None,
    typer.Option("--command", help='How to start it, e.g. "uvx stratagem". Default: this one.'),
]
_Remove = Annotated[
    bool, typer.Option("--remove", metavar="", help="Undo it. Stored memory stays.")
]
_CheckOption = Annotated[
    bool,
    typer.Option(
        "--check", metavar="", help="Test the setup: start each server as its client would."
    ),
]
_Yes = Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask.")]


@app.command("init", rich_help_panel="For agents")
@command
def _init(
    session: Session,
    *,
    clients: _Names = None,
    project: _Project = False,
    user: _User = False,
    outside: _Outside = False,
    hooks: _Hooks = True,
    hooks_server: _HooksServer = None,
    hooks_token: _HooksToken = None,
    guidance: _GuidanceOption = True,
    toolsets: _Toolsets = None,
    start: _Start = None,
    remove: _Remove = False,
    check: _CheckOption = False,
    yes: _Yes = False,
) -> None:
    """Set up the clients of your agents: MCP server, hooks and guidance.

    Finds those that are installed, shows every change before it is made, keeps a copy of each
    file, and leaves the rest of it, comments included, as it is. A second time changes nothing.
    """
    from stratagem.clients.catalogue import Folders
    from stratagem.clients.settings_files import SettingsRecord
    from stratagem.clients.setup_plan import plan_removal, plan_setup

    if project and user:
        raise ValidationFailed("--project and --user exclude each other.", field="user")
    top = Path.cwd() if project or user else _repository(Path.cwd())
    folders = Folders.of_this_machine(top)
    if check:
        _check(session, _select_clients(clients, folders, every=True), folders, yes=yes)
        return
    scope: Scope = "project" if project or (top and not user) else "user"
    memory = _project_memory(session, folders, outside=outside) if scope == "project" else None
    record = SettingsRecord(_record_file())
    if remove:
        plan = plan_removal(folders, record, _select_clients(clients, folders, every=True), scope)
        _carry_out(session, plan, record, None, None, yes=yes)
        return
    chosen = _select_clients(clients, folders, every=False)
    if not chosen and not project:
        raise MissingRequired(
            "No client was found on this machine.",
            field="client",
            hint=f"Name one: {', '.join(_names())}.",
        )
    plan = plan_setup(
        folders,
        record,
        chosen,
        scope,
        replace(
            _server_command(session, start, toolsets),
            hooks_server=_checked_server(hooks_server),
            hooks_token=hooks_token,
        ),
        named=bool(clients),
        hooks=hooks,
        guidance=guidance,
    )
    _carry_out(session, plan, record, scope, memory, yes=yes, chosen=chosen)


def _names() -> list[str]:
    from stratagem.clients.catalogue import CLIENTS

    return [*CLIENTS]


def _select_clients(
    names: Sequence[str] | None, folders: Folders, *, every: bool
) -> list[AgentClient]:
    """Return the clients that were named; without names those that are installed, or every one."""
    from stratagem.clients.catalogue import CLIENTS

    if names:
        for name in names:
            if name not in CLIENTS:
                raise ValidationFailed(
                    f"There is no client {name!r}.",
                    field="client",
                    allowed=[*CLIENTS],
                    hint=f"One of {', '.join(CLIENTS)}.",
                )
        return [CLIENTS[name] for name in dict.fromkeys(names)]
    return [each for each in CLIENTS.values() if every or each.is_installed(folders)]


def _repository(here: Path) -> Path | None:
    """Return the top of the repository that a folder is in, or the folder that has a memory."""
    for place in (here, *here.parents):
        if place == Path.home():
            return None
        if any((place / name).exists() for name in (".git", PROJECT_FOLDER)):
            return place
    return None


def _project_memory(session: Session, folders: Folders, *, outside: bool) -> Path | None:
    """Return the folder of the project's memory, which may still have to be made.

    It is the project's own, or one that the repository has elsewhere; None where `--db` names it.
    """
    if session.options.db:
        return None
    own, there = folders.here / PROJECT_FOLDER, find_memory(str(folders.here))
    if there is not None:
        refuse_memory_of_repository(there)
    if not outside:
        elsewhere = there is not None and Path(there).parent not in folders.here.parents
        return Path(there) if there is not None and elsewhere else own
    place = outside_memory(str(folders.here))
    if place is None:
        raise ValidationFailed(
            "This folder is not in a git repository, and --outside names the memory after one.",
            field="outside",
            hint="Leave --outside out: the memory is then kept in .stratagem.",
        )
    if own.is_dir():
        raise ValidationFailed(
            f"This repository has its memory in {own}, which is read first.",
            field="outside",
            hint=f"To move it: mkdir -p {place.rpartition('/')[0]} && mv {own} {place}",
        )
    return Path(place)


def _checked_server(url: str | None) -> str | None:
    """Return the address of a server that hooks may call.

    Raises:
        ValidationFailed: It is not on this machine, where alone hooks are answered.
    """
    if url is None:
        return None
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or parts.hostname not in _LOOPBACK:
        raise ValidationFailed(
            f"{url[:200]!r} is not a server on this machine, and hooks are only answered there.",
            field="hooks_server",
            hint="stratagem serve prints its address, e.g. http://127.0.0.1:7459.",
        )
    return f"{parts.scheme}://{parts.netloc}"


def _record_file() -> Path:
    return Path(user_folder()) / "client-settings.json"


def _server_command(session: Session, start: str | None, tools: str | None) -> ServerCommand:
    """Return how our server is started so that it works as this command was told to."""
    from stratagem.clients.setup_plan import ServerCommand

    options = session.options
    given = {
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
    return ServerCommand(
        start.split() if start else _program(),
        arguments,
        database=_named_database(session),
    )


def _named_database(session: Session) -> str | None:
    """Return the database that was asked for in so many words, as any folder finds it."""
    if not session.options.db:
        return None
    place = session.database
    return place if is_address(place) else str(Path(place).resolve())


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


def _carry_out(
    session: Session,
    plan: SetupPlan,
    record: Any,
    scope: Scope | None,
    memory: Path | None,
    *,
    yes: bool,
    chosen: Sequence[AgentClient] = (),
) -> None:
    """Show a plan, ask, and write it; say what could not be changed. `scope` is None to remove."""
    from stratagem.clients.setup_plan import carry_out

    if plan.unreadable and not plan.changes:
        _refuse(plan)
    database = _missing_database(session, scope, memory)
    _show(session, plan, database)
    if not (plan.changes or database):
        record.save()
        _report(session, plan, [], None, scope=scope)
        return
    if not confirm(session.output, "Write this?", yes=yes):
        raise typer.Abort
    written = carry_out(plan, record)
    if database is not None:
        _make_database(session, database, memory=memory)
    _report(session, plan, written, database, scope=scope, chosen=chosen)
    if plan.unreadable:
        raise typer.Exit(_FAILED)


def _refuse(plan: SetupPlan) -> None:
    first = plan.unreadable[0]
    by_hand = (
        "Nothing was written. Correct the file and run this again, or add by hand to "
        f"{first.snippet}"
        if first.snippet
        else None
    )
    raise InvalidInput(f"{first.file}: {first.reason}", hint=by_hand, file=str(first.file))


def _missing_database(session: Session, scope: Scope | None, memory: Path | None) -> str | None:
    """Return where a database has to be made: hooks make none."""
    if scope is None:
        return None
    place = _named_database(session) or str((memory or Path(user_folder())) / DATABASE_NAME)
    if not is_address(place):
        return None if Path(place).is_file() else place
    from stratagem.bootstrap import has_workspace

    return None if has_workspace(place) else place


def _make_database(session: Session, place: str, *, memory: Path | None) -> None:
    from stratagem.bootstrap import Settings, start

    if memory is not None:
        memory.mkdir(mode=0o700, parents=True, exist_ok=True)
        # What an agent remembers is not for the repository, unless somebody decides so.
        (memory / ".gitignore").write_text("*\n", encoding="utf-8")
    start(Settings(place, embedder=session.embedder, deliver=False)).close()


def _show(session: Session, plan: SetupPlan, database: str | None) -> None:
    """Show what would be written."""
    if session.output.json:
        return
    for change in plan.changes:
        for line in _difference(change):
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[0], "")
            session.output.line(line, style)
    if database:
        session.output.line(f"+ {display_place(database)}", "green")
    for file, reason in _unreadable_files(plan).items():
        session.output.note(f"{file} is left unchanged: {reason}")
    for note in plan.notes:
        session.output.note(note)


def _unreadable_files(plan: SetupPlan) -> dict[Path, str]:
    """Return the files that cannot be changed, each once, with the reason."""
    return {each.file: each.reason for each in plan.unreadable}


def _difference(change: FileChange) -> list[str]:
    """Return the lines that differ; of a file that is new or goes, how it begins."""
    lines = [
        *difflib.unified_diff(
            (change.before or "").splitlines(),
            (change.after or "").splitlines(),
            str(change.file) if change.before is not None else "(no file yet)",
            str(change.file) if change.after is not None else "(file removed)",
            lineterm="",
        )
    ]
    whole = change.before is None or change.after is None
    if not whole or len(lines) <= _LINES_MAX:
        return lines
    more = len(lines) - _LINES_MAX
    return [*lines[:_LINES_MAX], f"{lines[-1][0]} … and {more} more lines"]


def _report(
    session: Session,
    plan: SetupPlan,
    written: list[tuple[FileChange, Path | None]],
    made: str | None,
    *,
    scope: Scope | None,
    chosen: Sequence[AgentClient] = (),
) -> None:
    if session.output.json:
        session.output.data(_answer(plan, written, made))
        return
    for change, backup in written:
        kept = f" The previous content is in {backup.name}." if backup else ""
        verb = "Removed" if change.after is None else "Wrote"
        session.output.line(f"{verb} {change.file}.{kept}")
    if made:
        session.output.line(f"Created the memory {display_place(made)}.")
    for file, reason in _unreadable_files(plan).items():
        session.output.line(f"Not changed: {file}. {reason}")
        snippets = [each.snippet for each in plan.unreadable if each.file == file and each.snippet]
        if snippets:
            words = "Correct it and run this again, or add by hand:"
            session.output.line("\n".join([words, *snippets]))
    if not (written or made):
        nothing = "Nothing is set up here" if scope is None else "Everything is set up already"
        session.output.line(f"{nothing}; nothing to change.")
        return
    if scope is None:
        session.output.line("Stored memory is kept.")
        return
    touched = {name for change, _ in written for name in change.clients}
    for client in chosen:
        if client.name in touched:
            session.output.line(f"{client.title}: {client.step_after(scope)}")


def _answer(
    plan: SetupPlan, written: list[tuple[FileChange, Path | None]], made: str | None
) -> dict[str, Any]:
    return {
        "written": [
            {
                "file": str(change.file),
                "clients": list(change.clients),
                "removed": change.after is None,
                "backup": str(backup) if backup else None,
            }
            for change, backup in written
        ],
        "made": display_place(made) if made else None,
        "not_changed": [
            {
                "client": each.client,
                "file": str(each.file),
                "reason": each.reason,
                "snippet": each.snippet,
            }
            for each in plan.unreadable
        ],
        "notes": plan.notes,
    }


def _check(
    session: Session, clients: Sequence[AgentClient], folders: Folders, *, yes: bool
) -> None:
    """Start everything that is set up, and say what came of it; ask first about a stranger's."""
    from stratagem.clients.health_check import check_clients, foreign_commands
    from stratagem.clients.settings_files import SettingsRecord

    foreign = foreign_commands(clients, folders, SettingsRecord(_record_file()))
    for file, words in foreign:
        session.output.note(
            f"{file} was not written by init, or has changed since. It names: {words}"
        )
    if foreign and not confirm(session.output, "Start these commands?", yes=yes):
        raise typer.Abort
    found = check_clients(clients, folders)
    ok = bool(found) and all(each.ok for each in found)
    if session.output.json:
        session.output.data({"ok": ok, "checks": [asdict(each) for each in found]})
    elif not found:
        session.output.line("No client is set up here. Run stratagem init.")
    else:
        for each in found:
            mark, style = ("ok", "green") if each.ok else ("FAILED", "red")
            session.output.line(
                f"{mark:6} {each.client} {each.what} ({each.file}): {each.message}", style
            )
            if not each.ok and each.command:
                session.output.line(f"       {each.command}")
    if not ok:
        raise typer.Exit(_FAILED)
