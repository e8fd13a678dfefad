"""The packages of `plugins/`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import skills_ref

from stratagem.clients.catalogue import CLIENTS
from stratagem.clients.hook_lists import HOOKS, HookTarget
from stratagem.clients.packages import package_files
from stratagem.clients.settings_edit import hook_targets, put_hooks
from stratagem.version import VERSION

PLUGINS = Path(__file__).parents[3] / "plugins"
FILES = package_files()
NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?")


def document(name: str) -> Any:
    return json.loads(FILES[name])


def test_nothing_lies_in_the_packages_that_was_not_generated() -> None:
    there = {path.relative_to(PLUGINS).as_posix() for path in PLUGINS.rglob("*") if path.is_file()}

    assert there - {"README.md"} == set(FILES)


@pytest.mark.parametrize(
    "folder", sorted(PLUGINS.glob("*/skills/*")), ids=lambda it: str(it.parts[-3])
)
def test_each_skill_is_one_by_the_reference_library(folder: Path) -> None:
    assert skills_ref.validate(folder) == []


@pytest.mark.parametrize(
    ("client", "file"),
    [
        ("claude-code", "claude-code/hooks/hooks.json"),
        ("codex", "codex/hooks/hooks.json"),
        ("cursor", "cursor/hooks/hooks.json"),
        ("gemini", "gemini/hooks/hooks.json"),
        ("vscode", "agent-plugin/com.github.copilot/hooks/hooks.json"),
    ],
)
def test_the_hooks_of_a_package_are_those_that_init_writes(client: str, file: str) -> None:
    place = CLIENTS[client].hooks["user"]

    written = put_hooks("", place, HOOKS[client], HookTarget(f"stratagem hook {client}"))

    assert json.loads(written) == document(file)
    assert hook_targets(FILES[file]) == [f"stratagem hook {client}"]


@pytest.mark.parametrize(
    ("file", "allowed"),
    [
        (
            "agent-plugin/plugin.json",
            "$schema name version description author homepage repository license keywords extensions",
        ),
        (
            "claude-code/.claude-plugin/plugin.json",
            "name version description author license keywords skills hooks mcpServers userConfig",
        ),
        (
            "codex/.codex-plugin/plugin.json",
            "name version description author license keywords skills mcpServers apps hooks interface",
        ),
        (
            "cursor/.cursor-plugin/plugin.json",
            "name version description author logo license keywords skills hooks mcpServers",
        ),
        (
            "gemini/gemini-extension.json",
            "name version description mcpServers contextFileName excludeTools settings themes",
        ),
        (
            "server.json",
            "$schema name title description version packages remotes repository websiteUrl icons _meta",
        ),
    ],
)
def test_a_manifest_has_documented_fields_alone(file: str, allowed: str) -> None:
    manifest = document(file)

    assert set(manifest) <= set(allowed.split())
    assert manifest["version"] == VERSION
    assert NAME.fullmatch(manifest["name"].rpartition("/")[2])


def test_the_entry_of_the_registry_keeps_its_bounds() -> None:
    entry = document("server.json")

    package = entry["packages"][0]
    assert len(entry["description"]) <= 100
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert (package["registryType"], package["identifier"]) == ("pypi", "stratagem")
    assert package["transport"] == {"type": "stdio"}


@pytest.mark.parametrize(
    "marketplace",
    [
        ".claude-plugin/marketplace.json",
        ".cursor-plugin/marketplace.json",
        ".agents/plugins/marketplace.json",
    ],
)
def test_a_marketplace_leads_to_a_package(marketplace: str) -> None:
    listed = document(marketplace)["plugins"][0]

    source = listed["source"]
    folder = (source if isinstance(source, str) else source["path"]).removeprefix("./")
    assert any(name.startswith(f"{folder}/.") and "plugin.json" in name for name in FILES)


def test_packages_name_no_folder_of_this_machine() -> None:
    assert [name for name, text in FILES.items() if "/work/" in text or "/home/" in text] == []
