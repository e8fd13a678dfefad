"""init: server, hooks and guidance in other people's settings."""

import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from stratagem.clients.catalogue import CLIENTS
from stratagem.clients.json_edit import JsonText
from tests.manifest import proves
from tests.surfaces.cli.console import Cli

PROGRAM = str(Path(sys.executable).parent / "stratagem")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    # No client of this machine is found, but for those that a test makes.
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return folder


def init(cli: Cli, *args: str) -> str:
    return cli("init", *args, "--yes", STRATAGEM_DB="")


def refused(cli: Cli, *args: str, code: int = 2) -> str:
    result = cli.run("init", *args, "--yes", STRATAGEM_DB="")
    assert result.exit_code == code, result.output
    return result.stderr


def read(file: Path) -> Any:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".toml":
        return tomllib.loads(text)
    return yaml.safe_load(text) if file.suffix == ".yaml" else JsonText(text).value


def files(*tops: Path) -> dict[str, bytes]:
    """Return every file below some folders, but for memories and records."""
    return {
        str(file): file.read_bytes()
        for top in tops
        for file in sorted(top.rglob("*"))
        if file.is_file() and ".stratagem" not in file.parts and ".local" not in file.parts
    }


class Place(NamedTuple):
    """How a client is named, where it looks, and what its entry has besides the command."""

    args: tuple[str, ...]
    file: str
    section: str = "mcpServers"
    fields: dict[str, Any] = {}  # noqa: RUF012 -- never changed


STDIO = {"type": "stdio"}
PLACES = [
    Place(("claude-code", "--project"), "work/.mcp.json", fields=STDIO),
    Place(("claude-code", "--user"), "home/.claude.json", fields=STDIO),
    Place(("claude-desktop", "--user"), "home/.config/Claude/claude_desktop_config.json"),
    Place(("cursor", "--user"), "home/.cursor/mcp.json"),
    Place(("vscode", "--project"), "work/.vscode/mcp.json", "servers", STDIO),
    Place(("vscode", "--user"), "home/.config/Code/User/mcp.json", "servers", STDIO),
    Place(("codex", "--project"), "work/.codex/config.toml", "mcp_servers"),
    Place(("codex", "--user"), "home/.codex/config.toml", "mcp_servers"),
    Place(("gemini", "--project"), "work/.gemini/settings.json"),
    Place(("gemini", "--user"), "home/.gemini/settings.json"),
    Place(("windsurf", "--user"), "home/.codeium/windsurf/mcp_config.json"),
    Place(("zed", "--project"), "work/.zed/settings.json", "context_servers"),
    Place(("zed", "--user"), "home/.config/zed/settings.json", "context_servers"),
    Place(("cline", "--user"), "home/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
    Place(("jetbrains", "--user"), "home/.junie/mcp/mcp.json"),
]  # fmt: skip
EVERY = [(name, scope) for name, client in CLIENTS.items() for scope in client.servers]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: "".join(place.args))
def test_each_client_gets_the_server_where_it_looks_for_it(
    cli: Cli, tmp_path: Path, place: Place
) -> None:
    said = init(cli, *place.args)

    server = read(tmp_path / place.file)[place.section]["stratagem"]
    assert f"Wrote {tmp_path / place.file}." in said
    assert server == {**place.fields, "command": PROGRAM, "args": ["mcp"]}


def test_clients_that_have_forms_of_their_own_get_them(cli: Cli, tmp_path: Path) -> None:
    init(cli, "opencode", "continue", "cursor", "jetbrains", "--project")

    server = {"command": PROGRAM, "args": ["mcp"]}
    assert read(Path("opencode.json"))["mcp"]["stratagem"]["command"] == [PROGRAM, "mcp"]
    block = read(Path(".continue/mcpServers/stratagem.yaml"))
    assert block["mcpServers"] == [{"name": "stratagem", **server}]
    # These start servers in some other folder, and so have to name the project's.
    cursor = read(Path(".cursor/mcp.json"))["mcpServers"]["stratagem"]
    assert cursor["args"] == ["-C", "${workspaceFolder}", "mcp"]
    junie = read(Path(".junie/mcp/mcp.json"))["mcpServers"]["stratagem"]
    assert junie["args"] == ["-C", f"{tmp_path}/work", "mcp"]


