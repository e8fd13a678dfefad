"""Which format a database file has, and which ones this release can work with.

Two numbers say it: `user_version` counts the migrations of the log, and the setting
`read_models_version` what the read models mean. Another process may raise either at any moment,
so a commit looks at both in its own transaction, and a read looks again after each commit of
another process.
"""

from __future__ import annotations

from typing import Final

from stratagem.errors import DatabaseTooNew
from stratagem.storage.sqlite.statements import migrations

__all__ = ["READ_MODELS_VERSION", "VERSION", "check_format"]

VERSION: Final = max(number for number, _ in migrations())
# Raised with every change to read_models.sql or to what is written into them.
READ_MODELS_VERSION: Final = 17


def check_format(version: int, read_models: int | None, path: str) -> None:
    """Refuse a file of a newer format: this release could only damage it.

    Raises:
        DatabaseTooNew: A newer Stratagem wrote the log, or the read models.
    """
    if version > VERSION:
        raise DatabaseTooNew(
            f"The database has format {version}; this Stratagem works up to {VERSION}.",
            path=path,
            format=version,
            supported=VERSION,
        )
    if read_models is not None and read_models > READ_MODELS_VERSION:
        raise DatabaseTooNew(
            f"The read models of the database have format {read_models}; this Stratagem works up "
            f"to {READ_MODELS_VERSION}.",
            path=path,
            format=read_models,
            supported=READ_MODELS_VERSION,
        )
