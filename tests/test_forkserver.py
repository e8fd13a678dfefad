"""A program that is forked does what it does in a new interpreter."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from tests import forkserver
from tests.forkserver.client import Connection
from tests.surfaces.serving import eventually

_SHOWN = """
import os, sys
print(sys.argv, os.getcwd(), os.environ["MARK"], sys.stdin.read(), __name__, sys.path[0])
print("an error", file=sys.stderr)
sys.exit(7)
"""


@pytest.fixture(params=["forked", "stand-in"])
def python(request: pytest.FixtureRequest) -> list[str]:
    """Give both ways to start a program: from a test, and by a command."""
    return [sys.executable if request.param == "forked" else forkserver.program()]


@pytest.mark.parametrize("form", ["-c", "script", "-m"])
def test_a_program_sees_what_a_new_interpreter_would_show_it(
    python: list[str], form: str, tmp_path: Path
) -> None:
    script = tmp_path / "shown.py"
    script.write_text(_SHOWN, "utf-8")
    named = {"-c": ["-c", _SHOWN], "script": [str(script)], "-m": ["-m", "shown"]}[form]
    how: dict[str, Any] = {
        "cwd": tmp_path,
        "env": {"MARK": "x = y", "PATH": os.environ["PATH"]},
        "input": "told",
        "capture_output": True,
        "text": True,
    }

    forked = forkserver.run([*python, *named, "one", "two words"], **how)
    expected = subprocess.run([sys.executable, *named, "one", "two words"], check=False, **how)

    assert forked.stdout == expected.stdout
    assert (forked.returncode, forked.stderr) == (7, "an error\n")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import sys; sys.exit('no')", 1),
        ("raise ValueError('no')", 1),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import os; os.kill(os.getpid(), 15)", -15),
        ("pass", 0),
    ],
)
def test_a_program_ends_as_it_would(python: list[str], code: str, status: int) -> None:
    done = forkserver.run([*python, "-c", code], capture_output=True, text=True)

    assert done.returncode == status
    assert ("no" in done.stderr) is (status == 1)


def test_what_is_done_at_the_end_is_done(python: list[str]) -> None:
    code = (
        "import atexit, threading, time; atexit.register(print, 'last');"
        "threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start(); print('first')"
    )

    done = forkserver.run([*python, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "first\nthread\nlast\n"


def test_a_signal_reaches_the_program(python: list[str]) -> None:
    code = (
        "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5));"
        "print('ready', flush=True); signal.pause()"
    )

    with forkserver.Process([*python, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)

        assert process.wait(timeout=60) == 5


def test_a_program_dies_with_the_command_that_stands_for_it() -> None:
    code = "import os, signal; print(os.getpid(), flush=True); signal.pause()"

    with subprocess.Popen([forkserver.program(), "-c", code], stdout=subprocess.PIPE) as command:
        assert command.stdout is not None
        process = psutil.Process(int(command.stdout.readline()))
        command.kill()

    eventually(lambda: not process.is_running(), seconds=60)


def test_what_only_a_new_interpreter_can_do_is_done_by_one(python: list[str]) -> None:
    code = "import sys; print('stratagem' in sys.modules, sys.flags.utf8_mode)"

    # As `make PYTHON=…` sets it; no interpreter reads it.
    named = {**os.environ, "PYTHON": sys.executable}
    plain = forkserver.run(
        [*python, "-c", code], env=named, capture_output=True, text=True, check=True
    )
    option = [*python, "-X", "utf8", "-c", code]
    with_option = forkserver.run(option, capture_output=True, text=True, check=True)
    variable = {**os.environ, "PYTHONUTF8": "1"}
    with_variable = forkserver.run(
        [*python, "-c", code], env=variable, capture_output=True, text=True, check=True
    )

    assert plain.stdout == "True 0\n"
    assert with_option.stdout == with_variable.stdout == "False 1\n"


def test_a_client_that_leaves_without_the_last_word_ends_no_server() -> None:
    path = str(Path(forkserver.program()).with_name("socket"))
    with Path(os.devnull).open("r+b") as nothing:
        client = Connection(path)
        process = client.start(["-c", "pass"], os.environ, "/", [nothing.fileno()] * 3)
        # Once it has ended, and has been waited for, the client is told so.
        eventually(lambda: not psutil.pid_exists(process), seconds=60)
        eventually(client.has_news, seconds=60)
        client.close()

    done = forkserver.run([sys.executable, "-c", "pass"])

    assert done.returncode == 0