@proves("init:again")
@pytest.mark.parametrize(("name", "scope"), EVERY)
def test_a_second_time_changes_nothing_and_remove_leaves_no_trace(
    cli: Cli, tmp_path: Path, home: Path, name: str, scope: str
) -> None:
    init(cli, name, f"--{scope}")
    before = files(home, tmp_path / "work")

    again = init(cli, name, f"--{scope}")
    same = files(home, tmp_path / "work")
    init(cli, name, f"--{scope}", "--remove")

    assert before
    assert "nothing to change" in again
    assert same == before
    assert files(home, tmp_path / "work") == {}
    assert {each.name for each in Path().iterdir()} <= {".stratagem"}
    assert "nothing to change" in init(cli, name, f"--{scope}", "--remove")


@proves("init:undo")
def test_remove_brings_back_every_byte_of_what_was_there(cli: Cli, tmp_path: Path) -> None:
    given = {
        ".mcp.json": '{"mcpServers":{}, "x":1}',
        ".claude/settings.local.json": '{\n  // mine\n  "hooks": {"Stop": [],}\n}',
        "CLAUDE.md": "# Rules\nNo newline at the end",
        ".codex/config.toml": "# mine\nmodel = 'x'   # best\n\n\n",
        ".gemini/settings.json": "",
        "AGENTS.md": "",
    }
    for name, text in given.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    before = files(tmp_path / "work")

    init(cli, "claude-code", "codex", "gemini", "--project")
    init(cli, "claude-code", "codex", "gemini", "--project", "--namespace", "work")
    changed = files(tmp_path / "work")
    init(cli, "--remove", "--project")

    assert all(changed[name] != text for name, text in before.items())
    assert files(tmp_path / "work") == before
    assert Path(".stratagem/stratagem.db").is_file()


def test_remove_leaves_what_others_wrote_meanwhile(cli: Cli) -> None:
    init(cli, "gemini", "cursor", "--project")
    for name in (".gemini/settings.json", ".cursor/hooks.json", "GEMINI.md"):
        file = Path(name)
        text = file.read_text()
        file.write_text(
            f"above\n{text}" if name.endswith(".md") else text.replace("{", '{\n  "x": [1],', 1)
        )

    init(cli, "--remove", "--project")

    assert read(Path(".gemini/settings.json")) == {"x": [1]}
    assert read(Path(".cursor/hooks.json")) == {"x": [1], "version": 1}
    assert Path("GEMINI.md").read_text() == "above\n"
    assert not Path(".cursor/mcp.json").exists()


def test_guidance_that_others_read_too_stays_for_them(cli: Cli) -> None:
    init(cli, "codex", "opencode", "--project")

    init(cli, "codex", "--remove", "--project")
    kept = Path("AGENTS.md").read_text()
    init(cli, "opencode", "--remove", "--project")

    assert "strata_search" in kept
    assert not Path("AGENTS.md").exists()


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini", "cursor"])
def test_hooks_stand_beside_those_of_others(cli: Cli, name: str) -> None:
    place = CLIENTS[name].hooks["project"]
    file = Path(place.file.replace("{here}/", ""))
    other = {"command": "theirs"} if place.form == "cursor" else {"hooks": [{"command": "theirs"}]}
    file.parent.mkdir()
    event = (
        "afterAgentResponse" if name == "cursor" else "AfterAgent" if name == "gemini" else "Stop"
    )
    file.write_text(f'{{\n  // theirs\n  "hooks": {{"{event}": [{json.dumps(other)}]}},\n}}\n')

    init(cli, name, "--project")
    both = read(file)["hooks"]
    text = file.read_text()
    init(cli, name, "--project", "--command", "uvx stratagem")
    again = read(file)["hooks"]

    assert both[event][0] == other
    assert f"{PROGRAM} hook {name}" in json.dumps(both[event][1])
    assert "// theirs" in text
    assert [len(groups) for groups in again.values()] == [len(each) for each in both.values()]
    assert f"uvx stratagem hook {name}" in json.dumps(again[event][1])


