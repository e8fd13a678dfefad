"""A test that fails beside others and passes alone refuses no change; a run that was cut off does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLAKY = """
from pathlib import Path

def test_the_second_time_it_passes():
    marker = Path("seen")
    seen = marker.exists()
    marker.touch()
    assert seen
"""
BROKEN = """
def test_it_never_passes():
    raise AssertionError
"""
CUT_OFF = """
import pytest

def test_later():
    pytest.exit("no memory is left", returncode=3)
"""

# Plugins that take longer to import than all the rest, and do nothing here.
WITHOUT = "-p no:schemathesis -p no:faker -p no:hypothesispytest"


@pytest.mark.parametrize(
    ("parts", "status"), [((FLAKY,), 0), ((FLAKY, BROKEN), 1), ((FLAKY, CUT_OFF), 3)]
)
def test_what_fails_once_is_told_from_what_fails(
    parts: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    (tmp_path / "test_some.py").write_text("".join(parts), "utf-8")
    environment = {name: each for name, each in os.environ.items() if "PYTEST" not in name}

    done = subprocess.run(
        [sys.executable, "-m", "tests.retry", "-n", "0"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": WITHOUT},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == status, done.stdout
    assert ("FLAKY" in done.stdout) == (status == 0)
