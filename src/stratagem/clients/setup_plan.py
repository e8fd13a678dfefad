"""What `stratagem init` would do to the files of clients, and doing it.

A plan consists only of texts: every file as it is and as it would be. So it can be shown before
anything is written, and a file that cannot be parsed does not affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from stratagem.clients.catalogue import CLIENTS, AgentClient, Folders, HookFile, Scope, ServerFile
from stratagem.clients.guidance import GUIDANCE
from stratagem.clients.hook_lists import (
    HOOKS,
    HookTarget,
    hook_command,
    plugin_source,
    server_url,
)
from stratagem.clients.json_edit import JsonText
from stratagem.clients.settings_edit import (
    drop_hooks,
    drop_server,
    hook_targets,
    put_hooks,
    put_server,
    server_snippet,
    with_section,
    without_section,
)
from stratagem.clients.settings_files import (
    FileRecord,
    SettingsRecord,
    digest,
    read_settings,
    remove_empty_folders,
    remove_file,
    replace_file,
)
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import InvalidInput, StorageUnavailable, StratagemError

__all__ = [
    "FileChange",
    "ServerCommand",
    "SetupPlan",
    "Unreadable",
    "carry_out",
    "plan_removal",
    "plan_setup",
    "server_file",
]

_BOM: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How a client starts Stratagem: the program, and the arguments of its server."""

    program: list[str]
    arguments: list[str]
    # The database that was named; else a client that starts servers elsewhere names the project.
    database: str | None = None
    # The address of a running server that hooks call where they can, and the environment variable
    # that has the token for it.
    hooks_server: str | None = None
    hooks_token: str | None = None

    def hook_target(self, client: str) -> HookTarget:
        """Return what the hooks of a client call."""
        url = server_url(self.hooks_server, client) if self.hooks_server else None
        return HookTarget(hook_command(self.hook_program, client), url, self.hooks_token)

    @property
    def hook_program(self) -> list[str]:
        """How hooks are started: on the database of the server."""
        return [*self.program, *(["--db", self.database] if self.database else [])]

    def entry(self, place: ServerFile, folders: Folders) -> dict[str, Any]:
        """Return the entry of a client's settings."""
        database = ["--db", self.database] if self.database else []
        folder = self._folder_words(place, folders)
        words = [*self.program, *folder, "mcp", *database, *self.arguments]
        if place.joined:
            return {**place.fields, "command": words}
        return {**place.fields, "command": words[0], "args": words[1:]}

    def _folder_words(self, place: ServerFile, folders: Folders) -> list[str]:
        """Return where to work, for a client that starts servers in another folder."""
        if place.project_variable is None or self.database:
            return []
        return ["-C", place.project_variable.replace("{here}", folders.here.as_posix())]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file as it is and as it would be; None where there is none.

    `restores` names the backups that are not needed any more once it is as it was.
    """

    file: Path
    before: str | None
    after: str | None
    clients: tuple[str, ...] = ()
    removes: bool = False
    restores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that cannot be changed, why, and what to paste into it."""

    client: str
    file: Path
    reason: str
    snippet: str


@dataclass(slots=True)
class SetupPlan:
    """Every file that would change, what cannot be changed, and what else is worth knowing."""

    changes: list[FileChange] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _Texts:
    """The files that a plan is about, as they would be after each step of it.

    `project`: the folder that none of them may lead out of by a link, which would be that of
    whoever wrote the project. Links to one's own settings are followed.
    """

    def __init__(self, project: Path | None) -> None:
        self._project = project
        self._before: dict[Path, str | None] = {}
        self._after: dict[Path, str | None] = {}
        self._clients: dict[Path, list[str]] = {}
        self.unreadable: list[Unreadable] = []

    def edit(
        self, client: str, file: Path, change: Callable[[str], str | None], snippet: str
    ) -> None:
        """Change a file by a function of its text; a function that returns None removes it."""
        try:
            self._check_place(file)
            if file not in self._before:
                self._before[file] = self._after[file] = read_settings(file)
            there = self._after[file]
            self._after[file] = _with_same_ends(there or "", change)
        except StratagemError as error:
            self.unreadable.append(Unreadable(client, file, error.message, snippet))
            return
        if there is None and not self._after[file]:
            self._after[file] = None
        users = self._clients.setdefault(file, [])
        if client not in users:
            users.append(client)

    def _check_place(self, file: Path) -> None:
        if self._project is None or not file.is_relative_to(self._project):
            return
        place = file.resolve()
        if not place.is_relative_to(self._project.resolve()):
            raise InvalidInput(
                f"It is a link that leads out of the project, to {place}.", file=str(file)
            )

    def changes(self) -> list[FileChange]:
        return [
            FileChange(file, before, self._after[file], tuple(self._clients.get(file, ())))
            for file, before in self._before.items()
            if self._after[file] != before
        ]

    def unchanged_users(self) -> dict[Path, list[str]]:
        """Return who uses files that stay as they are."""
        return {
            file: users
            for file, users in self._clients.items()
            if self._after[file] == self._before[file]
        }


