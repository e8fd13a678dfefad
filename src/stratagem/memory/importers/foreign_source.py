"""What the readers of other tools' memories have in common."""

from __future__ import annotations

from pathlib import Path

from stratagem.note_files import Skipped

__all__ = ["ForeignSource"]


class ForeignSource:
    """A file or folder of another tool, whose records go into one namespace.

    `skipped` says what the last reading left out, and why.
    """

    def __init__(self, path: Path, namespace: str) -> None:
        self._path = path
        self._namespace = namespace
        self.skipped: list[Skipped] = []

    def _skip(self, name: object, reason: str) -> None:
        self.skipped.append(Skipped(str(name), reason))
