"""A project's memory and the person's own, read together."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem.bootstrap import Settings, start
from stratagem.operation import Caller
from stratagem.projects import user_folder
from stratagem.surfaces.cli import app


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    (folder / ".stratagem").mkdir(parents=True)
    Path(user_folder()).mkdir(parents=True)
    with stratagem.open(Path(user_folder()) / "stratagem.db") as db:
        db.memory.store("editor", "I write with vim and relative line numbers")
        db.memory.store("city", "Oslo")
    with stratagem.open(folder / ".stratagem" / "stratagem.db") as db:
        db.memory.store("linter", "The project is linted with ruff; line numbers are shown")
        db.memory.store("city", "the project's city is Bergen")
    monkeypatch.chdir(folder)
    return folder


def call(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    with pytest.raises(SystemExit):
        app.root_command().main([*words, "--json"], prog_name="stratagem")
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_a_search_finds_the_best_of_both(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hits = call(capsys, "search", "line numbers")["results"]
    first = call(capsys, "search", "line numbers", "-k", "1")
    second = call(capsys, "search", "line numbers", "-k", "1", "--cursor", first["next"])

    assert {(hit["key"], hit["owner"]) for hit in hits} == {
        ("editor", "personal"),
        ("linter", "project"),
    }
    pages = [*first["results"], *second["results"]]
    assert [hit["key"] for hit in pages] == [hit["key"] for hit in hits[:2]]


def test_a_page_past_the_last_hit_says_that_the_results_end(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        app.root_command().main(
            ["search", "line numbers", "--cursor", "90+9"], prog_name="stratagem"
        )

    said = capsys.readouterr()
    assert said.out == "Nothing more was found.\n"
    assert "The results end before this cursor: there are 2 hits in all." in said.err


def test_a_recall_takes_the_projects_first(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [call(capsys, "recall", key) for key in ("city", "editor")]
    several = call(capsys, "call", "strata_recall", '{"keys": ["city", "editor", "nothing"]}')

    assert [(each["value"], each["owner"]) for each in answers] == [
        ("the project's city is Bergen", "project"),
        ("I write with vim and relative line numbers", "personal"),
    ]
    assert [(each["key"], each["owner"]) for each in several["results"]] == [
        ("city", "project"),
        ("editor", "personal"),
    ]
    assert several["missing"] == ["nothing"]


def test_a_list_goes_on_with_the_persons_own(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed: list[tuple[str, str]] = []
    cursor: list[str] = []
    for _ in range(10):
        page = call(capsys, "list", "--limit", "1", *cursor)
        listed += [(each["key"], each["owner"]) for each in page["results"]]
        if not page.get("next"):
            break
        cursor = ["--cursor", page["next"]]

    assert listed == [
        ("city", "project"),
        ("linter", "project"),
        ("city", "personal"),
        ("editor", "personal"),
    ]


def test_writes_go_to_the_project_and_the_namespace_personal_is_ones_own(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "store", "here", "of the project")
    call(capsys, "store", "mine", "of the person", "--namespace", "personal")

    with stratagem.open(project / ".stratagem" / "stratagem.db") as db:
        of_project = {entry.key for entry in db.memory.list()}
    with stratagem.open(Path(user_folder()) / "stratagem.db") as db:
        own = {entry.key for entry in db.memory.list()}
    assert of_project == {"linter", "city", "here"}
    assert own == {"editor", "city", "mine"}


def test_a_memory_of_ones_own_that_is_damaged_hides_nothing_of_the_project(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (Path(user_folder()) / "stratagem.db").write_bytes(b"rubbish" * 1000)

    answer = call(capsys, "recall", "linter")
    hits = call(capsys, "search", "line numbers")["results"]

    assert answer["found"]
    assert [hit["owner"] for hit in hits] == ["project"]


def test_another_database_by_name_is_read_alone(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / ".stratagem" / "stratagem.db"

    answer = call(capsys, "recall", "editor", "--db", str(path))

    assert not answer["found"]


def test_what_only_ones_own_memory_has_is_named_where_the_project_is_changed_or_looked_back_on(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forgotten = call(capsys, "forget", "editor", "linter", "nothing")
    history = call(capsys, "history", "editor")
    earlier = call(capsys, "recall", "editor", "--as-of", "now")
    own = call(capsys, "history", "editor", "--namespace", "personal")

    assert forgotten["keys"] == ["linter"]
    assert forgotten["missing"] == ["editor", "nothing"]
    assert [(each["key"], each.get("elsewhere")) for each in forgotten["misses"]] == [
        ("editor", ["personal"])
    ]
    assert forgotten["misses"][0]["namespace"] == "default"
    assert history["elsewhere"] == ["personal"]
    assert earlier["elsewhere"] == ["personal"]
    assert len(own["results"]) == 1


def test_the_way_to_what_only_ones_own_memory_has_is_told(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        app.root_command().main(["forget", "editor"], prog_name="stratagem")

    assert "namespace 'personal'" in capsys.readouterr().out


LONG = "This sentence has nothing to do with it and is one of very many like it. " * 400


def test_a_hit_is_read_by_its_key_and_namespace_whoever_has_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "store", "plan", f"{LONG} The launch is in May. {LONG}")
    call(capsys, "log", "note", f"{LONG} The launch was moved. {LONG}")
    own = ("--namespace", "personal")
    call(capsys, "store", "plan", f"{LONG} My own launch is in July. {LONG}", *own)
    call(capsys, "log", "note", f"{LONG} My own launch was moved. {LONG}", *own)

    found = call(capsys, "search", "launch")
    alone = call(capsys, "search", "launch", *own)

    assert len(found["results"]) == 4
    for hit in (*found["results"], *alone["results"]):
        key = hit.get("key") or f"@{hit['sequence']}"
        read = call(capsys, "recall", key, "--namespace", hit["namespace"])
        assert hit["value"] in read["value"]
        assert read["namespace"] == hit["namespace"]


def test_a_hit_of_any_namespace_of_ones_own_memory_is_read_by_what_it_says(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stratagem.open(Path(user_folder()) / "stratagem.db") as db:
        for namespace in ("travel", "personal", "a/b"):
            db.memory.store("plan", f"{LONG} launch as in {namespace}", namespace=namespace)
            db.memory.log("note", f"{LONG} launch logged in {namespace}", namespace=namespace)
    with stratagem.open(project / ".stratagem" / "stratagem.db") as db:
        db.memory.store("plan", f"{LONG} launch of the project", namespace="travel")
        for number in range(8):
            db.memory.log("note", f"of the project {number}", namespace="travel")

    found = call(capsys, "search", "launch")

    assert {hit["namespace"] for hit in found["results"]} == {
        "travel", "personal/travel", "personal/personal", "personal/a/b",
    }  # fmt: skip
    assert len(found["results"]) == 7
    for hit in found["results"]:
        key = hit.get("key") or f"@{hit['sequence']}"
        read = call(capsys, "recall", key, "--namespace", hit["namespace"])
        assert read["found"]
        assert hit["value"] in read["value"]
        assert read["namespace"] == hit["namespace"]


def test_a_namespace_within_ones_own_memory_is_written_listed_and_searched(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = ("--namespace", "personal/travel")
    call(capsys, "store", "visa", "needed for Georgia", *there)

    listed = call(capsys, "list", *there)["results"]
    found = call(capsys, "search", "Georgia", *there)["results"]
    missed = call(capsys, "recall", "visa", "--namespace", "personal")
    call(capsys, "forget", "visa", *there)

    assert [(each["key"], each["namespace"]) for each in (*listed, *found)] == [
        ("visa", "personal/travel"),
        ("visa", "personal/travel"),
    ]
    assert missed["elsewhere"] == ["personal/travel"]
    assert not call(capsys, "recall", "visa", *there)["found"]


def test_the_text_of_a_hit_says_once_that_it_is_ones_own(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "store", "visa", "needed for Georgia", "--namespace", "personal/travel")

    with pytest.raises(SystemExit):
        app.root_command().main(["search", "Georgia"], prog_name="stratagem")

    said = capsys.readouterr().out
    assert "personal/travel" in said
    assert "personal memory" not in said


def test_how_to_read_a_long_value_is_said_where_only_ones_own_memory_has_one(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "store", "launch", "The launch is in May")
    call(capsys, "store", "plan", f"{LONG} My launch is in July.", "--namespace", "personal")

    answer = call(capsys, "search", "launch")

    assert [hit["owner"] for hit in answer["results"] if "chars" in hit] == ["personal"]
    assert "strata_recall" in answer["note"]


def test_a_namespace_of_ones_own_memory_can_be_the_default_of_every_operation(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRATAGEM_NAMESPACE", "personal/travel")

    call(capsys, "store", "visa", "needed for Georgia")
    status = call(capsys, "status")
    listed = call(capsys, "namespaces")
    found = call(capsys, "search", "Georgia or line numbers")["results"]
    bare = call(capsys, "recall", "editor", "--namespace", "personal")

    assert status["namespace"] == "personal/travel"
    assert status["namespaces"] == ["personal", "personal/travel"]
    assert listed["current"] == "personal/travel"
    assert {each["name"] for each in listed["results"]} == {"personal", "personal/travel"}
    # Where to write is no filter.
    assert {hit["namespace"] for hit in found} == {"personal", "personal/travel"}
    assert bare["found"]


def test_status_takes_a_namespace_of_ones_own_memory(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = call(capsys, "--namespace", "personal/travel", "status")

    assert status["namespace"] == "personal/travel"


def namespaces_of(path: Path) -> dict[str, int]:
    with stratagem.open(path, create=False) as db:
        listed = db.memory.namespaces()
    return {each.name: each.entries + each.events for each in listed}


def of_project(folder: Path) -> dict[str, int]:
    return namespaces_of(folder / ".stratagem" / "stratagem.db")


def of_person() -> dict[str, int]:
    return namespaces_of(Path(user_folder()) / "stratagem.db")


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("strata_store", {"items": [{"key": "k", "value": "own", "namespace": "personal/money"}]}),
        (
            "strata_store",
            {
                "namespace": "personal/money",
                "items": [
                    {"key": "k", "value": "own", "namespace": "personal/money"},
                ],
            },
        ),
        ("strata_store", {"namespace": "personal/money", "items": [{"key": "k", "value": "own"}]}),
        (
            "strata_store",
            {
                "namespace": "travel",
                "items": [{"key": "k", "value": "own", "namespace": "personal/money"}],
            },
        ),
        ("strata_store", {"key": "k", "value": "own", "ns": "personal/money"}),
        (
            "strata_kv_put_many",
            {"items": [{"key": "k", "value": "own", "namespace": "personal/money"}]},
        ),
        ("strata_kv_put", {"key": "k", "value": "own", "namespace": "personal/money"}),
        ("strata_json_set", {"key": "k", "value": "own", "namespace": "personal/money"}),
    ],
)
def test_what_is_ones_own_is_written_there_however_a_call_names_it(
    project: Path, capsys: pytest.CaptureFixture[str], operation: str, arguments: dict[str, Any]
) -> None:
    bare = json.loads(json.dumps(arguments).replace("personal/money", "personal"))

    answers = [call(capsys, "call", operation, json.dumps(each)) for each in (arguments, bare)]
    read = [
        call(capsys, "recall", "k", "--namespace", each) for each in ("personal/money", "personal")
    ]

    assert [each["value"] for each in read] == ["own", "own"]
    named = [each.get("results", [each])[0]["namespace"] for each in answers]
    assert named == ["personal/money", "personal"]
    assert of_project(project) == {"default": 2}
    assert of_person() == {"default": 3, "money": 1}


def test_an_event_is_logged_in_ones_own_memory_by_another_name_of_the_parameter(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"event": "note", "data": "my own salary", "ns": "personal/money"}

    logged = call(capsys, "call", "strata_log", json.dumps(given))

    assert "`ns` read as `namespace`" in logged["correction"]
    assert of_project(project) == {"default": 2}
    assert of_person() == {"default": 2, "money": 1}


@pytest.mark.parametrize("mine", ["personal", "personal/money"])
def test_items_of_two_memories_are_not_stored_together(
    project: Path, capsys: pytest.CaptureFixture[str], mine: str
) -> None:
    items = [
        {"key": "one", "value": "the project's"},
        {"key": "two", "value": "mine", "namespace": mine},
    ]

    refused = call(capsys, "call", "strata_store", json.dumps({"items": items}))

    assert refused["error"] == "validation_error"
    assert refused["details"] == {"field": "items", "path": "items[1].namespace"}
    assert "in a call of their own" in refused["hint"]
    assert of_project(project) == {"default": 2}
    assert of_person() == {"default": 2}


def test_a_transaction_of_the_project_takes_nothing_of_ones_own(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = call(capsys, "call", "strata_txn_begin", "{}")["transaction"]
    given = {"key": "k", "value": "own", "namespace": "personal/money", "transaction": begun}

    refused = call(capsys, "call", "strata_store", json.dumps(given))
    call(capsys, "call", "strata_txn_commit", json.dumps({"transaction": begun}))

    assert refused["error"] == "not_in_transaction"
    assert refused["details"]["field"] == "namespace"
    assert of_project(project) == {"default": 2}
    assert of_person() == {"default": 2}


def test_an_import_puts_nothing_of_ones_own_into_the_project(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, plain = project / "own.jsonl", project / "plain.jsonl"
    with stratagem.open(project / "other.db") as other:
        other.memory.store("plain", "of any project")
        other.memory.fork("before")
        other.memory.store("salary", "my own", namespace="personal/money")
    there = ("--db", str(project / "other.db"))
    call(capsys, "export", str(source), *there)
    call(capsys, "export", str(plain), *there, "--branch", "before")

    refused = [
        call(capsys, "import", str(source)),
        call(capsys, "import", str(plain), "--namespace", "personal/money"),
    ]

    for each in refused:
        assert each["error"] == "validation_error", each
        assert each["details"]["field"] == "namespace"
        assert "your own memory" in each["hint"]
    assert of_project(project) == {"default": 2}


def test_a_projects_database_takes_nothing_of_ones_own_where_it_is_opened_alone(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / ".stratagem" / "stratagem.db"

    refused = call(capsys, "store", "k", "own", "--namespace", "personal", "--db", str(path))
    with stratagem.open(path) as db, pytest.raises(stratagem.ValidationFailed) as raised:
        db.memory.log("note", "my own salary", namespace="personal/money")

    assert refused["error"] == "validation_error"
    assert raised.value.details["field"] == "namespace"
    assert of_project(project) == {"default": 2}


def test_a_call_from_an_event_loop_is_read_as_it_was_meant_before_it_is_known_whose_it_is(
    project: Path,
) -> None:
    own = str(Path(user_folder()) / "stratagem.db")
    settings = Settings(str(project / ".stratagem" / "stratagem.db"), personal=own)
    given = {"items": [{"key": "k", "value": "own", "namespace": "personal/money"}]}

    with closing(start(settings)) as runtime:
        asyncio.run(runtime.call_async("strata_store", given, Caller()))
        alias = {"key": "s", "value": "own", "ns": "personal"}
        asyncio.run(runtime.call_async("strata_store", alias, Caller()))

    assert of_project(project) == {"default": 2}
    assert of_person() == {"default": 3, "money": 1}


def test_a_namespace_of_ones_own_memory_is_deleted_and_restored_as_a_whole(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = ("--namespace", "personal/travel")
    call(capsys, "store", "visa", "needed for Georgia", *there)
    call(capsys, "store", "visa", "of the project", "--namespace", "travel")

    deleted = call(capsys, "delete-namespace", "personal/travel")
    gone = call(capsys, "recall", "visa", *there)
    restored = call(capsys, "restore-namespace", "personal/travel", "--as-of", deleted["before"])
    back = call(capsys, "recall", "visa", *there)
    bare = call(capsys, "delete-namespace", "personal")

    assert (deleted["namespace"], deleted["deleted"]) == ("personal/travel", 1)
    assert not gone["found"]
    assert (restored["namespace"], restored["restored"]) == ("personal/travel", 1)
    assert back["value"] == "needed for Georgia"
    assert (bare["namespace"], bare["deleted"]) == ("personal", 2)
    assert of_project(project) == {"default": 2, "travel": 1}


def test_a_space_of_ones_own_memory_is_created_found_used_and_deleted(project: Path) -> None:
    own = str(Path(user_folder()) / "stratagem.db")
    settings = Settings(str(project / ".stratagem" / "stratagem.db"), personal=own)
    caller = Caller()

    with closing(start(settings)) as runtime:
        created = runtime.call("strata_space_create", {"name": "personal/travel"}, caller)
        used = runtime.call("strata_space_use", {"name": "personal/travel"}, caller)
        runtime.call("strata_store", {"key": "visa", "value": "needed"}, caller)
        spaces = runtime.call("strata_space_list", {}, caller)
        gone = runtime.call(
            "strata_space_delete", {"name": "personal/travel", "force": True}, caller
        )
        left = runtime.call("strata_space_use", {"name": "default"}, caller)
        there = runtime.call("strata_space_exists", {"name": "personal/travel"}, caller)

    assert created["name"] == used["namespace"] == gone["name"] == "personal/travel"
    assert spaces["current"] == "personal/travel"
    assert {each["name"] for each in spaces["results"]} == {"personal", "personal/travel"}
    assert (gone["deleted"], gone["entries"]) == (True, 1)
    assert left["namespace"] == caller.namespace == "default"
    assert there == {"name": "personal/travel", "exists": False}


def test_what_an_earlier_version_stored_in_a_project_under_such_a_name_is_named_and_read(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / ".stratagem" / "stratagem.db"
    before = call(capsys, "doctor")["warnings"]
    path.unlink()
    with stratagem.open(project / "old.db") as db:
        db.memory.store("budget", "of the old project", namespace="personal/money")
    (project / "old.db").rename(path)
    there = ("--namespace", "personal/money", "--db", str(path))

    warnings = call(capsys, "doctor")["warnings"]
    read = call(capsys, "recall", "budget", *there)
    call(capsys, "forget", "budget", *there)
    after = call(capsys, "doctor")["warnings"]

    assert before == after == []
    assert len(warnings) == 1
    assert "'personal/money'" in warnings[0]
    assert f"--db {path}" in warnings[0]
    assert read["value"] == "of the old project"


def test_a_status_lists_the_standing_instructions_of_both(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = call(capsys, "status")
    call(capsys, "store", "units", "Always answer in metres.", "--namespace", "personal")
    call(capsys, "store", "tests", "Always run the tests before a commit.")

    answer = call(capsys, "status")
    with pytest.raises(SystemExit):
        app.root_command().main(["status"], prog_name="stratagem")
    said = capsys.readouterr().out

    assert before["instructions"] == []
    assert [(each["text"], each.get("owner")) for each in answer["instructions"]] == [
        ("Always run the tests before a commit.", None),
        ("Always answer in metres.", "personal"),
    ]
    assert answer["keys"] == before["keys"] + 1
    assert said.count("personal memory") == 1


def test_a_search_of_both_says_what_lists_the_instructions_of_the_personal_memory(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "store", "meeting", "My standing desk comes on Monday")
    call(capsys, "store", "units", "Always answer in metres.", "--namespace", "personal")

    answer = call(capsys, "search", "my standing instructions")

    assert [each["owner"] for each in answer["results"]] == ["project"]
    assert "lists the user's standing instructions." in answer["note"]


def test_a_status_lists_the_newest_instructions_and_says_that_there_are_older_ones(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stratagem.open(Path(user_folder()) / "stratagem.db") as db:
        db.memory.store(
            items=[{"key": f"i/{n}", "value": f"Always use unit {n}."} for n in range(6)]
        )
    with stratagem.open(project / ".stratagem" / "stratagem.db") as db:
        db.memory.store(
            items=[{"key": f"i/{n}", "value": f"Always run check {n}."} for n in range(6)]
        )

    answer = call(capsys, "status")

    assert answer["instructions_more"]
    assert [each.get("owner") for each in answer["instructions"]] == [None] * 6 + ["personal"] * 4
