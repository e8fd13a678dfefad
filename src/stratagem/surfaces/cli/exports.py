"""Files that exports are written to and imports read, or stdout and stdin in their place."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from stratagem.errors import StratagemError

__all__ = ["export_place", "import_name", "import_place", "is_standard"]


_STDIN: Final = "stdin"


def is_standard(file: Path) -> bool:
    """Whether a file stands for stdout, so that nothing is told there, or for stdin."""
    return str(file) == "-"


@contextmanager
def export_place(file: Path) -> Iterator[Path]:
    """Yield where to write; what stands for stdout is printed in the end, once it is whole."""
    if not is_standard(file):
        yield file
        return
    with TemporaryDirectory() as folder:
        place = Path(folder) / "export"
        yield place
        with place.open(encoding="utf-8") as lines:
            sys.stdout.writelines(lines)


@contextmanager
def import_place(file: Path) -> Iterator[Path]:
    """Yield what to read, which may be read more than once; errors speak of stdin where it is."""
    if not is_standard(file):
        yield file
        return
    from stratagem.bootstrap import scratch_folder

    with scratch_folder("stratagem-import-") as folder:
        # Whether it is one document or lines of JSON is then found by reading it.
        place = folder / f"{_STDIN}.json"
        with place.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        try:
            yield place
        except StratagemError as error:
            _speak_of_stdin(error, str(place))
            raise


def import_name(file: Path) -> str:
    """Return what an import calls what it read."""
    return _STDIN if is_standard(file) else str(file)


def _speak_of_stdin(error: StratagemError, place: str) -> None:
    details = {
        name: value.replace(place, _STDIN) if isinstance(value, str) else value
        for name, value in error.details.items()
    }
    error.reword(error.message.replace(place, _STDIN), details)