def test_hooks_and_guidance_can_be_left_out(cli: Cli, tmp_path: Path) -> None:
    init(cli, "claude-code", "opencode", "--project", "--no-hooks", "--no-guidance")

    written = {Path(file).name for file in files(tmp_path / "work")}
    assert written == {".mcp.json", "opencode.json"}


def test_vs_code_has_no_hooks_besides_those_of_claude_code(cli: Cli) -> None:
    own = Path(".github/hooks/stratagem.json")

    init(cli, "vscode", "--project")
    alone = own.exists()
    init(cli, "claude-code", "--project")
    beside = own.exists()
    init(cli, "vscode", "--project")

    assert alone
    assert not beside
    assert not own.exists()


def test_the_clients_that_are_installed_are_found(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".codex").mkdir()
    program = tmp_path / "bin" / "gemini"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    init(cli, "--project")

    assert Path(".codex/config.toml").exists()
    assert Path(".gemini/settings.json").exists()
    assert not Path(".mcp.json").exists()


def test_a_client_without_settings_for_a_project_is_named_with_what_to_do(
    cli: Cli, home: Path
) -> None:
    (home / ".codeium" / "windsurf").mkdir(parents=True)

    result = cli.run("init", "--project", "--yes", STRATAGEM_DB="")

    assert "stratagem init windsurf --user" in result.stderr
    assert not (home / ".codeium/windsurf/mcp_config.json").exists()


@pytest.mark.parametrize("inside", [".git", ".stratagem"])
def test_in_a_repository_its_top_is_set_up(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    Path(inside).mkdir()
    top = Path.cwd()
    (top / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(top / "deep" / "down")

    init(cli, "claude-code")

    assert (top / ".mcp.json").exists()
    assert (top / ".stratagem" / "stratagem.db").is_file()
    assert (top / ".stratagem" / ".gitignore").read_text() == "*\n"


def test_outside_a_repository_the_users_own_settings_are_changed(cli: Cli, home: Path) -> None:
    init(cli, "claude-code")

    assert (home / ".claude.json").exists()
    assert (home / ".claude" / "CLAUDE.md").exists()
    assert (home / ".local" / "share" / "stratagem" / "stratagem.db").is_file()
    assert not Path(".mcp.json").exists()


def test_the_settings_have_the_options_that_were_given(cli: Cli) -> None:
    options = ("--db", "here.db", "--namespace", "work", "--read-only", "--toolsets", "memory")

    init(cli, "cursor", "--project", *options)

    args = read(Path(".cursor/mcp.json"))["mcpServers"]["stratagem"]["args"]
    place = str(Path("here.db").resolve())
    assert args[:5] == ["mcp", "--db", place, "--namespace", "work"]
    assert args[5:] == ["--toolsets", "memory", "--read-only"]
    assert not Path(".stratagem").exists()


def test_another_command_can_start_the_server(cli: Cli) -> None:
    init(cli, "zed", "--project", "--command", "uvx stratagem")

    server = read(Path(".zed/settings.json"))["context_servers"]["stratagem"]
    assert (server["command"], server["args"]) == ("uvx", ["stratagem", "mcp"])


@proves("init:in-place")
def test_the_rest_of_a_file_stays_to_the_byte(cli: Cli) -> None:
    file = Path(".mcp.json")
    before = '{\n    "mcpServers": {"a": {"command": "x",   "args": []}},\n    "z": [1,2,\n3]\n}\n'
    file.write_text(before)

    said = init(cli, "claude-code", "--project")

    after = file.read_text()
    assert after.startswith(before[: before.index("}}")])
    assert after.endswith('"z": [1,2,\n3]\n}\n')
    assert list(read(file)["mcpServers"]) == ["a", "stratagem"]
    assert "The previous content is in .mcp.json.bak." in said
    assert Path(".mcp.json.bak").read_text() == before


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("vscode", ".vscode/mcp.json", '{\n  // mine\n  "servers": {}, // here\n}\n'),
        ("zed", ".zed/settings.json", '// Zed\n{\n  "theme": "x", /* dark */\n}\n'),
        ("opencode", "opencode.jsonc", '{\n  "model": "m" // best\n}\n'),
        ("codex", ".codex/config.toml", '# mine\nmodel = "o3" # best\n\n[mcp_servers.a] # x\ncommand = "y"\n'),
        ("codex", ".codex/config.toml", 'mcp_servers = {other = {command = "x"}} # mine\n'),
        ("codex", ".codex/config.toml", "[mcp_servers]\nstratagem.command = 'x' # mine\n"),
    ],
)  # fmt: skip
def test_comments_stay_where_they_are(cli: Cli, name: str, file: str, text: str) -> None:
    path = Path(file)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)

    init(cli, name, "--project")

    after = path.read_text()
    section = CLIENTS[name].servers["project"].section
    for line in text.splitlines():
        assert line.rpartition("#" if name == "codex" else "//")[2] in after
    assert PROGRAM in json.dumps(read(path)[section]["stratagem"])


