"""What a shell is offered."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.surfaces.cli.console import Cli


def offered(cli: Cli, line: str) -> list[str]:
    result = cli.run(
        _STRATAGEM_COMPLETE="complete_bash",
        COMP_WORDS=line,
        COMP_CWORD=str(len(line.split(" ")) - 1),
    )
    return result.stdout.split()


@pytest.fixture
def filled(cli: Cli) -> Cli:
    cli("store", "user/name", "Ada")
    cli("store", "user/city", "Oslo")
    cli("store", "other", "1", "--namespace", "work")
    cli("branch", "fork", "trial")
    return cli


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("stratagem reca", ["recall"]),
        ("stratagem branch me", ["merge"]),
        ("stratagem recall user/", ["user/city", "user/name"]),
        ("stratagem recall x --branch ", ["default", "trial"]),
        ("stratagem --branch tr", ["trial"]),
        ("stratagem recall x --namespace w", ["work"]),
        ("stratagem recall --namespace work o", ["other"]),
        ("stratagem branch delete t", ["trial"]),
        ("stratagem init cu", ["cursor"]),
    ],
)
def test_names_are_completed(filled: Cli, line: str, expected: list[str]) -> None:
    assert offered(filled, line) == expected


def test_completion_creates_no_database(cli: Cli) -> None:
    cli.database.unlink()

    assert offered(cli, "stratagem recall u") == []
    assert not cli.database.exists()


def test_completion_is_silent_about_a_broken_database(cli: Cli) -> None:
    cli.database.write_bytes(b"no database " * 500)

    assert offered(cli, "stratagem branch delete t") == []


def test_completion_can_be_installed(cli: Cli) -> None:
    assert "--install-completion" in cli()
    # Which shell it is for is told from the one that runs it, whatever runs the tests.
    script = f"{Path(sys.executable).with_name('stratagem')} --show-completion; true"
    shown = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert "_STRATAGEM_COMPLETE=complete_bash" in shown.stdout
