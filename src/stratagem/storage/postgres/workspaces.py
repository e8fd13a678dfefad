"""Which workspaces a PostgreSQL database holds."""

from __future__ import annotations

from contextlib import closing

from psycopg import errors as faults

from stratagem.places import display_place
from stratagem.storage.postgres.connection import connect, translating_errors
from stratagem.storage.postgres.statements import SQL

__all__ = ["workspaces"]


def workspaces(address: str) -> list[str]:
    """Return the names of all workspaces; there are none where nothing was ever written.

    Raises:
        StratagemError: The server cannot be reached, or refuses.
    """
    with (
        translating_errors(display_place(address)),
        closing(connect(address, read_only=True)) as connection,
    ):
        try:
            return [row[0] for row in connection.execute(SQL["workspace_names"])]
        except (faults.UndefinedTable, faults.InvalidSchemaName):
            return []
