"""Folders that code may work in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder on the disk: what lies in /dev/shm belongs to the machine, and no code works there."""
    with TemporaryDirectory() as folder:
        yield Path(folder)