def test_what_somebody_added_to_our_server_is_kept(cli: Cli) -> None:
    file = Path(".mcp.json")
    ours = {"command": "old", "args": [], "env": {"STRATAGEM_NAMESPACE": "mine"}}
    file.write_text(json.dumps({"mcpServers": {"stratagem": ours}}))

    init(cli, "claude-code", "--project")

    server = read(file)["mcpServers"]["stratagem"]
    assert server["env"] == ours["env"]
    assert server["command"] == PROGRAM


@pytest.mark.parametrize(
    ("name", "file", "text", "words"),
    [
        ("zed", ".zed/settings.json", "{'context_servers': {}}", "line 1"),
        ("zed", ".zed/settings.json", "[]", "not an object"),
        ("zed", ".zed/settings.json", '{"context_servers": []}', "not an object of servers"),
        ("zed", ".zed/settings.json", '{"context_servers": {"stratagem": 1}}', "not an object of"),
        ("codex", ".codex/config.toml", "broken = ", "not TOML"),
        ("codex", ".codex/config.toml", "mcp_servers = 7", "not an object of servers"),
        ("codex", ".codex/config.toml", "mcp_servers.stratagem = 7", "not an object of servers"),
        ("continue", ".continue/mcpServers/stratagem.yaml", "a: [", "not YAML"),
        ("continue", ".continue/mcpServers/stratagem.yaml", "mcpServers:\n- name: x\n", "others"),
    ],
)
def test_a_file_that_is_not_understood_is_left_alone_and_shown_what_to_paste(
    cli: Cli, name: str, file: str, text: str, words: str
) -> None:
    path = Path(file)
    path.parent.mkdir(parents=True)
    path.write_text(text)

    said = refused(cli, name, "--project", "--no-hooks", "--no-guidance").replace("\n", " ")

    assert words.replace("others", "other servers") in said
    assert f"by hand to {CLIENTS[name].servers['project'].section}: " in said
    assert "command" in said
    assert path.read_text() == text


def test_a_file_that_is_not_understood_is_named_once_with_what_to_do(cli: Cli) -> None:
    place = Path(".gemini/settings.json")
    place.parent.mkdir()
    place.write_text("{broken")

    # Server and hooks of Gemini CLI are in one file.
    result = cli.run("init", "gemini", "--project", "--yes", STRATAGEM_DB="")

    assert result.stdout.count(f"Not changed: {place.resolve()}") == 1
    assert "Correct it and run this again, or add by hand:\nmcpServers: " in result.stdout
    assert '"hooks": {' in result.stdout
    assert result.stderr.count("is left unchanged") == 1


def test_what_to_do_in_a_client_afterwards_fits_what_was_set_up(cli: Cli) -> None:
    project = init(cli, "claude-code", "codex", "gemini", "--project")
    own = init(cli, "claude-code", "codex", "gemini", "--user")

    assert "asks once whether to use the project's server" in project
    assert "trust the project" in project
    assert "project's server" not in own
    assert "this folder" not in own
    assert "trust" not in own
    assert "approve the hooks: /hooks" in own


def test_one_file_that_is_not_understood_spoils_nothing_for_others(cli: Cli) -> None:
    Path(".mcp.json").write_text("broken")

    result = cli.run("init", "claude-code", "gemini", "--project", "--yes", STRATAGEM_DB="")

    assert result.exit_code == 1
    assert "Not changed: " in result.stdout
    assert PROGRAM in result.stdout
    assert Path(".mcp.json").read_text() == "broken"
    assert "stratagem" in read(Path(".gemini/settings.json"))["mcpServers"]


