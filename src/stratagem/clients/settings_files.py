"""Settings files on the disk: read, and replaced whole or not at all.

A copy of what was there is kept beside a file that is changed, links are followed, and the mode of
a file stays. What was written is recorded, so that `init --remove` can undo exactly that.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import StorageUnavailable, ValidationFailed

__all__ = [
    "FileRecord",
    "SettingsRecord",
    "digest",
    "read_settings",
    "remove_empty_folders",
    "remove_file",
    "replace_file",
]

_VERSION: Final = 1


@dataclass(slots=True)
class FileRecord:
    """What was done to a file.

    `made` are the places of objects and lists in it that were not there before; `unbroken` says
    that nobody else changed the file between our changes, so that the first backup is what it was.
    """

    clients: list[str] = field(default_factory=list)
    created: bool = False
    made: list[list[str]] = field(default_factory=list)
    backups: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    written: str = ""
    unbroken: bool = True


class SettingsRecord:
    """What `init` did to files of this user, kept beside the user's own database."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.files: dict[str, FileRecord] = {}
        try:
            kept: Any = json.loads(file.read_bytes())
            if kept["version"] == _VERSION:
                self.files = {name: FileRecord(**each) for name, each in kept["files"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            # None yet, or one that cannot be read: then files are changed back by what is in them.
            self.files = {}

    def save(self) -> None:
        """Write the record, or remove it where there is nothing to undo."""
        if not self.files:
            self._file.unlink(missing_ok=True)
            return
        kept = {
            "version": _VERSION,
            "files": {name: asdict(each) for name, each in self.files.items()},
        }
        replace_file(self._file, json.dumps(kept, indent=1) + "\n")


def digest(text: str) -> str:
    """Return the digest by which a text is recognised."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_settings(file: Path) -> str | None:
    """Return the text of a file; None where there is none.

    Raises:
        ValidationFailed: It is not text.
        StorageUnavailable: It cannot be read.
    """
    try:
        return file.read_bytes().decode("utf-8") if file.exists() else None
    except UnicodeDecodeError as error:
        raise ValidationFailed(f"{file} is not text in UTF-8.", file=str(file)) from error
    except OSError as error:
        raise StorageUnavailable(f"{file} cannot be read: {error.strerror}.") from error


def replace_file(file: Path, text: str, *, backup: bool = False) -> tuple[Path | None, list[Path]]:
    """Write a file; return the copy of what it was, if one was asked for, and the folders made.

    Raises:
        StorageUnavailable: It cannot be written. It is as it was.
    """
    # A link is kept, and what it leads to is changed: so do people who keep settings elsewhere.
    file = file.resolve()
    copy = None
    try:
        folders = _make_folders(file.parent)
        is_new = not file.exists()
        if backup and not is_new:
            copy = _free_name(file)
            shutil.copy2(file, copy)
        handle, aside = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        try:
            with os.fdopen(handle, "wb") as new:
                new.write(text.encode())
                new.flush()
                os.fsync(new.fileno())
            Path(aside).chmod(0o644 if is_new else file.stat().st_mode)
            Path(aside).replace(file)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StorageUnavailable(f"{file} cannot be written: {error.strerror}.") from error
    return copy, folders


def remove_file(file: Path) -> None:
    """Remove a file.

    Raises:
        StorageUnavailable: It cannot be removed.
    """
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise StorageUnavailable(f"{file} cannot be removed: {error.strerror}.") from error


def remove_empty_folders(folders: Iterable[str]) -> None:
    """Remove those of some folders that are empty; one that cannot be removed does no harm."""
    for folder in sorted(map(Path, folders), reverse=True):
        with suppress(OSError):
            folder.rmdir()


def _make_folders(folder: Path) -> list[Path]:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def _free_name(file: Path) -> Path:
    names = (file.with_name(f"{file.name}.bak{number or ''}") for number in range(1_000_000))
    return next(name for name in names if not name.exists())