def plan_setup(
    folders: Folders,
    record: SettingsRecord,
    clients: Sequence[AgentClient],
    scope: Scope,
    command: ServerCommand,
    *,
    named: bool,
    hooks: bool,
    guidance: bool,
) -> SetupPlan:
    """Return what sets clients up; `named` says that somebody asked for these very clients."""
    texts, plan = _Texts(folders.here if scope == "project" else None), SetupPlan()
    for client in clients:
        place, where = _server_place(client, scope, named=named)
        if place is None:
            plan.notes.append(
                f"{client.title} has no settings for one project: "
                f"stratagem init {client.name} --user"
            )
            continue
        if where != scope:
            plan.notes.append(f"{client.title} has no settings for one project; yours are changed.")
        entry = command.entry(place, folders)
        texts.edit(
            client.name,
            server_file(place, folders),
            lambda text, place=place, entry=entry: put_server(text, place, entry),  # type: ignore[misc]
            f"{place.section}: {server_snippet(place, entry)}",
        )
        if guidance:
            _plan_guidance(texts, client, scope, folders)
    if hooks:
        plan.notes += _plan_hooks(texts, clients, scope, folders, command)
    plan.changes, plan.unreadable = texts.changes(), texts.unreadable
    for file, users in texts.unchanged_users().items():
        known = record.files.get(str(file))
        if known is not None:
            known.clients = sorted({*known.clients, *users})
    return plan


def plan_removal(
    folders: Folders, record: SettingsRecord, clients: Sequence[AgentClient], scope: Scope
) -> SetupPlan:
    """Return the plan that undoes a set-up: exactly, if nobody has changed a file since."""
    texts, plan = _Texts(folders.here if scope == "project" else None), SetupPlan()
    names = {client.name for client in clients}
    restored: dict[Path, FileChange] = {}
    for client, file, drop in _removals(clients, scope, folders):
        known = record.files.get(str(file), FileRecord())
        if {*known.clients} - names and drop is without_section:
            # Others are told by it, too.
            known.clients = sorted({*known.clients} - names)
            continue
        change = restored.get(file) or _restoration(file, known, names)
        if change is not None:
            restored[file] = change
            continue
        texts.edit(
            client.name,
            file,
            lambda text, drop=drop, known=known: _drop_own(text, drop, known),  # type: ignore[misc]
            "",
        )
    removed = [
        FileChange(each.file, each.before, each.after, each.clients, removes=True)
        for each in texts.changes()
    ]
    plan.changes, plan.unreadable = [*restored.values(), *removed], texts.unreadable
    return plan


def carry_out(plan: SetupPlan, record: SettingsRecord) -> list[tuple[FileChange, Path | None]]:
    """Write a plan; return each change with the copy of what was there.

    Raises:
        StorageUnavailable: A file changed since the plan was made, or cannot be written. Those
            before it are written.
    """
    done: list[tuple[FileChange, Path | None]] = []
    folders = [folder for known in record.files.values() for folder in known.folders]
    try:
        for change in plan.changes:
            if read_settings(change.file) != change.before:
                raise StorageUnavailable(
                    f"{change.file} was changed by another program meanwhile.",
                    hint="Run the command again.",
                )
            done.append((change, _write(change, record)))
    finally:
        # Those that are ours and still hold something stay.
        remove_empty_folders(folders)
        record.save()
    return done


