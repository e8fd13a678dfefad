"""The command as the operating system sees it."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.surfaces.cli.console import Cli

COMMAND = str(Path(sys.executable).parent / "stratagem")


def run(cli: Cli, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        args,
        env={**os.environ, "STRATAGEM_DB": str(cli.database)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_installed_command_stores_and_recalls(cli: Cli) -> None:
    assert run(cli, COMMAND, "store", "city", "Oslo").returncode == 0

    recalled = run(cli, COMMAND, "recall", "city", "--json")

    assert json.loads(recalled.stdout)["value"] == "Oslo"


def test_the_installed_command_serves_until_it_is_told_to_end(cli: Cli) -> None:
    command = [COMMAND, "--db", str(cli.database), "serve", "--port", "0"]

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        answered = httpx2.get(address.replace("/mcp", "/health"), timeout=60, trust_env=False)
        server.terminate()

        assert (answered.status_code, server.wait(timeout=60)) == (200, 0)


def test_the_exit_code_reaches_the_shell(cli: Cli) -> None:
    failed = run(cli, COMMAND, "recall", "city", "--branch", "nope")

    assert (failed.returncode, failed.stdout) == (3, "")
    assert failed.stderr.startswith("Error: There is no branch named 'nope'.")


@pytest.mark.parametrize("form", ["--raw", "--json", ""])
def test_a_reader_that_leaves_early_is_no_error(cli: Cli, form: str) -> None:
    cli("store", "city", "Oslo")

    ended = run(cli, "bash", "-c", f"{COMMAND} recall city {form} | true; echo ${{PIPESTATUS[0]}}")

    assert (ended.stdout, ended.stderr) == ("141\n", "")


def test_python_m_stratagem_is_the_same_command(cli: Cli) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stratagem", "--version"], capture_output=True, text=True, check=True
    )

    assert done.stdout == cli("--version")


def modules_after(*lines: str) -> set[str]:
    """Return what a new interpreter has imported after some lines, an exit among them or not."""
    code = "\n    ".join(["import sys", "try:", *lines, "pass"]).replace("    try:", "try:")
    code += "\nexcept SystemExit: pass\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_the_version_is_said_without_the_rest() -> None:
    loaded = modules_after(
        "sys.argv = ['stratagem', '--version']",
        "from stratagem.surfaces.cli import main",
        "main()",
    )

    assert loaded & {"numpy", "apsw", "pydantic", "mcp", "rich"} == set()


def test_a_server_starts_without_the_database_and_without_what_is_for_people() -> None:
    loaded = modules_after(
        "import stratagem.surfaces.mcp",
        "stratagem.surfaces.mcp.run_stdio = print",
        "sys.argv = ['stratagem', 'mcp']",
        "from stratagem.surfaces.cli import main",
        "main()",
    )

    assert "stratagem.surfaces.cli.servers" in loaded
    assert loaded & {"numpy", "apsw", "rich", "stratagem.bootstrap"} == set()


def test_a_client_on_stdio_is_answered_without_an_event_loop() -> None:
    loaded = modules_after("import stratagem.surfaces.mcp.stdio")

    assert loaded & {"asyncio", "ssl", "mcp", "pydantic", "secrets"} == set()


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_a_person_is_asked_before_something_is_erased(cli: Cli, answer: str, code: int) -> None:
    cli("store", "city", "Oslo")
    ours, theirs = pty.openpty()
    env = {**os.environ, "STRATAGEM_DB": str(cli.database), "TERM": "xterm"}

    process = subprocess.Popen(
        [COMMAND, "purge", "city"], env=env, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.write(ours, f"{answer}\n".encode())
    status = process.wait(timeout=60)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    os.close(theirs)

    assert status == code
    assert "for good" in shown
    assert ("Oslo" in cli("recall", "city")) is (answer == "n")
