"""Where a project's memory is, and where a person's own: found without importing anything heavy.

A project has its memory in `.stratagem/`, or, outside of it, in a folder of the person's own that
is named after the repository: after its git remote, which all clones have in common, or after the
folder of a repository that has no remote. Nothing outside is made but by `stratagem init`.

A hook runs at every prompt of an agent, so what it needs first stands apart from `places`.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from typing import Final

__all__ = [
    "DATABASE_NAME",
    "PROJECT_FOLDER",
    "came_with_repository",
    "common_git_folder",
    "find_git_folder",
    "find_memory",
    "is_address",
    "is_outside_memory",
    "outside_memory",
    "tracked_files",
    "user_config_folder",
    "user_folder",
]

PROJECT_FOLDER: Final = ".stratagem"
DATABASE_NAME: Final = "stratagem.db"
_APPLICATION: Final = "stratagem"
_GIT_FILE_BYTES_MAX: Final = 4_096
_GIT_CONFIG_BYTES_MAX: Final = 1_000_000
_SHORT_NAME_CHARS: Final = 40
_INDEX_BYTES_MAX: Final = 50_000_000
# Of git's index: see `git help index-format`.
_INDEX_VERSION_4: Final = b"\0\0\0\x04"
_INDEX_HEADER_BYTES: Final = 12
_ENTRY_BYTES: Final = 40
_EXTENDED_FLAG: Final = 0x4000
_LENGTH_MASK: Final = 0xFFF
_DIGEST_BYTES: Final = (20, 32)
# A file, a link, a submodule.
_FILE_TYPES: Final = frozenset({0o10, 0o12, 0o16})


def is_address(place: str) -> bool:
    """Whether a place names a PostgreSQL server rather than a file."""
    return place.lower().startswith(("postgresql://", "postgres://"))


def find_memory(folder: str) -> str | None:
    """Return the folder with the memory of the project that a folder belongs to; None if none.

    The nearest `.stratagem`, from the folder upwards; of a git worktree that lies elsewhere, that
    of its repository; or the one outside that is named after the repository.
    """
    here = os.path.realpath(folder)
    found = _find_upwards(here)
    if found is not None:
        return os.path.join(found, PROJECT_FOLDER)
    git = find_git_folder(here)
    if git is None:
        return None
    if os.path.basename(os.path.dirname(git)) == "worktrees":
        # <repository>/.git/worktrees/<name>
        repository = os.path.dirname(os.path.dirname(os.path.dirname(git)))
        if _has_memory(repository):
            return os.path.join(repository, PROJECT_FOLDER)
    if not (os.path.isdir(_outside_folder()) and _is_own_folder(git)):
        return None
    return next((place for place in _outside_places(git) if os.path.isdir(place)), None)


def outside_memory(folder: str) -> str | None:
    """Return the folder outside of a repository that its memory is kept in, or would be.

    None for a folder that is in no repository.
    """
    git = find_git_folder(folder)
    return None if git is None else next(_outside_places(git))


def is_outside_memory(folder: str) -> bool:
    """Whether a folder is one of those that hold the memory of a repository outside of it."""
    return os.path.dirname(os.path.realpath(folder)) == os.path.realpath(_outside_folder())


def _outside_folder() -> str:
    return os.path.join(user_folder(), "projects")


def _outside_places(git: str) -> Iterator[str]:
    """Yield where the memory of a repository may be, by its remote first."""
    home = common_git_folder(git)
    root = os.path.dirname(home) if os.path.basename(home) == ".git" else home
    remote = _remote_of(home)
    for name in (remote, root):
        if name:
            # Only now: most folders have a memory of their own, or none at all.
            import hashlib

            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            short = "".join(filter(_is_plain, os.path.basename(name)))[:_SHORT_NAME_CHARS]
            yield os.path.join(_outside_folder(), f"{short or 'repository'}-{digest}")


def _is_plain(letter: str) -> bool:
    return letter.isascii() and (letter.isalnum() or letter in "-_.")


def common_git_folder(git: str) -> str:
    """Return the git folder that all worktrees of a repository have in common."""
    try:
        with open(os.path.join(git, "commondir"), "rb") as file:
            said = file.read(_GIT_FILE_BYTES_MAX).decode("utf-8", "replace").strip()
    except OSError:
        return git
    return os.path.normpath(os.path.join(git, said)) if said else git


def _remote_of(home: str) -> str:
    """Return where a repository comes from, in the form that all ways to write it have in common.

    That is `origin`, else the first remote that its settings name; empty where there is none.
    """
    try:
        with open(os.path.join(home, "config"), "rb") as file:
            lines = file.read(_GIT_CONFIG_BYTES_MAX).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    remotes: dict[str, str] = {}
    section = ""
    for line in map(str.strip, lines):
        if line.startswith("["):
            section = line
        elif section.startswith('[remote "'):
            name, _, value = line.partition("=")
            if name.strip().lower() == "url":
                remotes.setdefault(section, value.strip().strip('"'))
    address = remotes.get('[remote "origin"]') or next(iter(remotes.values()), "")
    return _plain_address(address)


def _plain_address(address: str) -> str:
    """Return `host/path` for any form of an address; the path of a folder for a folder.

    https://user@host/path.git, ssh://git@host:22/path and git@host:path name one repository.
    """
    scheme, found, rest = address.partition("://")
    if found and scheme.lower() != "file":
        host, _, path = rest.partition("/")
        host = host.rpartition("@")[2].partition(":")[0]
    else:
        rest = rest if found else address
        host, found, path = rest.partition(":")
        if not found or "/" in host or "\\" in host or len(host) == 1:
            # A folder, of Windows with the letter of its drive.
            return rest.rstrip("/").removesuffix(".git")
        host = host.rpartition("@")[2]
    return f"{host.lower()}/{path.strip('/').removesuffix('.git')}"


def find_git_folder(folder: str) -> str | None:
    """Return the git folder of a working tree; of a worktree it is one of its own."""
    top = _find_working_tree(folder)
    if top is None:
        return None
    place = os.path.join(top, ".git")
    return place if os.path.isdir(place) else _read_git_file(place)


def _find_working_tree(folder: str) -> str | None:
    """Return the top of the working tree that a folder is in."""
    here = os.path.realpath(folder)
    while not os.path.exists(os.path.join(here, ".git")):
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent
    return here


def _find_upwards(here: str) -> str | None:
    while not _has_memory(here):
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent
    return here


def _has_memory(folder: str) -> bool:
    """Whether a folder has a memory that is this user's.

    Otherwise another user could create one in a world-writable folder and read what is stored below
    it.
    """
    return _is_own_folder(os.path.join(folder, PROJECT_FOLDER))


def _is_own_folder(folder: str) -> bool:
    try:
        found = os.stat(folder)
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(found.st_mode) and _is_own(found.st_uid)


def _is_own(user: int) -> bool:
    # Windows has no such numbers. What is root's nobody else has made; root works for others.
    return sys.platform == "win32" or user in {0, os.geteuid()} or os.geteuid() == 0


def tracked_files(memory: str) -> frozenset[str]:
    """Return the names of files of a project's memory that git has, in lower case.

    They came with the repository. The empty name stands for the folder itself: a link or a
    submodule in its place brings all that is in it.
    """
    top = _find_working_tree(os.path.dirname(memory))
    if top is None:
        return frozenset()
    places = {os.path.relpath(place, top) for place in (memory, os.path.realpath(memory))}
    folders = [os.fsencode(each.replace(os.sep, "/")).lower() for each in places]
    return frozenset(
        path[len(folder) + 1 :].decode("utf-8", "replace")
        for index in _read_indexes(find_git_folder(top) or "")
        for folder in folders
        for path in _paths_below(index, folder)
    )


def came_with_repository(memory: str) -> bool:
    """Whether git has the database of a project's memory, or a file that belongs to it."""
    return any(not name or name.startswith(DATABASE_NAME) for name in tracked_files(memory))


