"""The table of clients."""

from pathlib import Path

import pytest

from stratagem.clients.catalogue import CLIENTS, Folders
from stratagem.clients.hook_lists import HOOKS

PAGE = Path(__file__).parents[3] / "docs" / "clients.md"


@pytest.mark.parametrize("name", CLIENTS)
def test_every_file_of_a_client_is_on_the_page_about_clients(name: str) -> None:
    client = CLIENTS[name]
    row = next(
        line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| `{name}`")
    )

    files = [each for place in client.servers.values() for each in place.files]
    files += [place.file for place in client.hooks.values()]
    files += [place.file for place in client.guidance.values()]
    files += client.plugins.values()

    assert [file for file in files if Path(file).name not in row] == []


def test_every_client_with_hooks_has_a_file_for_them_and_a_list() -> None:
    assert {name for name, client in CLIENTS.items() if client.hooks} == set(HOOKS)


def test_folders_follow_the_environment() -> None:
    here, home = Path("/here"), Path("/home/ada")
    moved = {"CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/d", "XDG_CONFIG_HOME": "/x"}

    usual, elsewhere = Folders(here, home, {}), Folders(here, home, moved)

    assert usual.path("{claude_state}/.claude.json") == home / ".claude.json"
    assert elsewhere.path("{claude_state}/.claude.json") == Path("/d/.claude.json")
    assert elsewhere.path("{codex}/hooks.json") == Path("/c/hooks.json")
    assert elsewhere.path("{zed}/settings.json") == Path("/x/zed/settings.json")
