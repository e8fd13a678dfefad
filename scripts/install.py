"""Install the project into the running environment, and show how far that has come.

Versions are those of constraints.txt. Needs nothing but pip: it runs before anything is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

# pip says nothing for a while when it writes files; a line this often shows that it still works.
LINE_SECONDS = 10.0


def main(target: str) -> int:
    """Install `target` (such as ".[dev]") in editable form; return pip's exit status."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
    command += ["--constraint", "constraints.txt", "--editable", target]
    started, packages, output = time.monotonic(), 0, []
    is_terminal = sys.stdout.isatty()
    shown = started
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            output.append(line)
            packages += line.lstrip().startswith(("Collecting", "Requirement already"))
            step = "writing files" if line.startswith("Installing collected") else "packages"
            now = time.monotonic()
            if is_terminal or now - shown > LINE_SECONDS or step != "packages":
                shown = now
                show(f"  {packages} {step}, {now - started:.0f} s", is_terminal=is_terminal)
    if pip.returncode:
        sys.stdout.write("".join(output[-40:]))
    else:
        took = time.monotonic() - started
        show(f"  done in {took:.0f} s", is_terminal=is_terminal, last=True)
    return pip.returncode


def show(text: str, *, is_terminal: bool, last: bool = False) -> None:
    """Write over the last line on a terminal; below it elsewhere."""
    begin, end = ("\r\033[K", "\n" if last else "") if is_terminal else ("", "\n")
    sys.stdout.write(f"{begin}{text}{end}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