def _read_indexes(git: str) -> Iterator[bytes]:
    """Yield the files that list what git tracks: of a split index, also those it is based on."""
    try:
        shared = [each for each in os.listdir(git) if each.startswith("sharedindex.")]
    except OSError:
        return
    for name in ("index", *shared):
        try:
            with open(os.path.join(git, name), "rb") as file:
                yield file.read(_INDEX_BYTES_MAX)
        except OSError:
            continue


def _paths_below(index: bytes, folder: bytes) -> Iterator[bytes]:
    """Yield the path of a folder and those below it, as far as an index has them, in lower case."""
    paths = _plain_paths(index, folder)
    if index[4:8] == _INDEX_VERSION_4:
        paths = [each for size in _DIGEST_BYTES for each in _compressed_paths(index, size)]
    for path in paths:
        if path == folder or path.startswith(folder + b"/"):
            yield path


def _plain_paths(index: bytes, beginning: bytes) -> list[bytes]:
    """Return the paths of an index that begin in a certain way, without reading all the others."""
    paths = []
    lower = index.lower()
    at = lower.find(beginning)
    while at >= 0:
        path = lower[at : lower.find(b"\0", at)]
        if _is_entry(index, at, len(path)):
            paths.append(path)
        at = lower.find(beginning, at + len(beginning))
    return paths


