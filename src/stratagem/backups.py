"""A database as a whole: every workspace, each of one moment, into a file or another database.

A backup is a ZIP file: a database file for each workspace, and a list of them that says where each
chain of hashes ends. Copies are examined before the file gets its name, and again when they were
restored. The copies lie beside the backup until it is whole, so that one that was interrupted goes
on; what was put into an archive is read once more before it counts.
"""

from __future__ import annotations

import errno
import hashlib
import lzma
import os
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.access.workspaces import HOME, home_of, place_within
from stratagem.bootstrap import (
    Rescued,
    copy,
    discard_copy,
    finish_copy,
    mark_copy,
    rescue,
    workspaces,
)
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import (
    DatabaseCorrupt,
    ImportRefused,
    InvalidInput,
    StorageFull,
    StorageUnavailable,
    StratagemError,
)
from stratagem.places import display_place, is_address
from stratagem.storage.contract import Progress
from stratagem.storage.copy_mark import CopyMark
from stratagem.storage.log_copy import Copied
from stratagem.storage.scratch import remove_abandoned, scratch_folder

__all__ = ["WorkspaceCopy", "backup", "copy_all", "discard", "restore"]

_LIST: Final = "backup.json"
_FORMAT: Final = 1
# What a backup is unpacked into, beside the database that it goes to.
_SCRATCH: Final = ".stratagem-"
_DATABASE: Final = b"SQLite format 3\0"
# What reading an archive fails with; a RuntimeError is one that wants a password.
_DAMAGED: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
    struct.error,
)
# What an open database has beside its file; all of it is made again.
_BESIDE: Final = ("-wal", "-shm", "-vectors", ".lock")


class WorkspaceCopy(NamedTuple):
    """A workspace in a backup. `head` is where its chain of hashes ends."""

    workspace: str
    events: int
    head: str


def backup(
    database: str,
    file: Path,
    chosen: Sequence[str],
    progress: Progress,
    *,
    rescued: dict[str, Rescued] | None = None,
) -> list[WorkspaceCopy]:
    """Write the workspaces of a database, or only those chosen, into a file that is not there yet.

    With `rescued`, what can be read of damaged ones is written, and what is lost put into it.

    Raises:
        InvalidInput: The file exists, or there is no such workspace.
        StratagemError: The database cannot be read, or the file cannot be written.
    """
    if file.exists():
        raise InvalidInput(
            f"{file} exists already.",
            hint="Choose another file name: a backup never overwrites a file.",
        )
    names = _select_workspaces(workspaces(database), chosen, display_place(database))
    folder = file.with_name(f"{file.name}.part")
    with _translate_file_errors(file):
        _make_folder(folder)
        copies = []
        for name in names:
            target = folder / _file_of(name)
            place = _place(database, name)
            about = _about(name, names, progress)
            if rescued is None:
                mark = CopyMark.of_this_process("backup", display_place(place))
                head = _copy_workspace(place, target, about, mark).head
                finish_copy(str(target))
            else:
                target.unlink(missing_ok=True)
                rescued[name] = rescue(place, str(target), about)
                head = rescued[name].head
            _close(target)
            copies.append(WorkspaceCopy(name, head.sequence, f"{head.sequence}:{head.hash.hex()}"))
        archive = folder / "archive"
        _pack(archive, folder, copies, progress)
        archive.rename(file)
        _sync_folder(file.parent)
        shutil.rmtree(folder)
    return copies


def _copy_workspace(place: str, target: Path, progress: Progress, mark: CopyMark) -> Copied:
    try:
        return copy(place, str(target), progress, mark)
    except DatabaseCorrupt:
        # Unlike one that was interrupted, it will never be gone on with.
        shutil.rmtree(target.parent)
        raise


def restore(
    file: Path, database: str, chosen: Sequence[str], progress: Progress
) -> list[WorkspaceCopy]:
    """Put a backup into a database that is empty, or go on with what was begun.

    A backup of one workspace goes wherever the database is; several keep their names.

    Raises:
        DatabaseCorrupt: The backup is damaged.
        ImportRefused: The database holds something else.
        InvalidInput: There is no such workspace, or the address names one for several.
    """
    if not file.is_file():
        raise StorageUnavailable(f"There is no backup at {file}.", path=str(file))
    with _translate_file_errors(file):
        mark = CopyMark.of_this_process("restore", str(file.absolute()))
        if _is_database(file):
            _select_workspaces([HOME], chosen, str(file))
            copied = copy(str(file), database, progress, mark)
            finish_copy(database)
            return [WorkspaceCopy(HOME, copied.head.sequence, _text(copied.head))]
        with zipfile.ZipFile(file) as archive:
            listed_copies = _list_workspaces(archive, file)
            # Before anything is written: half of a backup restored is worse than none.
            if archive.testzip() is not None:
                raise _no_backup(file)
            names = _select_workspaces(
                [each.workspace for each in listed_copies], chosen, str(file)
            )
            wanted = [each for each in listed_copies if each.workspace in names]
            _check_target(database, wanted)
            places = [
                database if len(wanted) == 1 else place_within(database, each.workspace)
                for each in wanted
            ]
            with _finish_together(places, mark) as order:
                for at in order:
                    each, place = wanted[at], places[at]
                    told = _about(each.workspace, names, progress)
                    _restore_one(archive, each, place, told, mark)
    return wanted


