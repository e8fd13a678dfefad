"""The Markdown files below a folder, for importers.

A folder may come from anywhere: a download, a repository, another user. So only regular files
that lie in the folder itself are read. A link could lead to any file of the machine and is never
followed, not even when it replaces a file between listing and reading; skipped files are reported
with the reason.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ImportRefused

__all__ = ["NoteFiles", "Skipped", "is_hidden", "read_text"]

_LINK = "it is a symbolic link"
_ODD = "it is not a regular file"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that was not imported, and why."""

    file: str
    reason: str


class NoteFiles:
    """The Markdown files below a folder, or a single one. Hidden folders are left out.

    `paths` are relative to the folder, in order; a file that was named itself has its name alone.

    Raises:
        ImportRefused: There is no Markdown file.
    """

    def __init__(self, path: Path) -> None:
        self.paths: list[Path] = []
        self.skipped: list[Skipped] = []
        self._path = path
        if not path.exists():
            raise ImportRefused(
                f"There is nothing at {path}.", file=str(path), hint="Check the path."
            )
        # Who names a link wants what it leads to.
        if not path.is_dir():
            self._folder = path.parent
            self.paths.append(Path(path.name))
            return
        self._folder = path
        self._list(path)
        if not self.paths:
            raise ImportRefused(
                f"There is no Markdown file below {path}{self._left_out()}.",
                file=str(path),
                skipped=[each.file for each in self.skipped],
                hint="Nothing was imported. Name the folder that has the files; hidden folders "
                "below it are left out.",
            )

    def full(self, path: Path) -> Path:
        """Return where a file is."""
        return self._folder / path

    def text(self, path: Path) -> str:
        """Read a file.

        Raises:
            ImportRefused: It cannot be read, or is a link by now.
        """
        if not self._path.is_dir():
            return read_text(self._path)
        with _translate_read_errors(self.full(path)), _open_below(self._folder, path) as descriptor:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ImportRefused(f"{self.full(path)}: {_ODD}.", file=str(self.full(path)))
            with open(descriptor, "rb", closefd=False) as file:
                return file.read().decode("utf-8-sig")

    def _list(self, top: Path) -> None:
        for folder, folders, files in os.walk(top, followlinks=False):
            here = Path(folder)
            folders[:] = sorted(name for name in folders if not is_hidden(name))
            for name in folders:
                if (here / name).is_symlink():
                    self._skip(here / name, _LINK)
            for name in sorted(files):
                if not is_hidden(name) and Path(name).suffix.lower() == ".md":
                    self._take(here / name)
        self.paths.sort()

    def _take(self, path: Path) -> None:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            self._skip(path, _LINK)
        elif not stat.S_ISREG(mode):
            self._skip(path, _ODD)
        else:
            self.paths.append(path.relative_to(self._folder))

    def _skip(self, path: Path, reason: str) -> None:
        self.skipped.append(Skipped(str(path), reason))

    def _left_out(self) -> str:
        if not self.skipped:
            return ""
        return f" but for {len(self.skipped)} left out: {self.skipped[0].reason}"


def read_text(path: Path) -> str:
    """Read a file that was named by the caller.

    Raises:
        ImportRefused: It cannot be read, or is no text.
    """
    with _translate_read_errors(path):
        return path.read_bytes().decode("utf-8-sig")


def is_hidden(name: str) -> bool:
    """Tell whether a file or folder is not for the eyes of a reader."""
    return name.startswith(".")


@contextmanager
def _translate_read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise ImportRefused(
            f"{path} is not text in UTF-8.",
            file=str(path),
            hint="Nothing was imported. Save it as UTF-8, or leave it out of what is imported.",
        ) from error
    except OSError as error:
        raise ImportRefused(f"{path} cannot be read: {error.strerror}.", file=str(path)) from error


@contextmanager
def _open_below(folder: Path, path: Path) -> Iterator[int]:
    """Open a file without following a link anywhere below the folder; give its descriptor."""
    # A pipe in its place must not be waited for.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if os.open not in os.supports_dir_fd:
        # Windows: links there take the rights of an administrator to make.
        descriptor = os.open(folder / path, flags | getattr(os, "O_BINARY", 0))
    else:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        for at, part in enumerate(path.parts, 1):
            above = descriptor
            try:
                more = 0 if at == len(path.parts) else os.O_DIRECTORY
                descriptor = os.open(part, flags | more, dir_fd=above)
            finally:
                os.close(above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