def _is_entry(index: bytes, at: int, length: int) -> bool:
    """Whether what stands at a place of an index is the path of an entry.

    The type of the file and the length of the path are before it. An index also holds the names of
    folders, and a path may be the end of a longer one.
    """
    for flags in (at - 2, at - 4):
        if int.from_bytes(index[flags : flags + 2], "big") & _LENGTH_MASK != min(
            length, _LENGTH_MASK
        ):
            continue
        for digest_bytes in _DIGEST_BYTES:
            mode = flags - digest_bytes - 16
            if int.from_bytes(index[mode : mode + 4], "big") >> 12 in _FILE_TYPES:
                return True
    return False


def _compressed_paths(index: bytes, digest_bytes: int) -> list[bytes]:
    """Return the paths of an index of version 4, as git's `index-format` describes its entries.

    Each leaves out how it begins like the one before it. None are returned where the names of
    objects are longer or shorter than said: which they are stands in the repository's settings.
    """
    paths: list[bytes] = []
    path, at = b"", _INDEX_HEADER_BYTES
    try:
        for _ in range(int.from_bytes(index[8:12], "big")):
            at += _ENTRY_BYTES + digest_bytes
            flags = int.from_bytes(index[at : at + 2], "big")
            dropped, at = _read_offset(index, at + (4 if flags & _EXTENDED_FLAG else 2))
            end = index.index(b"\0", at)
            path = path[: len(path) - dropped] + index[at:end].lower()
            if flags & _LENGTH_MASK != min(len(path), _LENGTH_MASK):
                return []
            paths.append(path)
            at = end + 1
    except (IndexError, ValueError):
        return []
    return paths


def _read_offset(index: bytes, at: int) -> tuple[int, int]:
    """Return a number of git's variable length, and where it ends."""
    number = index[at] & 0x7F
    while index[at] & 0x80:
        at += 1
        number = ((number + 1) << 7) | (index[at] & 0x7F)
    return number, at + 1


def _read_git_file(place: str) -> str | None:
    """Return where the git folder of a worktree or a submodule is."""
    try:
        with open(place, "rb") as file:
            told = file.read(_GIT_FILE_BYTES_MAX).decode("utf-8", "replace").strip()
    except OSError:
        return None
    if not told.startswith("gitdir: "):
        return None
    return os.path.normpath(os.path.join(os.path.dirname(place), told.removeprefix("gitdir: ")))


def user_folder() -> str:
    """Return the folder of a person's own database, as `platformdirs.user_data_dir` has it.

    That library takes longer to import than a hook may run; a test compares the two.
    """
    return _user_folder("XDG_DATA_HOME", ".local/share")


def user_config_folder() -> str:
    """Return the folder of a person's own settings, as `platformdirs.user_config_dir` has it."""
    return _user_folder("XDG_CONFIG_HOME", ".config")


def _user_folder(variable: str, usual: str) -> str:
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Application Support")
    else:
        base = os.environ.get(variable, "").strip() or os.path.join(home, usual)
    return os.path.join(base, _APPLICATION)
