"""What the tests of MCP stand on."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a path at which there is no database yet."""
    return tmp_path / "memory.db"
