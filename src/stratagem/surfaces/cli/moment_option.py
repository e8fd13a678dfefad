"""The option that says which past moment a command looks at."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["AsOf"]

AsOf = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN", help='A past moment: "1h ago", "yesterday 14:00", "2026-03-04", "@123".'
    ),
]