def test_a_link_is_kept_and_the_mode_of_what_it_leads_to(cli: Cli) -> None:
    kept = Path("dotfiles.json").absolute()
    kept.write_text("{}")
    kept.chmod(0o600)
    Path(".mcp.json").symlink_to(kept)

    init(cli, "claude-code", "--project")
    changed = read(kept)
    mode = stat.S_IMODE(kept.stat().st_mode)
    init(cli, "--remove", "--project")

    assert Path(".mcp.json").is_symlink()
    assert "stratagem" in changed["mcpServers"]
    assert mode == 0o600
    assert kept.read_text() == "{}"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_the_mark_of_a_file_stay_as_they_were(cli: Cli, mark: bytes) -> None:
    Path(".mcp.json").write_bytes(mark + b'{\r\n  "mcpServers": {}\r\n}\r\n')

    init(cli, "claude-code", "--project")

    data = Path(".mcp.json").read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") > 3
    assert data.startswith(mark + b"{")


def test_nothing_is_written_without_a_yes(cli: Cli, tmp_path: Path) -> None:
    result = cli.run("init", "claude-code", "--project", STRATAGEM_DB="")

    assert result.exit_code == 2
    assert '+    "stratagem": {' in result.stdout
    assert "--yes" in result.stderr
    assert files(tmp_path / "work") == {}
    assert not Path(".stratagem").exists()


def test_guidance_that_is_out_of_date_is_replaced_in_its_place(cli: Cli) -> None:
    old = "<!-- stratagem:begin -->\nold\n<!-- stratagem:end -->"
    Path("CLAUDE.md").write_text(f"above\n{old}\nbelow\n")

    init(cli, "claude-code", "--project")

    text = Path("CLAUDE.md").read_text()
    assert text.startswith("above\n<!--")
    assert text.endswith("-->\nbelow\n")
    assert "old" not in text


def test_a_project_gets_a_memory_of_its_own_also_where_no_client_is(cli: Cli) -> None:
    said = init(cli, "--project")

    assert "Created the memory " in said
    assert Path(".stratagem/.gitignore").read_text() == "*\n"
    assert Path(".stratagem/stratagem.db").is_file()
    assert "nothing to change" in init(cli, "--project")


def test_what_cannot_be_meant_is_refused(cli: Cli) -> None:
    assert "claude-code, claude-desktop" in refused(cli)
    assert "claude-code, claude-desktop" in refused(cli, "emacs")
    assert "exclude each other" in refused(cli, "codex", "--user", "--project")


def test_init_answers_in_json(cli: Cli) -> None:
    arguments = ("init", "zed", "--project", "--no-guidance", "--yes", "--json")

    answer = json.loads(cli(*arguments, STRATAGEM_DB=""))

    assert answer["written"] == [
        {
            "file": str(Path.cwd() / ".zed/settings.json"),
            "clients": ["zed"],
            "removed": False,
            "backup": None,
        }
    ]
    assert answer["made"] == str(Path.cwd() / ".stratagem/stratagem.db")


