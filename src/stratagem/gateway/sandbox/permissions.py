"""The permissions of code in the sandbox, and how a document expresses them.

By default there is no network, no files and no further processes. The permissions of a tool and
those of a call are intersected, so that a caller can narrow what a tool has but never widen it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias, cast

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ValidationFailed

__all__ = ["Filesystem", "Permissions", "read_permissions"]

Filesystem: TypeAlias = Literal["none", "readonly", "workdir"]

# From the strictest to the widest.
_FILESYSTEMS: Final[tuple[Filesystem, ...]] = ("none", "readonly", "workdir")


@dataclass(frozen=True, slots=True)
class Permissions:
    """The permissions and limits of one run.

    `filesystem`: with "readonly" the code may read its working directory, with "workdir" it may
    write there too. `memory_bytes` is for the code, in addition to what its interpreter needs to
    start.
    """

    network: bool = False
    filesystem: Filesystem = "none"
    process_execution: bool = False
    memory_bytes: int = limits.SANDBOX_MEMORY_BYTES_DEFAULT
    seconds: float = limits.SANDBOX_SECONDS_DEFAULT

    def intersect(self, other: Permissions) -> Permissions:
        """Return the stricter of both for each permission and limit."""
        return Permissions(
            network=self.network and other.network,
            filesystem=min(self.filesystem, other.filesystem, key=_FILESYSTEMS.index),
            process_execution=self.process_execution and other.process_execution,
            memory_bytes=min(self.memory_bytes, other.memory_bytes),
            seconds=min(self.seconds, other.seconds),
        )


def read_permissions(
    given: Mapping[str, Any], *, base: Permissions | None = None, field: str = "permissions"
) -> Permissions:
    """Read permissions with names in snake_case or camelCase; `base` gives the missing ones.

    Raises:
        ValidationFailed: A name is unknown or occurs twice, or a value is invalid.
    """
    if not isinstance(given, Mapping):
        raise ValidationFailed(f"`{field}` must be an object.", field=field)
    read: dict[str, Any] = {}
    for key, value in given.items():
        if key not in _NAMES:
            raise ValidationFailed(
                f"`{key}` is not a permission.", field=f"{field}.{key}", limit=sorted(_NAMES)
            )
        name = _NAMES[key]
        if name in read:
            raise ValidationFailed(
                f"`{key}` repeats a permission that is given under another name.",
                field=f"{field}.{key}",
            )
        read[name] = _READERS[name](value, f"{field}.{key}")
    return replace(base or Permissions(), **read)


def _read_flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise ValidationFailed(f"`{field}` must be true or false.", field=field)
    return value


def _read_filesystem(value: object, field: str) -> Filesystem:
    if isinstance(value, bool):
        return "workdir" if value else "none"
    if value not in _FILESYSTEMS:
        raise ValidationFailed(
            f"`{field}` must be true, false or one of {', '.join(_FILESYSTEMS)}.",
            field=field,
            limit=list(_FILESYSTEMS),
        )
    return value


_SIZE: Final = re.compile(r"\s*+(\d{1,15}+(?:\.\d{1,6}+)?)\s*+([kmgt]?)i?b?\s*+", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def _read_memory(value: object, field: str) -> int:
    size: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (match := _SIZE.fullmatch(value)):
        size = float(match[1]) * 1024 ** _POWERS[match[2].lower()]
    low, high = limits.SANDBOX_MEMORY_BYTES_MIN, limits.SANDBOX_MEMORY_BYTES_MAX
    if size is None or not math.isfinite(size) or not low <= size <= high:
        raise ValidationFailed(
            f'`{field}` must be a size such as "256MB", from {low >> 20}MB to {high >> 20}MB.',
            field=field,
            limit=[low, high],
        )
    return int(size)


def _read_seconds(value: object, field: str) -> float:
    low, high = limits.SANDBOX_SECONDS_MIN, limits.SANDBOX_SECONDS_MAX
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    seconds = float(cast("float", value)) / 1000 if is_number else math.nan
    if not low <= seconds <= high:
        raise ValidationFailed(
            f"`{field}` must be a time in milliseconds, from {low * 1000:.0f} to "
            f"{high * 1000:.0f}.",
            field=field,
            limit=[low * 1000, high * 1000],
        )
    return seconds


_NAMES: Final = {
    "network": "network",
    "network_access": "network",
    "networkAccess": "network",
    "filesystem": "filesystem",
    "file_system": "filesystem",
    "fileSystem": "filesystem",
    "process_execution": "process_execution",
    "processExecution": "process_execution",
    "memory": "memory_bytes",
    "memory_limit": "memory_bytes",
    "memoryLimit": "memory_bytes",
    "timeout": "seconds",
    "time_limit": "seconds",
    "timeLimit": "seconds",
}
_READERS: Final[dict[str, Callable[[object, str], Any]]] = {
    "network": _read_flag,
    "filesystem": _read_filesystem,
    "process_execution": _read_flag,
    "memory_bytes": _read_memory,
    "seconds": _read_seconds,
}
