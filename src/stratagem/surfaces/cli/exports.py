"""Files that exports are written to, or stdout in their place."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["export_place", "is_stdout"]


def is_stdout(file: Path) -> bool:
    """Whether what is exported goes to stdout, so that nothing is told there."""
    return str(file) == "-"


@contextmanager
def export_place(file: Path) -> Iterator[Path]:
    """Yield where to write; what stands for stdout is printed in the end, once it is whole."""
    if not is_stdout(file):
        yield file
        return
    with TemporaryDirectory() as folder:
        place = Path(folder) / "export"
        yield place
        with place.open(encoding="utf-8") as lines:
            sys.stdout.writelines(lines)
