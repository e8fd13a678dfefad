"""The working directory: the only directory of the machine that code can be given."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from stratagem.errors import ValidationFailed
from stratagem.gateway.sandbox.interpreters import SYSTEM_FOLDERS
from stratagem.gateway.sandbox.layers import NOBODY
from stratagem.gateway.sandbox.permissions import Permissions

__all__ = ["working_folder"]

# Directories of the system: neither they nor anything below them can be given to code.
_NEVER: Final = (*SYSTEM_FOLDERS, "/boot", "/dev", "/etc", "/proc", "/run", "/sys")
_NEVER_WHOLE: Final = ("/", "/home", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var", "/var/tmp")  # noqa: S108


@contextlib.contextmanager
def working_folder(permissions: Permissions, given: str | Path | None) -> Iterator[str | None]:
    """Yield the real path of the directory that a run sees, or None if it sees none.

    A run that may write but was given no directory gets an empty temporary one.

    Raises:
        ValidationFailed: The directory does not exist, or belongs to the system.
    """
    if permissions.filesystem == "none" or (permissions.filesystem == "readonly" and not given):
        yield None
    elif given is not None:
        yield _check_folder(given, writable=permissions.filesystem == "workdir")
    else:
        with tempfile.TemporaryDirectory(prefix="workdir-", ignore_cleanup_errors=True) as made:
            yield _check_folder(made, writable=True)


def _check_folder(given: str | Path, *, writable: bool) -> str:
    real = os.path.realpath(given)
    beneath = any(real == folder or real.startswith(f"{folder}/") for folder in _NEVER)
    if beneath or real in _NEVER_WHOLE:
        raise ValidationFailed(
            f"`workdir` cannot be {real}: it belongs to the machine.", field="workdir"
        )
    if not Path(real).is_dir():
        raise ValidationFailed("`workdir` is not a directory.", field="workdir")
    if writable and os.geteuid() == 0:
        _make_writable(real)
    return real


def _make_writable(real: str) -> None:
    """Make a directory that belongs to root writable for the user that code runs as."""
    # By descriptor: the path could be replaced between the check and the change.
    descriptor = os.open(real, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        seen = os.fstat(descriptor)
        if seen.st_uid == 0:
            os.fchown(descriptor, NOBODY, NOBODY)
        elif seen.st_uid != NOBODY and not seen.st_mode & stat.S_IWOTH:
            raise ValidationFailed(
                "`workdir` belongs to another user, so code could not write there.",
                field="workdir",
                hint=f"Give it to user {NOBODY}, or let everyone write there.",
            )
    finally:
        os.close(descriptor)
