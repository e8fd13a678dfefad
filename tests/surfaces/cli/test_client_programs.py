"""The clients that npm has, asked to read what `init` wrote and what `plugins/` holds.

They are fetched once for a machine (about 1 GB), and skipped where the registry is out of reach.
None of them needs an account for what is asked here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.registries import npm_package
from tests.surfaces.cli.console import Cli

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PLUGINS = Path(__file__).parents[3] / "plugins"
PACKAGES = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
}


class Machine:
    """A home and a project of their own, in which clients are run."""

    def __init__(self, top: Path) -> None:
        self.home = top / "home"
        self.project = top / "project"
        self.home.mkdir()
        self.project.mkdir()

    def ask(self, program: str, *args: str) -> str:
        """Run a client, and return all that it says."""
        try:
            _, package = npm_package(PACKAGES[program])
        except LookupError as reason:
            pytest.skip(str(reason))
        folder = next(each for each in package.parents if each.name == "node_modules")
        ours = Path(sys.executable).parent
        kept = ("LANG", "TERM", "TMPDIR")
        done = subprocess.run(
            [str(folder / ".bin" / program), *args],
            cwd=self.project,
            env={
                **{name: os.environ[name] for name in kept if name in os.environ},
                "HOME": str(self.home),
                "PATH": f"{ours}:{os.environ['PATH']}",
                # It takes a folder that nobody was asked about for one that is not trusted.
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
            },
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout + done.stderr


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(made.project)
    return made


def init(machine: Machine, *args: str) -> None:
    Cli(machine.home / "x.db")("init", *args, "--yes", STRATAGEM_DB="")


@pytest.mark.parametrize(
    ("name", "program", "words"),
    [
        ("claude-code", "claude", "Connected"),
        ("codex", "codex", "enabled"),
        ("gemini", "gemini", "Connected"),
        ("opencode", "opencode", "connected"),
    ],
)
def test_a_client_reads_what_init_wrote_into_the_users_settings(
    machine: Machine, name: str, program: str, words: str
) -> None:
    init(machine, name, "--user")

    said = machine.ask(program, "mcp", "list")

    assert "stratagem" in said
    assert words in said


@pytest.mark.parametrize(
    ("name", "program", "words"),
    [
        ("claude-code", "claude", "Pending approval"),
        ("codex", "codex", "enabled"),
        ("gemini", "gemini", "Connected"),
        ("opencode", "opencode", "connected"),
    ],
)
def test_a_client_reads_what_init_wrote_into_a_project(
    machine: Machine, name: str, program: str, words: str
) -> None:
    init(machine, name, "--project")
    trust = machine.home / ".codex" / "config.toml"
    trust.parent.mkdir()
    trust.write_text(f'[projects."{machine.project}"]\ntrust_level = "trusted"\n')

    said = machine.ask(program, "mcp", "list")

    assert "stratagem" in said
    assert words in said


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini", "opencode"])
def test_a_client_knows_nothing_of_us_after_remove(machine: Machine, name: str) -> None:
    init(machine, name, "--user")
    init(machine, name, "--user", "--remove")

    said = machine.ask(name.removesuffix("-code"), "mcp", "list")

    assert "stratagem mcp" not in said


def test_claude_code_validates_and_installs_its_package(machine: Machine) -> None:
    plugin = machine.ask("claude", "plugin", "validate", str(PLUGINS / "claude-code"))
    market = machine.ask("claude", "plugin", "validate", str(PLUGINS))
    machine.ask("claude", "plugin", "marketplace", "add", str(PLUGINS))
    machine.ask("claude", "plugin", "install", "stratagem@stratagem")
    servers = machine.ask("claude", "mcp", "list")

    assert "Validation passed" in plugin
    assert "Validation passed" in market
    assert "plugin:stratagem:stratagem" in servers
    assert "Connected" in servers


def test_codex_installs_its_package(machine: Machine) -> None:
    machine.ask("codex", "plugin", "marketplace", "add", str(PLUGINS))
    machine.ask("codex", "plugin", "add", "stratagem@stratagem")
    listed = machine.ask("codex", "plugin", "list")
    servers = machine.ask("codex", "mcp", "list")

    assert "installed, enabled" in listed
    assert "stratagem" in servers


def test_gemini_validates_its_package(machine: Machine) -> None:
    said = machine.ask("gemini", "extensions", "validate", str(PLUGINS / "gemini"))

    assert "successfully validated" in said
