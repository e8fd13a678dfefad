"""Run the few tests that failed beside the others once more, alone: `python -m tests.retry`.

Thousands of tests share the machine with servers and processes of their own. One that fails there and
passes alone is flaky: it is named, to be mended, but a change is not refused for it. More than a few
failures are no chance, and are not tried again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

__all__ = ["main"]

# Where pytest keeps which tests failed.
_LAST_FAILED: Final = Path(".pytest_cache/v/cache/lastfailed")
FLAKY_MAX: Final = 3


def main() -> int:
    """Run what failed again, and say which of it passed."""
    failed = sorted(json.loads(_LAST_FAILED.read_text(encoding="utf-8")))
    # A file that cannot be collected is no test: its name has no parts.
    if not 0 < len(failed) <= FLAKY_MAX or not all("::" in each for each in failed):
        sys.stdout.write(f"{len(failed)} tests failed; at most {FLAKY_MAX} are tried again.\n")
        return 1
    sys.stdout.write(f"Trying {len(failed)} again, alone.\n")
    sys.stdout.flush()
    command = [sys.executable, "-m", "pytest", "-n", "0", "--last-failed"]
    status = subprocess.run(command, check=False).returncode
    if not status:
        names = "".join(f"  {each}\n" for each in failed)
        sys.stdout.write(f"FLAKY: failed beside others and passed alone. Mend:\n{names}")
    return status


if __name__ == "__main__":
    sys.exit(main())
