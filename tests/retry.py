"""Run tests, and the few that failed beside the others once more, alone: `python -m tests.retry`.

The arguments are those of pytest. Thousands of tests share the machine with servers and processes of
their own. One that fails there and passes alone is flaky: it is named, to be mended, but a change is
not refused for it. More than a few failures are no chance, and are not tried again; neither is a run
that did not come to its end.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

__all__ = ["main"]

# Where pytest keeps which tests failed.
_LAST_FAILED: Final = Path(".pytest_cache/v/cache/lastfailed")
FLAKY_MAX: Final = 3


def main(arguments: Sequence[str]) -> int:
    """Run tests, and what failed again; say which of it passed."""
    status = _run_pytest(arguments)
    if status != pytest.ExitCode.TESTS_FAILED:
        return status
    failed = sorted(json.loads(_LAST_FAILED.read_text(encoding="utf-8")))
    # A file that cannot be collected is no test: its name has no parts.
    if not 0 < len(failed) <= FLAKY_MAX or not all("::" in each for each in failed):
        sys.stdout.write(f"{len(failed)} tests failed; at most {FLAKY_MAX} are tried again.\n")
        return 1
    sys.stdout.write(f"Trying {len(failed)} again, alone.\n")
    sys.stdout.flush()
    status = _run_pytest(["-n", "0", "--last-failed"])
    if not status:
        names = "".join(f"  {each}\n" for each in failed)
        sys.stdout.write(f"FLAKY: failed beside others and passed alone. Mend:\n{names}")
    return status


def _run_pytest(arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
