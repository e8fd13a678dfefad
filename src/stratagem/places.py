"""Where a database is, when nobody says.

Apart from `bootstrap`, so that a server and a shell's completion can ask before they import
any of the parts that open one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["DATABASE_NAME", "PROJECT_FOLDER", "database_path"]

PROJECT_FOLDER: Final = ".stratagem"
DATABASE_NAME: Final = "stratagem.db"


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
