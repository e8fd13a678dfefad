"""Folders that tools may work in: everything stays below the folder, whatever a path says.

A path is followed one part at a time from the open folder, and a link is never followed: what a
program changes between a check and the use of a path makes no difference.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from stratagem import limits
from stratagem.errors import ExecutionFailed, PermissionDenied, ValidationFailed
from stratagem.gateway.catalogue.standard_tool import ToolRun

__all__ = ["GrantedFolder", "open_folder"]

_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
# A pipe without a writer is not waited for.
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
_DEPTH_MAX: Final = 32
_NAME_BYTES_MAX: Final = 255


def open_folder(run: ToolRun, name: str | None, *, writes: bool = False) -> GrantedFolder:
    """Return the folder of a connection.

    Raises:
        PermissionDenied: It is for reading, and something is to be written.
    """
    settings = run.connection(name, field="folder")
    if writes and not settings.get("writable"):
        raise PermissionDenied(
            "This folder is read-only.",
            reason="read_only",
            hint="An administrator can set `writable` on the connection.",
        )
    root = Path(settings["path"])
    if not root.is_dir():
        raise ExecutionFailed(
            "The folder of this connection does not exist.",
            safe=True,
            hint="An administrator has to set it to a folder that exists.",
        )
    return GrantedFolder(root)


class GrantedFolder:
    """Files below one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read_bytes(self, path: str, bytes_max: int) -> bytes:
        """Return what is in a file.

        Raises:
            ValidationFailed: There is none, or it is too large.
        """
        with self._parent(path) as (parent, name):
            handle = _open(name, os.O_RDONLY | _NO_WAIT | _NO_LINK, parent, path)
            try:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise ValidationFailed(f"{path} is not a file.", field="path")
                with os.fdopen(handle, "rb", closefd=False) as file:
                    data = file.read(bytes_max + 1)
            finally:
                os.close(handle)
        if len(data) > bytes_max:
            raise ValidationFailed(
                f"{path} has more than {bytes_max:,} bytes.", field="path", limit=bytes_max
            )
        return data

    def read_text(self, path: str, chars_max: int) -> str:
        """Return a file as text; what is no UTF-8 in it is marked."""
        return self.read_bytes(path, chars_max * 4).decode("utf-8", "replace")[:chars_max]

    def write_bytes(self, path: str, data: bytes, *, overwrite: bool) -> bool:
        """Write a file as a whole; return whether it is new.

        It is written beside its place first and moved there, so nobody ever sees half of it.
        """
        with self._parent(path) as (parent, name):
            before = _look(name, parent)
            if before is not None and not stat.S_ISREG(before.st_mode):
                raise ValidationFailed(f"{path} is not a file.", field="path")
            if before is not None and not overwrite:
                raise ValidationFailed(
                    f"{path} exists already.",
                    field="path",
                    hint="Set `overwrite`, or change it with edit_file.",
                )
            draft = f".stratagem-{os.getpid()}-{id(data):x}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
            handle = os.open(draft, flags, 0o644, dir_fd=parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                if before is not None:
                    os.chmod(draft, stat.S_IMODE(before.st_mode), dir_fd=parent)
                os.rename(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(draft, dir_fd=parent)
                raise
        return before is None

    def remove(self, path: str, *, folder: bool) -> str:
        """Remove a file, or a folder that is empty; return which."""
        with self._parent(path) as (parent, name):
            found = _look(name, parent)
            if found is None:
                raise _not_there(path)
            if not stat.S_ISDIR(found.st_mode):
                os.unlink(name, dir_fd=parent)
                return "file"
            if not folder:
                raise ValidationFailed(
                    f"{path} is a folder.", field="path", hint="Set `directory` to remove it."
                )
            try:
                os.rmdir(name, dir_fd=parent)
            except OSError:
                raise ValidationFailed(
                    f"{path} is not empty.", field="path", hint="Delete what is in it first."
                ) from None
            return "folder"

    def make_folder(self, path: str) -> bool:
        """Make a folder and those above it; return whether it is new."""
        parts = _parts(path)
        made = False
        for at in range(len(parts)):
            with self._parent("/".join(parts[: at + 1])) as (parent, name):
                found = _look(name, parent)
                if found is None:
                    os.mkdir(name, 0o755, dir_fd=parent)
                    made = True
                elif not stat.S_ISDIR(found.st_mode):
                    raise ValidationFailed(
                        f"{'/'.join(parts[: at + 1])} is not a folder.", field="path"
                    )
        return made

    def is_folder(self, path: str) -> bool:
        """Whether a path names a folder; a link is none."""
        if not _below(path):
            return True
        with self._parent(path) as (parent, name):
            found = _look(name, parent)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def entries(self, path: str) -> list[dict[str, Any]]:
        """Return what is in a folder, by name."""
        with self._open_folder(path) as handle:
            found = []
            for name in sorted(os.listdir(handle))[: limits.FOLDER_ENTRIES_MAX]:  # noqa: PTH208 -- of an open folder
                details = _look(name, handle)
                if details is not None:
                    found.append({"name": name, **_describe(details)})
        return found

    def walk(self, path: str = "") -> Iterator[str]:
        """Yield the files below a folder, none of them through a link; hidden ones are left out."""
        waiting = [path.strip("/")]
        count = 0
        while waiting:
            here = waiting.pop()
            for entry in self.entries(here):
                place = f"{here}/{entry['name']}".lstrip("/")
                if entry["name"].startswith("."):
                    continue
                if entry["kind"] == "folder" and place.count("/") < _DEPTH_MAX:
                    waiting.append(place)
                elif entry["kind"] == "file":
                    yield place
                    count += 1
                    if count >= limits.FOLDER_FILES_MAX:
                        return

    @contextlib.contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """Open the folder that a path lies in, without following any link."""
        parts = _parts(path)
        with self._open_folder("/".join(parts[:-1])) as handle:
            yield handle, parts[-1]

    @contextlib.contextmanager
    def _open_folder(self, path: str) -> Iterator[int]:
        parts = _parts(path) if _below(path) else []
        # The folder itself may be a link: an administrator named it.
        handle = os.open(self._root, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            for part in parts:
                inner = _open(part, _FOLDER, handle, path)
                os.close(handle)
                handle = inner
            yield handle
        except OSError as error:
            raise ExecutionFailed(f"The folder says: {error.strerror}.", answered=True) from error
        finally:
            os.close(handle)


def _parts(path: str) -> list[str]:
    """Return the parts of a path below the folder.

    Raises:
        PermissionDenied: It leads out of the folder.
    """
    if len(path) > limits.FILE_PATH_CHARS_MAX or "\x00" in path:
        raise ValidationFailed("`path` is not a valid path.", field="path")
    parts = _below(path)
    if ".." in parts:
        raise PermissionDenied(
            "The path leads out of the folder.", reason="outside", field="path", path=path[:200]
        )
    if not parts or len(parts) > _DEPTH_MAX:
        raise ValidationFailed("`path` must name a file below the folder.", field="path")
    if any(len(part.encode(errors="surrogatepass")) > _NAME_BYTES_MAX for part in parts):
        raise ValidationFailed("A name is too long.", field="path", limit=_NAME_BYTES_MAX)
    return parts


def _below(path: str) -> list[str]:
    """Return the parts of a path; none for the folder itself."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    return [part for part in parts if part not in {"/", "//", "."}]


def _open(name: str, flags: int, parent: int, path: str) -> int:
    try:
        return os.open(name, flags, dir_fd=parent)
    except FileNotFoundError:
        raise _not_there(path) from None
    except (NotADirectoryError, IsADirectoryError):
        raise ValidationFailed(f"A part of {path} is not a folder.", field="path") from None
    except OSError as error:
        # A link in the place of a file or folder; where it leads is not looked at.
        is_link = error.errno == errno.ELOOP
        words = "it is a link, and links are not followed" if is_link else error.strerror
        raise PermissionDenied(
            f"{path} cannot be opened: {words}.", reason="link" if is_link else "file", field="path"
        ) from None


def _not_there(path: str) -> ValidationFailed:
    return ValidationFailed(
        f"There is no {path}.", field="path", hint="List the folder with read_file and its path."
    )


def _look(name: str, parent: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _describe(details: os.stat_result) -> dict[str, Any]:
    if stat.S_ISDIR(details.st_mode):
        return {"kind": "folder"}
    if stat.S_ISREG(details.st_mode):
        return {"kind": "file", "bytes": details.st_size}
    return {"kind": "link" if stat.S_ISLNK(details.st_mode) else "other"}