def server_file(place: ServerFile, folders: Folders) -> Path:
    """Return the file of a client's servers: the first that is there, else the first."""
    files = [folders.path(each) for each in place.files]
    there = [file for file in files if file.exists()]
    # Of an extension and a program of one name, the one that is installed has a folder.
    near = [file for file in files if file.parent.parent.is_dir() and file.parent != folders.here]
    return (there or near or files)[0]


def _server_place(
    client: AgentClient, scope: Scope, *, named: bool
) -> tuple[ServerFile | None, Scope | None]:
    if scope in client.servers:
        return client.servers[scope], scope
    return (client.servers["user"], "user") if named else (None, None)


def _plan_guidance(texts: _Texts, client: AgentClient, scope: Scope, folders: Folders) -> None:
    place = client.guidance.get(scope)
    if place is not None:
        texts.edit(
            client.name,
            folders.path(place.file),
            lambda text: with_section(text or place.header, GUIDANCE),
            GUIDANCE,
        )


def _plan_hooks(
    texts: _Texts,
    clients: Sequence[AgentClient],
    scope: Scope,
    folders: Folders,
    command: ServerCommand,
) -> list[str]:
    """Plan the hooks of clients; return what is worth knowing about them."""
    names = {client.name for client in clients}
    # Whoever runs the hooks of another client has none of its own besides: each would run twice.
    readers = [each for each in CLIENTS.values() if each.reads_hooks_of]
    notes: list[str] = []
    for client in clients:
        if client.name in HOOKS and not _runs_others_hooks(client, names, folders):
            _put_hooks(texts, client, scope, folders, command)
        if scope in client.plugins:
            source = plugin_source(command.hook_program)
            file = folders.path(client.plugins[scope])
            texts.edit(client.name, file, lambda _, source=source: source, source)  # type: ignore[misc]
    for reader in readers:
        if not _runs_others_hooks(reader, names, folders):
            continue
        file = folders.path(reader.hooks[scope].file)
        if file.exists():
            texts.edit(reader.name, file, lambda _: None, "")
        if reader.name in names:
            other = CLIENTS[reader.reads_hooks_of or ""].title
            notes.append(f"{reader.title} runs the hooks of {other} and needs none of its own.")
    return notes


def _put_hooks(
    texts: _Texts, client: AgentClient, scope: Scope, folders: Folders, command: ServerCommand
) -> None:
    place = client.hooks.get(scope)
    if place is None:
        return
    hooks, target = HOOKS[client.name], command.hook_target(client.name)
    texts.edit(
        client.name,
        folders.path(place.file),
        lambda text: put_hooks(text, place, hooks, target),
        put_hooks("", place, hooks, target),
    )


def _runs_others_hooks(client: AgentClient, names: set[str], folders: Folders) -> bool:
    """Whether a client runs hooks of another, which has some or is about to get some."""
    if client.reads_hooks_of is None:
        return False
    if client.reads_hooks_of in names:
        return True
    return any(
        _has_hooks(folders.path(place.file))
        for place in CLIENTS[client.reads_hooks_of].hooks.values()
    )


def _has_hooks(file: Path) -> bool:
    try:
        return bool(hook_targets(read_settings(file) or ""))
    except StratagemError:
        return False


def _removals(
    clients: Sequence[AgentClient], scope: Scope, folders: Folders
) -> list[tuple[AgentClient, Path, Callable[[str], str | None]]]:
    """Return every file that may have something of ours, and how that is taken out."""
    found: list[tuple[AgentClient, Path, Callable[[str], str | None]]] = []
    for client in clients:
        if (server := client.servers.get(scope)) is not None:
            drop = _file_dropper if server.form == "yaml" else _server_dropper(server)
            found += [(client, folders.path(each), drop) for each in server.files]
        if (hooks := client.hooks.get(scope)) is not None:
            found.append((client, folders.path(hooks.file), _hook_dropper(hooks)))
        if (plugin := client.plugins.get(scope)) is not None:
            found.append((client, folders.path(plugin), _file_dropper))
        if (guidance := client.guidance.get(scope)) is not None:
            found.append((client, folders.path(guidance.file), without_section))
    return [each for each in found if each[1].exists()]


def _server_dropper(place: ServerFile) -> Callable[[str], str]:
    return lambda text: drop_server(text, place)


def _hook_dropper(place: HookFile) -> Callable[[str], str | None]:
    return _file_dropper if place.whole else drop_hooks


