"""Where a database is, and where its user is, when nobody says.

Apart from `bootstrap`, so that a server and a shell's completion can ask before they import
any of the parts that open one.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Final

__all__ = [
    "DATABASE_NAME",
    "PROJECT_FOLDER",
    "database_path",
    "is_address",
    "local_zone",
    "shown_place",
]

PROJECT_FOLDER: Final = ".stratagem"
DATABASE_NAME: Final = "stratagem.db"


def is_address(place: str) -> bool:
    """Whether a place names a PostgreSQL server rather than a file."""
    return place.lower().startswith(("postgresql://", "postgres://"))


def shown_place(place: str) -> str:
    """Return where a database is, as it may be shown: an address without its user's password."""
    if not is_address(place):
        return place
    from urllib.parse import urlsplit

    parts = urlsplit(place)
    port = f":{parts.port}" if parts.port else ""
    workspace = f"#{parts.fragment}" if parts.fragment else ""
    return f"postgresql://{parts.hostname or 'local'}{port}{parts.path}{workspace}"


def database_path(explicit: str | None = None, *, folder: Path | None = None) -> Path:
    """Return the database to use: the one named, the project's own, or the user's own."""
    if explicit:
        return Path(explicit).expanduser()
    here = (folder or Path.cwd()).resolve()
    for place in (here, *here.parents):
        if (place / PROJECT_FOLDER).is_dir():
            return place / PROJECT_FOLDER / DATABASE_NAME
    from platformdirs import user_data_dir

    return Path(user_data_dir("stratagem", appauthor=False)) / DATABASE_NAME


def local_zone() -> tzinfo:
    """Return this machine's time zone, with its summer time, not just its offset of today."""
    from zoneinfo import ZoneInfo

    for name in (os.environ.get("TZ", "").lstrip(":"), _linked_zone(), _noted_zone()):
        try:
            if name:
                return ZoneInfo(name)
        except (KeyError, OSError, ValueError):
            # Not a name of a zone: TZ may hold a rule or a path.
            continue
    offset = datetime.now(UTC).astimezone().tzinfo  # noqa: TID251 -- only the offset is taken
    return offset or UTC


def _linked_zone() -> str:
    _, found, name = os.path.realpath("/etc/localtime").partition("zoneinfo/")
    return name if found else ""


def _noted_zone() -> str:
    try:
        return Path("/etc/timezone").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
