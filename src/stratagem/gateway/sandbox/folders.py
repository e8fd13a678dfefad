"""The one directory of the machine that code may be given."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from stratagem.errors import ValidationFailed
from stratagem.gateway.sandbox.layers import NOBODY
from stratagem.gateway.sandbox.permissions import Permissions
from stratagem.gateway.sandbox.runtimes import SYSTEM_FOLDERS

__all__ = ["working_folder"]

# Given whole, or a part of these, code could change or read the machine itself.
_NEVER: Final = (*SYSTEM_FOLDERS, "/boot", "/dev", "/etc", "/proc", "/run", "/sys")
_NEVER_WHOLE: Final = ("/", "/home", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var", "/var/tmp")  # noqa: S108


@contextlib.contextmanager
def working_folder(permissions: Permissions, given: str | Path | None) -> Iterator[str | None]:
    """Give the real path of the directory that a run sees, None if it sees none.

    Where it may write and none was given, it gets an empty one that is gone afterwards.

    Raises:
        ValidationFailed: The directory is not there, or is one that is never given.
    """
    if permissions.filesystem == "none" or (permissions.filesystem == "readonly" and not given):
        yield None
    elif given is not None:
        yield _checked(given, writable=permissions.filesystem == "workdir")
    else:
        with tempfile.TemporaryDirectory(prefix="workdir-", ignore_cleanup_errors=True) as made:
            yield _checked(made, writable=True)


def _checked(given: str | Path, *, writable: bool) -> str:
    real = os.path.realpath(given)
    beneath = any(real == folder or real.startswith(f"{folder}/") for folder in _NEVER)
    if beneath or real in _NEVER_WHOLE:
        raise ValidationFailed(
            f"`workdir` cannot be {real}: it belongs to the machine.", field="workdir"
        )
    if not Path(real).is_dir():
        raise ValidationFailed("`workdir` is not a directory.", field="workdir")
    if writable and os.geteuid() == 0:
        _hand_over(real)
    return real


def _hand_over(real: str) -> None:
    """Make a directory of root's writable for the user that code runs as."""
    # By descriptor: the name could be made to lead elsewhere between looking and changing.
    descriptor = os.open(real, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        seen = os.fstat(descriptor)
        if seen.st_uid == 0:
            os.fchown(descriptor, NOBODY, NOBODY)
        elif seen.st_uid != NOBODY and not seen.st_mode & stat.S_IWOTH:
            raise ValidationFailed(
                "`workdir` belongs to another user, and code could not write there.",
                field="workdir",
                hint=f"Give it to user {NOBODY}, or let everyone write there.",
            )
    finally:
        os.close(descriptor)
