"""init: our server in other people's settings."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.surfaces.cli.console import Cli


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def init(cli: Cli, *args: str) -> str:
    return cli("init", *args, "--yes", STRATAGEM_DB="")


def read(file: Path) -> dict[str, Any]:
    text = file.read_text(encoding="utf-8")
    return tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)


class Client(NamedTuple):
    """How a client is named, where it looks, and what it wants to be told."""

    args: tuple[str, ...]
    file: str
    section: str = "mcpServers"
    kind: str | None = None


CLIENTS = [
    Client(("claude-code",), "work/.mcp.json", kind="stdio"),
    Client(("claude-code", "--user"), "home/.claude.json", kind="stdio"),
    Client(("cursor",), "work/.cursor/mcp.json"),
    Client(("cursor", "--user"), "home/.cursor/mcp.json"),
    Client(("vscode",), "work/.vscode/mcp.json", "servers", "stdio"),
    Client(("vscode", "--user"), "home/.config/Code/User/mcp.json", "servers", "stdio"),
    Client(("codex",), "home/.codex/config.toml", "mcp_servers"),
]
program = str(Path(sys.executable).parent / "stratagem")


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: "".join(client.args))
def test_each_client_gets_the_server_where_it_looks_for_it(
    cli: Cli, tmp_path: Path, client: Client
) -> None:
    said = init(cli, *client.args)

    server = read(tmp_path / client.file)[client.section]["stratagem"]
    assert f"Wrote {tmp_path / client.file}." in said
    assert server.pop("type", None) == client.kind
    assert server == {"command": program, "args": ["mcp"]}


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: "".join(client.args))
def test_a_second_time_changes_nothing(cli: Cli, tmp_path: Path, client: Client) -> None:
    file = tmp_path / client.file
    init(cli, *client.args)
    before = file.read_bytes()

    said = init(cli, *client.args)

    assert "nothing to change" in said
    assert file.read_bytes() == before
    assert list(file.parent.glob("*.bak*")) == []


def test_the_settings_have_the_options_that_were_given(cli: Cli) -> None:
    options = ("--db", "here.db", "--namespace", "work", "--read-only", "--toolsets", "memory")

    init(cli, "cursor", *options)

    args = read(Path(".cursor/mcp.json"))["mcpServers"]["stratagem"]["args"]
    place = str(Path("here.db").resolve())
    assert args[:5] == ["mcp", "--db", place, "--namespace", "work"]
    assert args[5:] == ["--toolsets", "memory", "--read-only"]


def test_another_command_can_start_the_server(cli: Cli) -> None:
    init(cli, "cursor", "--command", "uvx stratagem")

    server = read(Path(".cursor/mcp.json"))["mcpServers"]["stratagem"]
    assert (server["command"], server["args"]) == ("uvx", ["stratagem", "mcp"])


def test_the_rest_of_a_file_stays_to_the_byte(cli: Cli) -> None:
    file = Path(".mcp.json")
    before = '{\n    "mcpServers": {"a": {"command": "x",   "args": []}},\n    "z": [1,2,\n3]\n}\n'
    file.write_text(before)

    said = init(cli, "claude-code")

    after = file.read_text()
    assert after.startswith(before[: before.index("}}")])
    assert after.endswith('"z": [1,2,\n3]\n}\n')
    assert list(read(file)["mcpServers"]) == ["a", "stratagem"]
    assert "What was there is in .mcp.json.bak." in said
    assert Path(".mcp.json.bak").read_text() == before


def test_what_somebody_added_to_our_server_is_kept(cli: Cli) -> None:
    file = Path(".mcp.json")
    ours = {"command": "old", "args": [], "env": {"STRATAGEM_NAMESPACE": "mine"}}
    file.write_text(json.dumps({"mcpServers": {"stratagem": ours}}))

    init(cli, "claude-code")

    server = read(file)["mcpServers"]["stratagem"]
    assert server["env"] == ours["env"]
    assert server["command"] == program


def test_a_toml_file_keeps_its_comments_and_other_tables(cli: Cli, home: Path) -> None:
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text('# mine\nmodel = "o3" # best\n\n[mcp_servers.other]\ncommand = "y"\n')

    init(cli, "codex")
    init(cli, "codex", "--namespace", "work")

    text = file.read_text()
    assert text.startswith('# mine\nmodel = "o3" # best\n\n[mcp_servers.other]\ncommand = "y"\n')
    assert read(file)["mcp_servers"]["stratagem"]["args"] == ["mcp", "--namespace", "work"]
    assert [path.name for path in sorted(file.parent.glob("*.bak*"))] == [
        "config.toml.bak",
        "config.toml.bak1",
    ]


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        (".vscode/mcp.json", '{\n  // mine\n  "servers": {}\n}', "line 2"),
        (".vscode/mcp.json", '{"servers": {},}', "not plain JSON"),
        (".vscode/mcp.json", "[]", "not an object"),
        (".vscode/mcp.json", '{"servers": []}', "does not hold servers"),
        (".vscode/mcp.json", '{"servers": {"stratagem": 1}}', "does not hold servers"),
    ],
)
def test_a_file_that_would_lose_something_is_refused(
    cli: Cli, file: str, text: str, words: str
) -> None:
    path = Path(file)
    path.parent.mkdir()
    path.write_text(text)

    said = cli.refused("init", "vscode", "--yes", code=2)

    assert words in said
    assert '"command"' in said
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        "broken = ",
        'mcp_servers = {stratagem = {command = "x"}}',
        'mcp_servers = {other = {command = "x"}}\n',
        "mcp_servers = 7",
        "mcp_servers.stratagem = 7",
        "[mcp_servers]\nstratagem.command = 'x'\n",
    ],
)
def test_a_toml_file_that_cannot_be_changed_safely_is_refused(
    cli: Cli, home: Path, text: str
) -> None:
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(text)

    said = cli.refused("init", "codex", "--yes", code=2)

    by_hand = said.replace("\n", " ").partition("by hand to mcp_servers: ")[2]
    ours = tomllib.loads(by_hand)["stratagem"]
    assert (ours["command"], ours["args"][0]) == (program, "mcp")
    assert file.read_text() == text


def test_a_link_is_kept_and_what_it_leads_to_is_changed(cli: Cli, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.json"
    kept.write_text("{}")
    Path(".mcp.json").symlink_to(kept)

    init(cli, "claude-code")

    assert Path(".mcp.json").is_symlink()
    assert "stratagem" in read(kept)["mcpServers"]


def test_line_ends_stay_as_they_were(cli: Cli) -> None:
    Path(".mcp.json").write_bytes(b'{\r\n  "mcpServers": {}\r\n}\r\n')

    init(cli, "claude-code")

    data = Path(".mcp.json").read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") > 3


def test_nothing_is_written_without_a_yes(cli: Cli) -> None:
    result = cli.run("init", "claude-code")

    assert result.exit_code == 2
    assert '+    "stratagem": {' in result.stdout
    assert "--yes" in result.stderr
    assert not Path(".mcp.json").exists()


@pytest.mark.parametrize(
    ("client", "file"),
    [
        ("claude-code", "CLAUDE.md"),
        ("codex", "AGENTS.md"),
        ("vscode", "AGENTS.md"),
        ("cursor", ".cursor/rules/stratagem.mdc"),
    ],
)
def test_guidance_is_a_marked_section_that_is_written_once(
    cli: Cli, client: str, file: str
) -> None:
    if not file.startswith("."):
        Path(file).write_text("# My rules\n")

    init(cli, client, "--guidance")
    first = Path(file).read_text()
    said = init(cli, client, "--guidance")

    assert "nothing to change" in said
    assert Path(file).read_text() == first
    assert first.count("<!-- stratagem:begin -->") == 1
    assert first.startswith("---\n" if file.startswith(".") else "# My rules\n\n<!--")


def test_guidance_that_is_out_of_date_is_replaced_in_its_place(cli: Cli) -> None:
    old = "<!-- stratagem:begin -->\nold\n<!-- stratagem:end -->"
    Path("CLAUDE.md").write_text(f"above\n{old}\nbelow\n")

    init(cli, "claude-code", "--guidance")

    text = Path("CLAUDE.md").read_text()
    assert text.startswith("above\n<!--")
    assert text.endswith("-->\nbelow\n")
    assert "old" not in text


def test_a_project_gets_a_memory_of_its_own(cli: Cli) -> None:
    said = init(cli, "--project")

    assert "Made " in said
    assert Path(".stratagem/.gitignore").read_text() == "*\n"
    assert "nothing to change" in init(cli, "--project")


def test_a_client_must_be_named(cli: Cli) -> None:
    assert "claude-code, cursor, vscode or codex" in cli.refused("init", code=2)


def test_init_answers_in_json(cli: Cli) -> None:
    answer = cli.json("init", "claude-code", "--yes")

    assert answer["written"] == [{"file": str(Path.cwd() / ".mcp.json"), "backup": None}]
