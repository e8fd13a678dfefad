"""mcp and serve: which settings a server is started with."""

import pytest

from stratagem.operation import DEFAULT_TOOLSETS
from stratagem.surfaces import mcp, server
from stratagem.surfaces.serving.settings import PORT_DEFAULT, ServerSettings
from tests.surfaces.cli.console import Cli


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[ServerSettings]:
    """Give the settings that servers would have been started with."""
    settings: list[ServerSettings] = []
    monkeypatch.setattr(mcp, "run_stdio", settings.append)
    monkeypatch.setattr(server, "run", settings.append)
    return settings


@pytest.mark.parametrize("command", ["mcp", "serve"])
def test_without_options_the_defaults_hold(
    cli: Cli, started: list[ServerSettings], command: str
) -> None:
    cli(command)

    assert started == [ServerSettings(database=str(cli.database))]


def test_options_reach_the_server(cli: Cli, started: list[ServerSettings]) -> None:
    cli(
        "--namespace", "work", "serve", "--branch", "trial", "--read-only", "--durability", "fast",
        "--no-auto-embed", "--toolsets", "memory, admin", "--host", "::1", "--port", "7000",
        "--server-name", "a.example", "--server-name", "b.example", "--db", "other.db",
    )  # fmt: skip

    assert started == [
        ServerSettings(
            database="other.db",
            namespace="work",
            branch="trial",
            toolsets=("memory", "admin"),
            read_only=True,
            durability="fast",
            embedder="none",
            host="::1",
            port=7000,
            port_given=True,
            server_names=("a.example", "b.example"),
        )
    ]


def test_the_environment_reaches_the_server(cli: Cli, started: list[ServerSettings]) -> None:
    cli(
        "serve",
        STRATAGEM_PORT=str(PORT_DEFAULT),
        STRATAGEM_TOOLSETS="admin",
        STRATAGEM_READ_ONLY="1",
        STRATAGEM_HOST="::1",
    )

    (settings,) = started
    assert (settings.port, settings.port_given) == (PORT_DEFAULT, True)
    assert (settings.toolsets, settings.read_only, settings.host) == (("admin",), True, "::1")


def test_standard_output_is_left_to_the_protocol(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(settings: ServerSettings) -> None:
        settings.check_toolsets()

    monkeypatch.setattr(mcp, "run_stdio", fail)

    result = cli.run("mcp", "--toolsets", "nope", "--json")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "no toolset named 'nope'" in result.stderr


@pytest.mark.parametrize(
    ("words", "toolsets"),
    [
        (["--developer"], ("developer",)),
        (["--developer", "--toolsets", "memory,debugging"], ("developer", "debugging")),
        (["--toolsets", "developer"], ("developer",)),
        (["--toolsets", "memory,developer,admin"], ("developer", "admin")),
        (["--agent"], DEFAULT_TOOLSETS),
        (["--agent-mode", "--toolsets", "developer"], DEFAULT_TOOLSETS),
    ],
)
@pytest.mark.parametrize("command", ["mcp", "serve"])
def test_developer_mode_takes_the_place_of_the_eight(
    cli: Cli,
    started: list[ServerSettings],
    command: str,
    words: list[str],
    toolsets: tuple[str, ...],
) -> None:
    cli(command, *words)

    assert started[0].toolsets == toolsets