def _file_dropper(text: str) -> None:
    """Remove a file that is ours alone."""
    del text


def _restoration(file: Path, known: FileRecord, names: set[str]) -> FileChange | None:
    """Return what makes a file as it was before us; None where others changed it, too."""
    there = read_settings(file)
    mine = there is not None and known.unbroken and digest(there) == known.written
    if not mine or {*known.clients} - names:
        return None
    backups = [Path(each) for each in known.backups]
    if not known.created and not (backups and backups[0].is_file()):
        return None
    before = None if known.created else read_settings(backups[0])
    return FileChange(
        file, there, before, tuple(known.clients), removes=True, restores=tuple(known.backups)
    )


def _drop_own(text: str, drop: Callable[[str], str | None], known: FileRecord) -> str | None:
    """Return a text without something of ours, and without what was made to hold it."""
    if not text.strip():
        return text
    changed = drop(text)
    if changed is None or changed == text:
        return changed
    if drop is without_section:
        return None if known.created and _is_header(changed) else changed
    for path in sorted(known.made, key=len, reverse=True):
        changed = _prune(changed, path)
    empty = not changed.strip() or _json_value(changed) in ({}, {"version": 1})
    return None if known.created and empty else changed


def _is_header(text: str) -> bool:
    headers = {place.header for client in CLIENTS.values() for place in client.guidance.values()}
    return text.strip() in {header.strip() for header in headers}


def _prune(text: str, path: list[str]) -> str:
    value = _json_value(text)
    for step in path:
        if not isinstance(value, dict) or step not in value:
            return text
        value = value[step]
    return JsonText(text).without(tuple(path)) if value in ({}, []) else text


def _json_value(text: str) -> Any:
    try:
        return JsonText(text).value
    except InvalidInput:
        return None


def _write(change: FileChange, record: SettingsRecord) -> Path | None:
    """Write one change and record it; return the copy of what was there."""
    name = str(change.file)
    known = record.files.get(name)
    if change.removes:
        return _undo(change, record)
    if change.after is None:
        remove_file(change.file)
        record.files.pop(name, None)
        return None
    copy, folders = replace_file(change.file, change.after, backup=True)
    if known is None:
        known = record.files[name] = FileRecord(created=change.before is None)
    elif change.before is None or digest(change.before) != known.written:
        known.unbroken = False
    known.clients = sorted({*known.clients, *change.clients})
    known.made = [*known.made, *_new_containers(change)]
    known.backups += [str(copy)] if copy else []
    known.folders += [str(folder) for folder in folders]
    known.written = digest(change.after)
    return copy


def _undo(change: FileChange, record: SettingsRecord) -> Path | None:
    name = str(change.file)
    known = record.files.pop(name, FileRecord())
    copy = None
    if change.after is None:
        if not change.restores and not known.created:
            # Not known to be what we wrote: what was in it stays at hand.
            copy, _ = replace_file(change.file, change.before or "", backup=True)
        remove_file(change.file)
    else:
        copy, _ = replace_file(change.file, change.after, backup=not change.restores)
    for backup in change.restores:
        Path(backup).unlink(missing_ok=True)
    return copy


def _new_containers(change: FileChange) -> list[list[str]]:
    """Return the places of objects and lists that a change makes in a file of JSON."""
    before = _json_value(change.before or "{}")
    after = _json_value(change.after or "")
    if not isinstance(before, dict) or not isinstance(after, dict):
        return []
    made: list[list[str]] = []
    for name, value in after.items():
        if isinstance(value, dict | list) and name not in before:
            made.append([name])
        if isinstance(value, dict):
            there = before.get(name)
            made += [
                [name, inner]
                for inner, each in value.items()
                if isinstance(each, list) and not (isinstance(there, dict) and inner in there)
            ]
    return made


def _with_same_ends(before: str, change: Callable[[str], str | None]) -> str | None:
    """Change a text whose lines end as they did, and begin with a mark if they did."""
    mark = _BOM if before.startswith(_BOM) else ""
    plain = before.removeprefix(_BOM)
    lines = plain.count("\n")
    windows = bool(lines) and plain.count("\r\n") == lines
    changed = change(plain.replace("\r\n", "\n") if windows else plain)
    if changed is None:
        return None
    return mark + (changed.replace("\n", "\r\n") if windows else changed)