def test_a_file_that_somebody_changes_meanwhile_is_not_overwritten(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stratagem.surfaces.cli import clients

    def answer(*_args: object, **_options: object) -> bool:
        Path(".mcp.json").write_text('{"mine": 1}')
        return True

    monkeypatch.setattr(clients, "confirm", answer)

    said = refused(cli, "claude-code", "--project", code=6)

    assert "meanwhile" in said
    assert read(Path(".mcp.json")) == {"mine": 1}


def check(cli: Cli, *args: str) -> tuple[int, list[dict[str, Any]]]:
    result = cli.run("init", "--check", *args, "--json", STRATAGEM_DB="")
    return result.exit_code, json.loads(result.stdout)["checks"]


@proves("init:check")
def test_a_check_starts_the_servers_as_the_clients_would(cli: Cli) -> None:
    init(cli, "zed", "opencode", "cursor", "--project", "--no-hooks")

    code, found = check(cli)

    assert code == 0, found
    assert {each["client"] for each in found} == {"zed", "opencode", "cursor"}
    assert all("answers, with 12 tools" in each["message"] for each in found)


def test_a_check_runs_the_hooks_and_makes_nothing_of_them(cli: Cli, tmp_path: Path) -> None:
    init(cli, "codex", "gemini", "opencode", "--project", "--no-guidance")
    before = files(tmp_path / "work")

    code, found = check(cli)

    hooks = [each for each in found if each["what"] == "hooks"]
    assert code == 0, found
    assert [(each["client"], each["message"]) for each in hooks] == [
        ("codex", "it runs"),
        ("gemini", "it runs"),
        ("opencode", "it runs"),
    ]
    assert files(tmp_path / "work") == before


def test_a_check_says_of_a_hook_how_it_ended(cli: Cli) -> None:
    init(cli, "codex", "--project", "--no-guidance")
    file = Path(".codex/hooks.json")
    file.write_text(file.read_text().replace(" hook codex", " hook codexx"))

    code, found = check(cli, "--yes")

    (hook,) = [each for each in found if each["what"] == "hooks"]
    assert code == 1
    assert "it ends with status 2" in hook["message"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, "there is no "),
        ("echo hello\ncat", "that is not MCP: hello"),
        ("echo no such thing >&2\nexit 3", "It said: no such thing"),
        ("", "is not a program"),
    ],
)
def test_a_check_says_what_is_wrong(
    cli: Cli, tmp_path: Path, script: str | None, words: str
) -> None:
    program = tmp_path / "server"
    init(cli, "zed", "--project", "--no-guidance", "--command", str(program))
    if script is not None:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755 if script else 0o644)

    code, found = check(cli)

    assert code == 1
    assert words in found[0]["message"]


@pytest.mark.parametrize(
    ("file", "entry"),
    [
        (".mcp.json", {"mcpServers": {"stratagem": {"command": "/bin/sh", "args": ["-c", "{}"]}}}),
        (
            ".claude/settings.local.json",
            {
                "hooks": {
                    "Stop": [{"hooks": [{"type": "command", "command": "{}; stratagem hook"}]}]
                }
            },
        ),
    ],
)
def test_a_check_asks_before_it_starts_what_came_with_a_project(
    cli: Cli, tmp_path: Path, file: str, entry: dict[str, Any]
) -> None:
    mark = tmp_path / "MARK"
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text(json.dumps(entry).replace("{}", f"touch {mark}"))

    said = cli.run("init", "claude-code", "--check", STRATAGEM_DB="")
    there = mark.exists()
    cli.run("init", "claude-code", "--check", "--yes", STRATAGEM_DB="")

    assert said.exit_code == 2
    assert f"touch {mark}" in said.output.replace("\n", "")
    assert not there
    assert mark.exists()


@pytest.mark.parametrize("place", [".mcp.json", ".claude", "CLAUDE.md"])
def test_no_link_leads_init_out_of_a_project(cli: Cli, home: Path, place: str) -> None:
    """Whoever wrote a repository would have a file of the user's changed."""
    target = home / "theirs"
    target.mkdir() if place == ".claude" else target.write_text("{}")
    Path(place).symlink_to(target)

    result = cli.run("init", "claude-code", "--project", "--yes", STRATAGEM_DB="")

    assert result.exit_code == 1
    assert "leads out of the project" in result.output.replace("\n", " ")
    assert [*target.iterdir()] == [] if place == ".claude" else target.read_text() == "{}"


def test_a_check_of_nothing_says_so(cli: Cli) -> None:
    result = cli.run("init", "--check", STRATAGEM_DB="")

    assert result.exit_code == 1
    assert "Run stratagem init" in result.stdout


def test_the_record_of_what_was_done_is_gone_with_what_it_is_about(cli: Cli, home: Path) -> None:
    record = home / ".local/share/stratagem/client-settings.json"

    init(cli, "zed", "--project")
    kept = record.exists()
    init(cli, "zed", "--project", "--remove")

    assert kept
    assert not record.exists()
    assert os.listdir(record.parent) == []


