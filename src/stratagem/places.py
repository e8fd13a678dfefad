"""The default places of the database, the user and this program.

Apart from `bootstrap`, so that a server and a shell's completion can ask before they import
any of the parts that open one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Final

from stratagem.deferred_modules import difflib
from stratagem.deferred_patterns import deferred_pattern
from stratagem.errors import (
    DatabaseNotFound,
    PermissionDenied,
    StorageUnavailable,
    ValidationFailed,
)
from stratagem.projects import (
    DATABASE_NAME,
    PROJECT_FOLDER,
    came_with_repository,
    find_memory,
    is_address,
    is_outside_memory,
    user_folder,
)

__all__ = [
    "DATABASE_NAME",
    "PROJECT_FOLDER",
    "check_place",
    "check_there",
    "database_path",
    "display_place",
    "is_address",
    "is_readable",
    "is_there",
    "local_zone",
    "own_command",
    "personal_path",
    "refuse_memory_of_repository",
    "removed_working_folder",
    "typed_command",
]

_NEAR_MAX: Final = 3
_HOST: Final = r"(?:[\w.%-]+|\[[0-9a-fA-F:.%]+\])(?::[0-9]*)?"
# An address may name several servers, of which the driver takes the one that answers.
_ADDRESS: Final = deferred_pattern(
    rf"(?i:postgres(?:ql)?)://(?:[^@/?#]*@)?(?P<hosts>{_HOST}(?:,{_HOST})*)?"
    r"(?P<path>/[^@/?#]*)?(?:\?[^@#]*)?(?P<workspace>#[^@/]*)?"
)
_SCHEME: Final = deferred_pattern(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_STEPS: Final = {
    "sqlite": "Name the file itself: /path/to/memory.db.",
    "http": "This is the address of a server: use stratagem.connect in Python, or "
    "give it to an agent as an MCP server.",
    "https": "This is the address of a server: use stratagem.connect in Python, or "
    "give it to an agent as an MCP server.",
}


def check_place(place: str) -> None:
    """Refuse an address that is not PostgreSQL's; it would be taken for the name of a file.

    Raises:
        ValidationFailed: It is one. It is not quoted: it may have a password in it.
    """
    found = _SCHEME.match(place)
    if found is None or is_address(place):
        return
    scheme = found[1].lower()
    raise ValidationFailed(
        f"A database cannot be at an address that begins with {scheme[:40]}://.",
        field="database",
        hint=_STEPS.get(scheme, "Name a file, or postgresql://user@host/database."),
    )


def is_readable(address: str) -> bool:
    """Whether the parts of an address can be told apart for sure."""
    return _ADDRESS.fullmatch(address) is not None


def display_place(place: str) -> str:
    """Return where a database is, as it may be shown: an address without user and password.

    Of an address that cannot be told apart for sure nothing is shown: what looks like its host may
    be the beginning of a password.
    """
    if not is_address(place):
        return place
    found = _ADDRESS.fullmatch(place)
    if found is None:
        return "postgresql://…"
    return (
        f"postgresql://{found['hosts'] or 'local'}{found['path'] or ''}{found['workspace'] or ''}"
    )


def database_path(explicit: str | None = None, *, folder: Path | None = None) -> Path:
    """Return the database to use: the one named, the project's own, or the user's own.

    Raises:
        PermissionDenied: The project's own came with its repository.
    """
    if explicit:
        return Path(explicit).expanduser()
    memory = find_memory(str(folder or Path.cwd()))
    if memory is not None:
        refuse_memory_of_repository(memory)
    return Path(memory or user_folder()) / DATABASE_NAME


def removed_working_folder() -> StorageUnavailable | None:
    """Return the error to report where the folder that this process works in was removed."""
    try:
        os.getcwd()  # noqa: PTH109 -- as `Path.cwd` does it
    except FileNotFoundError:
        return StorageUnavailable(
            "The folder that this command was started in has been removed.",
            hint="Change to a folder that exists, for example with `cd ~`, and repeat it there.",
        )
    return None


def refuse_memory_of_repository(memory: str) -> None:
    """Refuse a project's memory that git tracks, which nobody has asked for by its name.

    Otherwise the author of the repository could start programs and plant texts in the user's name.

    Raises:
        PermissionDenied: It came with the repository.
    """
    if not came_with_repository(memory):
        return
    import shlex

    place = Path(memory) / DATABASE_NAME
    raise PermissionDenied(
        f"The memory at {place} came with the repository: git tracks it, so somebody else may have "
        "written it.",
        path=str(place),
        hint=f"If you trust it, name it: --db {shlex.quote(str(place))}. If it is your own: "
        f"git rm -r --cached {shlex.quote(memory)}",
    )


def personal_path(database: str) -> str | None:
    """Return the person's own database, for one that is a project's; None for any other."""
    own = Path(user_folder()) / DATABASE_NAME
    path = Path(database)
    folder = path.parent
    of_project = folder.name == PROJECT_FOLDER or is_outside_memory(str(folder))
    in_project = path.name == DATABASE_NAME and of_project
    return str(own) if in_project and path != own else None


def is_there(place: str) -> bool:
    """Whether a database may be there: of an address only its server knows.

    Raises:
        StorageUnavailable: Nobody may look there, or no file can have the name.
    """
    if place == ":memory:" or is_address(place):
        return True
    try:
        return Path(place).is_file()
    except OSError as error:
        raise StorageUnavailable(f"{place} cannot be opened: {error.strerror}.") from error


def check_there(
    place: str,
    *,
    other: str = "Name another with --db.",
    creation: str = "The first write creates one.",
) -> None:
    """Refuse to read where no database is; files with a similar name are suggested.

    `other` and `creation` say how the caller names another database, and creates one.

    Raises:
        DatabaseNotFound: There is none.
    """
    if is_there(place):
        return
    is_folder = Path(place).is_dir()
    near = _databases_in(Path(place)) if is_folder else _near_files(Path(place))
    named = f"Did you mean {' or '.join(near)}?" if near else other
    if is_folder:
        raise DatabaseNotFound(
            f"{place} is a folder, and a database is a file.", path=place, similar=near, hint=named
        )
    raise DatabaseNotFound(
        f"There is no database at {place}.",
        path=place,
        similar=near,
        hint=f"{named} {creation}",
    )


def _databases_in(folder: Path) -> list[str]:
    """Return what is named like a database in a folder."""
    try:
        return sorted(str(each) for each in folder.glob("*.db") if each.is_file())[:_NEAR_MAX]
    except OSError:
        return []


def _near_files(place: Path) -> list[str]:
    """Return databases whose name is like that of a place, in its folder or in one named alike."""
    folders = [place.parent]
    if not place.parent.is_dir():
        beside = _names_like(place.parent.name, place.parent.parent, Path.is_dir)
        folders = [place.parent.parent / each for each in beside]
    return [
        str(folder / each)
        for folder in folders
        for each in _names_like(place.name, folder, _may_be_database)
    ][:_NEAR_MAX]


def _may_be_database(path: Path) -> bool:
    return path.is_file() and not path.name.endswith(("-wal", "-shm", "-vectors", ".lock"))


def _names_like(name: str, folder: Path, wanted: Callable[[Path], bool]) -> list[str]:
    try:
        names = [each.name for each in folder.iterdir() if wanted(each)]
    except OSError:
        return []
    return difflib.get_close_matches(name, names, n=_NEAR_MAX)


def local_zone() -> tzinfo:
    """Return this machine's time zone, with its summer time, not just its offset of today."""
    from zoneinfo import ZoneInfo

    for name in (os.environ.get("TZ", "").lstrip(":"), _zone_from_symlink(), _zone_from_file()):
        try:
            if name:
                return ZoneInfo(name)
        except (KeyError, OSError, ValueError):
            # Not a name of a zone: TZ may hold a rule or a path.
            continue
    offset = datetime.now(UTC).astimezone().tzinfo  # noqa: TID251 -- only the offset is taken
    return offset or UTC


def _zone_from_symlink() -> str:
    _, found, name = os.path.realpath("/etc/localtime").partition("zoneinfo/")
    return name if found else ""


def _zone_from_file() -> str:
    try:
        return Path("/etc/timezone").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def own_command() -> str | None:
    """Return the path of the command that this installation has; None where there is none."""
    beside = Path(sys.executable).parent / ("stratagem.exe" if os.name == "nt" else "stratagem")
    return str(beside) if beside.is_file() else _find_command()


def typed_command() -> str:
    """Return what a person types to run this: its path where a shell would not find it."""
    own, found = own_command(), _find_command()
    if own is None or (found is not None and Path(found).resolve() == Path(own).resolve()):
        return "stratagem"
    return own


def _find_command() -> str | None:
    """Return the command that a shell would run."""
    import shutil

    return shutil.which("stratagem")