def copy_all(source: str, target: str, progress: Progress) -> tuple[dict[str, Copied], list[str]]:
    """Copy every workspace of a database into another, each under its name.

    Where one of the two names a workspace (#name), only the one that is meant is copied. Returns
    what was copied, and the workspaces that were not.
    """
    names = workspaces(source) or [HOME]
    mark = CopyMark.of_this_process("copy", display_place(source))
    one = any("#" in place and is_address(place) for place in (source, target))
    if one or names == [HOME]:
        home = home_of(source)
        copied = {home: copy(source, target, progress, mark)}
        finish_copy(target)
        return copied, [name for name in names if name != home]
    copied = {}
    with _finish_together([place_within(target, name) for name in names], mark) as order:
        for name in (names[at] for at in order):
            places = place_within(source, name), place_within(target, name)
            copied[name] = copy(*places, _about(name, names, progress), mark)
    return {name: copied[name] for name in names}, []


def discard(database: str) -> list[str]:
    """Throw away what an interrupted copy or restore wrote into a database; say which workspaces.

    What was there before it, and workspaces that it had not to do with, are left alone.

    Raises:
        InvalidInput: Nothing there is unfinished, or it held something of the same log before.
        StorageBusy: The copy is still being made.
    """
    names = [name for name in workspaces(database) if discard_copy(_place(database, name))]
    if not names:
        raise InvalidInput(
            f"No copy into {display_place(database)} is unfinished.", hint="There is nothing to do."
        )
    if not is_address(database):
        own = Path(database).absolute()
        beside = own.with_name(f"{own.name}-workspaces")
        for folder in (own.parent, beside):
            remove_abandoned(_SCRATCH, folder)
        # Where a folder was made for workspaces, and none is left.
        with suppress(OSError):
            beside.rmdir()
    return names


@contextmanager
def _finish_together(places: Sequence[str], mark: CopyMark) -> Iterator[list[int]]:
    """Mark several databases as unfinished until all of them are copied.

    Yields the order to copy in: first those that hold something, which may be refused. Where one
    is, those that were empty are as they were: repeating the command would be refused again.
    """
    empty = [mark_copy(place, mark) for place in places]
    try:
        yield sorted(range(len(places)), key=empty.__getitem__)
    except ImportRefused:
        for place, was_empty in zip(places, empty, strict=True):
            if was_empty:
                discard_copy(place)
        raise
    for place in places:
        finish_copy(place)


def _is_database(file: Path) -> bool:
    """Whether a file is a database as it is, and no archive."""
    with file.open("rb") as stream:
        return stream.read(len(_DATABASE)) == _DATABASE


def _restore_one(
    archive: zipfile.ZipFile,
    expected: WorkspaceCopy,
    place: str,
    progress: Progress,
    mark: CopyMark,
) -> None:
    beside = None if is_address(place) else Path(place).absolute().parent
    if beside is not None:
        beside.mkdir(mode=0o700, parents=True, exist_ok=True)
    with scratch_folder(_SCRATCH, beside) as folder:
        source = folder / "restored.db"
        with archive.open(_file_of(expected.workspace)) as packed, source.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked, limits.BACKUP_CHUNK_BYTES)
        copied = copy(str(source), place, progress, mark)
    if _text(copied.head) != expected.head:
        raise DatabaseCorrupt(
            f"The workspace {expected.workspace} does not end where the backup says it does.",
            hint="Restore another backup.",
        )


