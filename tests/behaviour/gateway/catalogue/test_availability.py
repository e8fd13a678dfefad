"""Standard tools: listed whether or not they can be called, and never recommended in vain."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stratagem.errors import StratagemError
from tests.behaviour.conftest import Call
from tests.behaviour.gateway.catalogue.conftest import Desk
from tests.manifest import proves

STANDARD = {
    "search": {"web_search", "news_search", "image_search", "academic_search", "web_fetch"},
    "analysis": {
        "sentiment_analysis",
        "entity_extraction",
        "summarization",
        "code_analysis",
        "code_parser",
        "complexity_analyzer",
        "security_scanner",
        "data_analyzer",
    },
    "generation": {
        "text_generation",
        "code_generation",
        "image_generation",
        "data_synthesis",
        "report_generator",
    },
    "utility": {"calculator", "date_time", "file_converter", "data_transformer"},
    "integration": {"api_caller", "database_query", "webhook_trigger", "email_sender"},
    "filesystem": {"read_file", "write_file", "edit_file", "delete_file", "create_directory"},
}
NEEDY = {
    "web_search": "connect web search",
    "news_search": "connect web search",
    "image_search": "connect web search",
    "database_query": "connect main database",
    "webhook_trigger": "connect deploy webhook",
    "email_sender": "connect mail smtp",
    "read_file": "connect files folder",
    "write_file": "connect files folder",
    "text_generation": "provider_configure",
    "image_generation": "imageModel",
}


@proves("standard:listed")
@pytest.mark.parametrize("category", STANDARD)
def test_every_standard_tool_is_listed_in_its_category(desk: Desk, category: str) -> None:
    listed = desk.database.call("tools_list", {"category": category, "limit": 100})["tools"]

    assert STANDARD[category] <= {each["name"] for each in listed}


@proves("standard:definition")
def test_every_standard_tool_says_what_it_takes_gives_and_needs(desk: Desk) -> None:
    for name in set.union(*STANDARD.values()):
        shown = desk.shown(name)

        assert shown["inputSchema"]["properties"], name
        assert shown["outputSchema"]["properties"], name
        assert all(each["input"] for each in shown["examples"]), name
        assert shown["examples"], name
        assert len(shown["longDescription"]) > 60, name
        needs = shown["requirements"].get("permissions")
        assert needs is not None or name in STANDARD["utility"], name
        [checked] = desk.database.call(
            "tools_validate", {"toolNames": [name], "checkConfiguration": True}
        )["results"]
        assert checked["configuration"]["valid"], checked


@proves("standard:unavailable")
@pytest.mark.parametrize("name", NEEDY)
def test_a_tool_that_lacks_something_says_the_next_step_everywhere(desk: Desk, name: str) -> None:
    lacking = desk.shown(name)["unavailable"]

    assert NEEDY[name] in lacking["nextStep"]
    [checked] = desk.database.call("tools_validate", {"toolNames": [name]})["results"]
    assert not checked["available"]
    assert NEEDY[name] in checked["reason"]
    example = desk.shown(name)["examples"][0]["input"]
    refused = desk.refusal(name, **example)
    assert refused.code == "tool_unavailable"
    assert NEEDY[name] in refused.hint


@proves("standard:recommended")
def test_a_tool_is_recommended_once_it_can_be_called(desk: Desk, folder: Path) -> None:
    def recommended() -> set[str]:
        asked = {"intent": "read a file from the folder", "maxRecommendations": 10}
        told = desk.database.call("tools_recommend", asked)["recommendedTools"]
        return {each["name"] for each in told}

    assert "read_file" not in recommended()

    desk.connect("files", "folder", path=str(folder))

    assert "read_file" in recommended()
    desk.database.call("connection_remove", {"name": "files"})
    assert "read_file" not in recommended()


@proves("standard:names")
def test_a_name_is_free_until_its_standard_tool_can_be_called(desk: Desk, folder: Path) -> None:
    mine = {"description": "Mine.", "inputSchema": {"type": "object"}}
    handler = {"type": "code", "language": "python", "code": "result = 1"}
    desk.database.call("tool_register", {"name": "read_file", "handler": handler, **mine})

    desk.connect("files", "folder", path=str(folder), writable=True)

    assert desk.shown("read_file")["description"] == "Mine."
    assert desk.shown("write_file")["provider"] == "stratagem"
    with pytest.raises(StratagemError) as refused:
        desk.database.call("tool_register", {"name": "write_file", "handler": handler, **mine})
    assert refused.value.code == "tool_exists"


@proves("connection:set")
def test_connections_are_set_listed_and_removed(call: Call) -> None:
    settings = {"engine": "sqlite", "path": "/data/main.db"}

    call("connection_set", name="main", kind="database", settings=settings)

    shown = {"name": "main", "kind": "database", "settings": settings}
    assert call("connections_list")["connections"] == [shown]
    assert call.refusal("connection_remove", name="mian")["error"] == "resource_not_found"
    assert call("connection_remove", name="main") == {"name": "main", "removed": True}
    assert call("connections_list")["connections"] == []


@proves("connection:checked")
@pytest.mark.parametrize(
    ("kind", "settings", "field"),
    [
        ("search", {"provider": "bing"}, "settings.provider"),
        ("search", {"provider": "searxng"}, "settings.url"),
        ("search", {"provider": "brave"}, "settings.apiKey"),
        ("database", {"engine": "sqlite", "path": "relative.db"}, "settings.path"),
        ("database", {"engine": "postgres", "host": "db"}, "settings.database"),
        ("database", {"engine": "sqlite", "path": "/a", "password": "plain"}, "settings.password"),
        ("webhook", {"url": "ftp://x"}, "settings.url"),
        (
            "api",
            {"url": "https://x", "headers": {"Authorization": "Bearer abc"}},
            "settings.headers.Authorization",
        ),
        ("smtp", {"host": "h", "from": "a@b", "recipients": ["nobody"]}, "settings.recipients[0]"),
        ("folder", {"path": "/tmp", "mode": "w"}, "settings"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_their_field(
    desk: Desk, kind: str, settings: dict[str, object], field: str
) -> None:
    with pytest.raises(StratagemError) as refused:
        desk.connect("x", kind, **settings)

    assert refused.value.code == "validation_error"
    assert refused.value.details["field"].startswith(field)


@proves("standard:start")
def test_opening_and_listing_imports_no_library_of_the_extra(tmp_path: Path) -> None:
    program = (
        "import sys, stratagem\n"
        f"db = stratagem.open({str(tmp_path / 's.db')!r}, embedder='none')\n"
        "before = 'stratagem.gateway.catalogue.web_search' in sys.modules\n"
        "db.call('tools_list', {'limit': 500})\n"
        "heavy = {'trafilatura', 'lxml', 'duckdb', 'sqlglot', 'faker', 'tree_sitter', 'lizard', "
        "'pypdf', 'docx', 'openpyxl', 'fpdf', 'vaderSentiment'}\n"
        "print(before, sorted(heavy & set(sys.modules)))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "False []"