def test_hooks_call_a_server_where_the_client_can(cli: Cli) -> None:
    hooks = Path(".claude/settings.local.json")
    hooks.parent.mkdir()
    hooks.write_text(
        '{\n  // mine\n  "hooks": {"Stop": [{"hooks": [{"type": "http", "url": "http://a/b"}]}]}\n}\n'
    )
    before = hooks.read_text()

    init(cli, "claude-code", "codex", "--project", "--hooks-server", "http://127.0.0.1:7459/")
    written, of_codex = read(hooks)["hooks"], Path(".codex/hooks.json").read_text()
    init(cli, "claude-code", "codex", "--project")
    commands = read(hooks)["hooks"]
    init(cli, "claude-code", "codex", "--project", "--remove")

    [prompt] = written["UserPromptSubmit"][0]["hooks"]
    assert prompt == {
        "type": "http",
        "url": "http://127.0.0.1:7459/stratagem/hook/claude-code",
        "timeout": 5,
    }
    assert written["Stop"][0]["hooks"] == [{"type": "http", "url": "http://a/b"}]
    # A session may begin before anything listens; Codex has commands only.
    assert written["SessionStart"][0]["hooks"][0]["type"] == "command"
    assert "http" not in of_codex
    assert commands["UserPromptSubmit"][0]["hooks"][0]["type"] == "command"
    assert hooks.read_text() == before


def test_hooks_send_the_token_of_a_variable(cli: Cli) -> None:
    init(
        cli,
        "claude-code",
        "--project",
        *("--hooks-server", "http://localhost:7459", "--hooks-token", "MEMORY_TOKEN"),
    )

    [failure] = read(Path(".claude/settings.local.json"))["hooks"]["PostToolUseFailure"][0]["hooks"]
    assert failure["headers"] == {"Authorization": "Bearer $MEMORY_TOKEN"}
    assert failure["allowedEnvVars"] == ["MEMORY_TOKEN"]


@pytest.mark.parametrize("url", ["https://memory.example", "ftp://127.0.0.1", "127.0.0.1:7459"])
def test_hooks_call_no_server_elsewhere(cli: Cli, url: str) -> None:
    said = refused(cli, "claude-code", "--project", "--hooks-server", url)

    assert "not a server on this machine" in said


def test_a_check_says_that_no_server_answers_hooks(cli: Cli) -> None:
    init(cli, "claude-code", "--project", "--hooks-server", "http://127.0.0.1:9")

    told = cli.run("init", "claude-code", "--check", STRATAGEM_DB="")

    assert told.exit_code == 1
    assert "start it with `stratagem serve`" in told.output


def test_hooks_and_server_have_the_database_that_was_named(cli: Cli, tmp_path: Path) -> None:
    database = tmp_path / "elsewhere" / "my notes.db"

    done = cli("--db", str(database), "init", "claude-code", "opencode", "--project", "--yes")
    again = cli("--db", str(database), "init", "claude-code", "opencode", "--project", "--yes")
    command = read(Path(".claude/settings.local.json"))["hooks"]["Stop"][0]["hooks"][0]["command"]
    event = {"hook_event_name": "Stop", "session_id": "one", "cwd": str(Path.cwd())}
    said = {**event, "last_assistant_message": "The tide turns at nine."}
    subprocess.run(command, shell=True, input=json.dumps(said).encode(), check=True)  # noqa: S602

    assert f"Created the memory {database}" in done
    assert "nothing to change" in again
    assert read(Path(".mcp.json"))["mcpServers"]["stratagem"]["args"] == [
        "mcp",
        "--db",
        str(database),
    ]
    assert (
        json.dumps([PROGRAM, "--db", str(database)])
        in Path(".opencode/plugins/stratagem.js").read_text()
    )
    assert "The tide turns at nine." in cli("--db", str(database), "events")
    assert not Path(".stratagem").exists()
    assert "Removed" in cli("--db", str(database), "init", "--project", "--remove", "--yes")
    assert not Path(".claude").exists()


def test_an_address_of_a_server_stays_as_it_is(cli: Cli, postgres_address: str) -> None:
    address = f"{postgres_address}#init-{os.urandom(4).hex()}"

    cli("--db", address, "init", "claude-code", "--project", "--yes")

    command = read(Path(".claude/settings.local.json"))["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert read(Path(".mcp.json"))["mcpServers"]["stratagem"]["args"] == ["mcp", "--db", address]
    assert address in command