def _pack(archive: Path, folder: Path, copies: Sequence[WorkspaceCopy], progress: Progress) -> None:
    """Write the archive, and read it once more."""
    archive.unlink(missing_ok=True)
    # Others may not read what the database's own user alone can.
    os.close(os.open(archive, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    listed = {"format": _FORMAT, "workspaces": [each._asdict() for each in copies]}
    with archive.open("r+b") as stream:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
            packed.writestr(_LIST, orjson.dumps(listed, option=orjson.OPT_INDENT_2))
            for at, each in enumerate(copies):
                packed.write(folder / _file_of(each.workspace), _file_of(each.workspace))
                progress(at + 1, len(copies), "packing")
        stream.flush()
        os.fsync(stream.fileno())
    with zipfile.ZipFile(archive) as packed:
        if (wrong := packed.testzip()) is not None:
            raise DatabaseCorrupt(
                f"The backup was written, but {wrong} cannot be read back from it.",
                hint="Check the disk, then make the backup again.",
            )


def _list_workspaces(archive: zipfile.ZipFile, file: Path) -> list[WorkspaceCopy]:
    """Return the workspaces that a backup lists, after checking that it has a file for each."""
    try:
        if archive.getinfo(_LIST).file_size > limits.BACKUP_LIST_BYTES_MAX:
            raise _no_backup(file)
        listed: Any = orjson.loads(archive.read(_LIST))
        # Before anything else of it is read, which a newer one may write otherwise.
        if int(listed["format"]) > _FORMAT:
            raise InvalidInput(
                f"{file} was made by a newer Stratagem.",
                hint="Use the Stratagem that made it, or a newer one.",
            )
        listed_copies = [WorkspaceCopy(**each) for each in listed["workspaces"]]
        for each in listed_copies:
            archive.getinfo(_file_of(each.workspace))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _no_backup(file) from error
    if len({each.workspace for each in listed_copies}) < max(1, len(listed_copies)):
        raise _no_backup(file)
    return listed_copies


def _select_workspaces(there: Sequence[str], chosen: Sequence[str], where: str) -> list[str]:
    for name in chosen:
        if name not in there:
            raise InvalidInput(
                f"{where} has no workspace {name!r}.",
                field="workspace",
                allowed=list(there),
                hint=f"It has: {', '.join(there) or 'none'}.",
            )
    if not there:
        raise StorageUnavailable(
            f"There is no database at {where}.", path=where, hint="Name one with --db."
        )
    return [name for name in there if name in chosen] if chosen else list(there)


def _check_target(database: str, wanted: Sequence[WorkspaceCopy]) -> None:
    if len(wanted) > 1 and "#" in database and is_address(database):
        names = ", ".join(each.workspace for each in wanted)
        raise InvalidInput(
            f"The backup has {len(wanted)} workspaces, and the address names one: {names}.",
            field="db",
            hint="Leave the #name out to restore all, or choose one with --workspace.",
        )


def _place(database: str, workspace: str) -> str:
    return database if "#" in database else place_within(database, workspace)


def _file_of(workspace: str) -> str:
    plain = workspace.isascii() and workspace.replace("-", "").replace("_", "").isalnum()
    return f"{workspace if plain else hashlib.sha256(workspace.encode()).hexdigest()}.db"


def _text(head: Any) -> str:
    return f"{head.sequence}:{head.hash.hex()}"


def _about(name: str, names: Sequence[str], progress: Progress) -> Progress:
    """Return progress that says which workspace it is about, where there are several."""
    if len(names) == 1:
        return progress
    return lambda done, total, what: progress(done, total, f"{name}: {what}")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError as error:
        raise InvalidInput(
            f"{folder} is in the way.", hint="Remove it, or choose another file name."
        ) from error


def _close(copied: Path) -> None:
    """Leave nothing of a copy but its file."""
    written = copied.with_name(f"{copied.name}-wal")
    if written.exists() and written.stat().st_size:
        raise StorageUnavailable(
            f"{copied} is in use by another program.",
            path=str(copied),
            hint="Stop that program and repeat the command: the backup continues where it stopped.",
        )
    for end in _BESIDE:
        copied.with_name(f"{copied.name}{end}").unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that the name of a new file in it survives a power failure."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _translate_file_errors(file: Path) -> Iterator[None]:
    """Turn errors of files and archives into Stratagem errors."""
    try:
        yield
    except StratagemError:
        raise
    except _DAMAGED as error:
        raise _no_backup(file) from error
    except OSError as error:
        if error.errno in {None, errno.EINVAL}:
            # No fault of the disk: the archive names places that it does not have.
            raise _no_backup(file) from error
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StorageFull(
                f"The disk is full: {error}.",
                path=str(file),
                hint="Free some space and repeat the command: it continues where it stopped.",
            ) from error
        raise StorageUnavailable(f"{error}.", path=str(file)) from error


def _no_backup(file: Path) -> DatabaseCorrupt:
    return DatabaseCorrupt(
        f"{file} is not a backup, or it is damaged.", path=str(file), hint="Restore another one."
    )
