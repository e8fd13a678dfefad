"""Memories of other tools, imported through the command that people use."""

import json
import signal
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem.memory.importers.formats import SOURCES
from stratagem.memory.sources import FORMATS
from tests import forkserver
from tests.manifest import proves
from tests.surfaces.cli.console import Cli

Maker = Callable[[Path], Path]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    database = tmp_path / "memory.db"
    stratagem.open(database).close()
    return Cli(database)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def claude_memory(top: Path) -> Path:
    folder = top / "memory"
    write(folder / "MEMORY.md", "# Memory\n\n- [Testing](feedback_testing.md): real databases\n")
    write(
        folder / "feedback_testing.md",
        "---\nname: Testing\ndescription: No mocks of the database\ntype: feedback\n"
        "modified: 2026-08-01T10:00:00Z\n---\n\nTests use a real PostgreSQL, never a mock.\n",
    )
    return folder


def codex_memory(top: Path) -> Path:
    folder = top / "memories"
    write(folder / "memory_summary.md", "The user works on billing.\n")
    write(
        folder / "MEMORY.md",
        "# Task Group: billing\nscope: invoices\n\n## Task 1\nRun make seed first.\n\n"
        "# Task Group: deploys\nStaging on Mondays.\n",
    )
    write(folder / "raw_memories.md", "# raw\n")
    write(
        folder / "rollout_summaries" / "2026-08-01-abc.md",
        "---\nupdated_at: 2026-08-02T10:00:00Z\n---\nFixed the flaky invoice test.\n",
    )
    return folder


def gemini_memory(top: Path) -> Path:
    return write(
        top / "GEMINI.md",
        "# My rules\n\nBe brief.\n\n## Gemini Added Memories\n- I use pnpm, not npm\n"
        "- The staging host is vm-7\n\n## After\n- not a memory\n",
    )


def basic_memory(top: Path) -> Path:
    write(
        top / "notes" / "coffee.md",
        "---\ntitle: Coffee\ntype: note\npermalink: notes/coffee\ntags:\n- brewing\n"
        "created: 2026-01-02\n---\n\n- [method] Pour over is clearer #filter\n"
        "- relates_to [[Tea]]\n",
    )
    return top / "notes"


def mem0(top: Path) -> Path:
    memories = [
        {
            "id": "m-1",
            "memory": "Prefers morning meetings",
            "user_id": "arjun",
            "categories": ["preferences"],
            "metadata": {"type": "preference"},
            "created_at": "2026-05-01T09:00:00-07:00",
            "updated_at": None,
        },
        {"id": "m-2", "memory": "Leads the API redesign", "user_id": "arjun"},
    ]
    return write(top / "mem0.json", json.dumps({"count": 2, "results": memories}))


def memory_service(top: Path) -> Path:
    top.mkdir(exist_ok=True)
    path = top / "sqlite_vec.db"
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE memories (id INTEGER PRIMARY KEY, content_hash TEXT UNIQUE NOT NULL,"
        " content TEXT NOT NULL, tags TEXT, memory_type TEXT, metadata TEXT, created_at REAL,"
        " updated_at REAL, created_at_iso TEXT, updated_at_iso TEXT, deleted_at REAL)"
    )
    rows = [
        ("a" * 64, "Redis listens on 6380 here", "infra,redis", "note", '{"from": "chat"}', None),
        ("b" * 64, "Gone", "", None, None, 1.0),
    ]
    for digest, content, tags, kind, metadata, deleted in rows:
        connection.execute(
            "INSERT INTO memories (content_hash, content, tags, memory_type, metadata, created_at,"
            " updated_at, deleted_at) VALUES (?, ?, ?, ?, ?, 1700000000.5, NULL, ?)",
            (digest, content, tags, kind, metadata, deleted),
        )
    connection.commit()
    connection.close()
    return path


def node(name: str, parent: str | None, role: str, text: str, at: float | None) -> dict[str, Any]:
    message = {
        "id": name,
        "author": {"role": role},
        "create_time": at,
        "content": {"content_type": "text", "parts": [text, {"asset_pointer": "x"}]},
    }
    return {"id": name, "parent": parent, "children": [], "message": message}


def chatgpt(top: Path) -> Path:
    mapping = {
        "root": {"id": "root", "parent": None, "children": ["u"], "message": None},
        "s": node("s", "root", "system", "hidden", None),
        "u": node("u", "s", "user", "Where should I buy a tent?", 1_700_000_000.25),
        "old": node("old", "u", "assistant", "An answer that was regenerated", 1_700_000_001.0),
        "a": node("a", "u", "assistant", "In the shop by the harbour.", None),
        "t": node("t", "a", "tool", "output of a tool", 1_700_000_003.0),
    }
    conversation = {
        "title": "Camping",
        "create_time": 1_700_000_000.0,
        "mapping": mapping,
        "current_node": "t",
        "conversation_id": "c-1",
    }
    empty = {"title": "Empty", "mapping": {}, "conversation_id": "c-2"}
    top.mkdir(exist_ok=True)
    path = top / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps([conversation, empty]))
        archive.writestr("user.json", "{}")
    return path


def claude_export(top: Path) -> Path:
    messages = [
        {
            "uuid": "h",
            "sender": "human",
            "text": "What did we name the boat?",
            "content": [{"type": "text", "text": "What did we name the boat?"}],
            "created_at": "2026-02-03T04:05:06.789Z",
        },
        {
            "uuid": "i",
            "sender": "assistant",
            "text": "Thinking aloud. Sturmvogel.",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "Sturmvogel."},
            ],
            "created_at": "2026-02-03T04:05:09Z",
        },
    ]
    conversation = {
        "uuid": "cc-1",
        "name": "Boat",
        "created_at": "2026-02-03T04:05:06Z",
        "chat_messages": messages,
    }
    write(top / "claude" / "conversations.json", json.dumps([conversation]))
    memories = [{"conversations_memory": "Sails at weekends.", "project_memories": {"p": "Blue"}}]
    write(top / "claude" / "memories.json", json.dumps(memories))
    return top / "claude"


MAKERS: dict[str, Maker] = {
    "claude-memory": claude_memory,
    "codex-memory": codex_memory,
    "gemini-memory": gemini_memory,
    "basic-memory": basic_memory,
    "mem0": mem0,
    "mcp-memory-service": memory_service,
    "chatgpt": chatgpt,
    "claude-export": claude_export,
}


@proves("import:again")
@pytest.mark.parametrize("form", MAKERS)
def test_a_format_is_recognized_counted_and_known_again(
    cli: Cli, tmp_path: Path, form: str
) -> None:
    path = str(MAKERS[form](tmp_path / "given"))

    dry = cli.json("import", path, "--dry-run")
    empty = cli.json("status")["keys"]
    first = cli.json("import", path)
    named = cli.json("import", path, "--format", form)

    assert {**dry, "preview": False} == first
    assert empty == 0
    assert first["format"] == form
    assert first["created"] + first["logged"] > 0
    counts = (named["created"], named["updated"], named["logged"])
    assert counts == (0, 0, 0)
    assert named["unchanged"] == first["created"]
    assert named["known"] == first["logged"]


def test_every_format_has_a_reader() -> None:
    assert {*SOURCES, "stratagem"} == {*FORMATS}


def entry(cli: Cli, key: str) -> dict[str, Any]:
    return dict(cli.json("recall", key))


def test_a_note_of_claude_keeps_its_type_and_its_words(cli: Cli, tmp_path: Path) -> None:
    done = cli.json("import", str(claude_memory(tmp_path)))

    note = entry(cli, "claude/feedback_testing")
    assert note["value"].startswith("No mocks of the database\n\nTests use a real PostgreSQL")
    assert note["tags"] == ["claude-memory", "feedback"]
    assert note["source"] == "import"
    assert note["imported"] == {
        "format": "claude-memory",
        "id": "feedback_testing.md",
        "timestamp": "2026-08-01T10:00:00+00:00",
    }
    assert [each["reason"] for each in done["skipped"]] == ["it is an index of the other files"]


def test_notes_of_several_projects_of_claude_have_keys_of_their_own(
    cli: Cli, tmp_path: Path
) -> None:
    for name in ("-home-a", "-home-b"):
        claude_memory(tmp_path / "projects" / name)

    cli("import", str(tmp_path / "projects"), "--format", "claude-memory")

    keys = [each["key"] for each in cli.json("list", "--prefix", "claude/")["results"]]
    assert sorted(keys) == ["claude/-home-a/feedback_testing", "claude/-home-b/feedback_testing"]


def test_an_index_that_says_more_is_a_note(cli: Cli, tmp_path: Path) -> None:
    folder = claude_memory(tmp_path)
    write(folder / "MEMORY.md", "# Memory\n\n- Deploys are on Mondays\n")

    cli("import", str(folder))

    assert "Mondays" in entry(cli, "claude/MEMORY")["value"]


def test_the_handbook_of_codex_is_read_by_its_chapters(cli: Cli, tmp_path: Path) -> None:
    done = cli.json("import", str(codex_memory(tmp_path)))

    assert "make seed" in entry(cli, "codex/task-group-billing")["value"]
    assert entry(cli, "codex/task-group-deploys")["value"].endswith("Staging on Mondays.")
    assert "flaky" in entry(cli, "codex/rollout_summaries/2026-08-01-abc")["value"]
    assert done["created"] == 4
    assert [each["reason"] for each in done["skipped"]] == ["it is a source of the handbook"]


def test_each_memory_of_gemini_is_an_entry_and_the_rules_are_none(cli: Cli, tmp_path: Path) -> None:
    cli("import", str(gemini_memory(tmp_path)))

    listed = cli.json("list", "--prefix", "gemini/")["results"]
    assert {each["value"] for each in listed} == {
        "I use pnpm, not npm",
        "The staging host is vm-7",
    }


def test_a_note_of_basic_memory_has_its_permalink_title_and_tags(cli: Cli, tmp_path: Path) -> None:
    cli("import", str(basic_memory(tmp_path)))

    note = entry(cli, "notes/coffee")
    assert note["value"].startswith("# Coffee\n\n- [method] Pour over")
    assert note["tags"] == ["basic-memory", "brewing", "note"]


def test_memories_of_mem0_and_of_the_memory_service_have_their_tags(
    cli: Cli, tmp_path: Path
) -> None:
    cli("import", str(mem0(tmp_path)))
    cli("import", str(memory_service(tmp_path)))

    assert entry(cli, "mem0/m-1")["tags"] == ["mem0", "preferences"]
    service = entry(cli, f"mcp-memory-service/{'a' * 16}")
    assert service["value"] == "Redis listens on 6380 here"
    assert service["tags"] == ["infra", "mcp-memory-service", "note", "redis"]
    assert cli.json("status")["keys"] == 3


def test_a_conversation_of_chatgpt_is_the_branch_that_is_shown(cli: Cli, tmp_path: Path) -> None:
    done = cli.json("import", str(chatgpt(tmp_path)))

    events = cli.json("events", "--session", "c-1")["results"]
    assert [each["data"] for each in events] == [
        {"role": "user", "content": "Where should I buy a tent?"},
        {"role": "assistant", "content": "In the shop by the harbour."},
    ]
    assert entry(cli, "conversations/c-1")["value"]["title"] == "Camping"
    assert [each["file"] for each in done["skipped"]] == ["Empty"]


def test_an_imported_message_says_when_it_was_said(cli: Cli, tmp_path: Path) -> None:
    cli("import", str(chatgpt(tmp_path)))
    said = "2023-11-14T22:13:20.250000Z"

    events = cli.json("events", "--session", "c-1")["results"]
    hits = cli.json("search", "where to buy a tent", "-k", "1")["results"]
    recalled = cli.json("recall", f"@{events[0]['sequence']}")

    assert [each["occurred"] for each in (events[0], hits[0], recalled)] == [said] * 3
    assert all(each["timestamp"] > said for each in (events[0], hits[0], recalled))
    local = datetime.fromisoformat(said).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    assert f"occurred {local}" in cli("search", "where to buy a tent")
    assert f"occurred {local}" in cli("recall", f"@{events[0]['sequence']}")
    table = cli("events", "--session", "c-1")
    assert "OCCURRED" in table
    assert local in table


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_at_the_end_of_the_calendar_is_not_known(
    cli: Cli, tmp_path: Path, time: str
) -> None:
    path = tmp_path / "mem.json"
    memory = {"id": "m-1", "memory": "Arjun likes green tea", "created_at": time}
    path.write_text(json.dumps([memory]))

    cli("import", str(path))

    (hit,) = cli.json("search", "green tea")["results"]
    assert "occurred" not in hit
    assert "green tea" in cli("list")
    assert "green tea" in cli("recall", "mem0/m-1")


def test_of_equal_preferences_the_one_that_was_said_later_comes_first(
    cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "conversations.json"
    asked = "I prefer tabs for indentation."
    mapping = {"u": node("u", "", "user", asked, 1_700_000_000.0)}
    path.write_text(json.dumps([{"title": "Style", "mapping": mapping, "conversation_id": "c-1"}]))
    cli("log", "message", '{"role": "user", "content": "I prefer spaces for indentation."}')

    cli("import", str(path))
    hits = cli.json("search", "indentation")["results"]

    assert [hit["value"]["content"].split()[2] for hit in hits] == ["spaces", "tabs"]


def test_a_message_whose_time_the_tool_did_not_know_has_none(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    mapping = {"u": node("u", "", "user", "Where should I buy a tent?", None)}
    path.write_text(json.dumps([{"title": "Tents", "mapping": mapping, "conversation_id": "c-1"}]))

    cli("import", str(path))

    (event,) = cli.json("events", "--session", "c-1")["results"]
    assert "occurred" not in event


def test_a_conversation_without_an_id_is_known_by_its_first_message(
    cli: Cli, tmp_path: Path
) -> None:
    with zipfile.ZipFile(chatgpt(tmp_path)) as archive:
        conversations = json.loads(archive.read("conversations.json"))
    file = tmp_path / "conversations.json"
    nameless = [{**each, "conversation_id": None} for each in conversations]
    file.write_text(json.dumps(nameless))

    first = cli.json("import", str(file))
    again = cli.json("import", str(file))

    assert [each["file"] for each in first["skipped"]] == ["Empty"]
    assert "In the shop by the harbour." in cli("search", "where to buy a tent")
    assert (first["created"], again["created"]) == (1, 0)


def test_a_conversation_of_claude_is_found_by_what_was_said(cli: Cli, tmp_path: Path) -> None:
    cli("import", str(claude_export(tmp_path)))

    said = [each["data"]["content"] for each in cli.json("events", "--session", "cc-1")["results"]]
    assert said == ["What did we name the boat?", "Sturmvogel."]
    assert entry(cli, "claude/memory")["value"] == "Sails at weekends."
    assert entry(cli, "claude/projects/p")["value"] == "Blue"
    assert "Sturmvogel" in cli("search", "name of the boat")


def test_a_changed_note_is_updated_and_keeps_its_pin(cli: Cli, tmp_path: Path) -> None:
    folder = claude_memory(tmp_path)
    cli("import", str(folder))
    note = entry(cli, "claude/feedback_testing")
    cli("store", note["key"], note["value"], *(f"--tag={tag}" for tag in [*note["tags"], "pinned"]))
    file = folder / "feedback_testing.md"
    file.write_text(file.read_text().replace("real PostgreSQL", "PostgreSQL in a container"))

    done = cli.json("import", str(folder))

    changed = entry(cli, "claude/feedback_testing")
    assert (done["updated"], done["created"]) == (1, 0)
    assert "in a container" in changed["value"]
    assert "pinned" in changed["tags"]


@proves("import:origin")
def test_what_a_record_was_elsewhere_goes_out_and_comes_in_again(cli: Cli, tmp_path: Path) -> None:
    cli("import", str(mem0(tmp_path)))
    other = Cli(tmp_path / "other.db")

    cli("export", str(tmp_path / "out.jsonl"))
    other("import", str(tmp_path / "out.jsonl"))

    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    origin = next(line["imported"] for line in lines if line.get("key") == "mem0/m-1")
    assert origin == {
        "format": "mem0",
        "id": "m-1",
        "timestamp": "2026-05-01T09:00:00-07:00",
        "user_id": "arjun",
        "metadata": {"type": "preference"},
    }
    assert other.json("import", str(mem0(tmp_path)))["unchanged"] == 2


def test_what_chroma_has_not_sorted_in_yet_is_read_too(cli: Cli, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "chroma.sqlite3")
    connection.executescript(
        """
        CREATE TABLE collections (id TEXT, name TEXT);
        CREATE TABLE segments (id TEXT, scope TEXT, collection TEXT);
        CREATE TABLE embeddings (id INTEGER, segment_id TEXT, embedding_id TEXT);
        CREATE TABLE embedding_metadata (id INTEGER, key TEXT, string_value TEXT, int_value INTEGER,
            float_value REAL, bool_value INTEGER);
        CREATE TABLE embeddings_queue (seq_id INTEGER, operation INTEGER, topic TEXT, id TEXT,
            metadata TEXT);
        CREATE TABLE max_seq_id (segment_id TEXT, seq_id INTEGER);
        INSERT INTO collections VALUES ('c', 'notes');
        INSERT INTO segments VALUES ('m', 'METADATA', 'c'), ('v', 'VECTOR', 'c');
        INSERT INTO embeddings VALUES (1, 'm', 'one'), (2, 'm', 'two');
        INSERT INTO embedding_metadata VALUES (1, 'chroma:document', 'First', NULL, NULL, NULL),
            (1, 'page', NULL, 3, NULL, NULL), (2, 'chroma:document', 'Second', NULL, NULL, NULL);
        INSERT INTO max_seq_id VALUES ('m', 2);
        INSERT INTO embeddings_queue VALUES (2, 0, 'persistent://default/default/c', 'two', '{}'),
            (3, 3, 'persistent://default/default/c', 'two', NULL),
            (4, 2, 'persistent://default/default/c', 'new', '{"chroma:document": "Third"}');
        """
    )
    connection.close()

    done = cli.json("import", str(tmp_path / "chroma.sqlite3"))

    assert (done["format"], done["created"]) == ("chroma", 2)
    assert entry(cli, "notes/one")["value"] == "First"
    assert entry(cli, "notes/new")["value"] == "Third"


@pytest.mark.slow
def test_the_documents_of_chroma_are_read_without_chroma(cli: Cli, tmp_path: Path) -> None:
    chromadb = pytest.importorskip("chromadb")
    client = chromadb.PersistentClient(
        path=str(tmp_path / "db"), settings=chromadb.Settings(anonymized_telemetry=False)
    )
    notes = client.create_collection("notes", embedding_function=None)
    ids, vectors = ["one", "two", "gone"], [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
    texts = ["The first note", "The second note", "Deleted"]
    metadatas = [{"author": "ada", "page": 3}, {"author": "bo"}, {"author": "x"}]
    notes.add(ids=ids, embeddings=vectors, documents=texts, metadatas=metadatas)
    notes.get()
    notes.delete(ids=["gone"])
    notes.upsert(ids=["three"], embeddings=[[0.7, 0.8]], documents=["The third, just now"])

    done = cli.json("import", str(tmp_path / "db"))

    assert done["format"] == "chroma"
    assert done["created"] == 3
    assert entry(cli, "notes/one")["value"] == "The first note"
    assert entry(cli, "notes/three")["tags"] == ["chroma", "notes"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", '{"results": [{"memory": "x"}]}', "does not show"),
        ("a.json", "[1, 2]", "not a JSON object"),
        ("a.json", '[{"mapping": 3}]', "has no"),
        (
            "a.json",
            '[{"id": "a", "memory": "x", "metadata": {"n": 18446744073709551616}}]',
            "`imported` cannot be stored: $.metadata.n is an integer beyond 64 bits",
        ),
        ("conversations.json", "[]", "not a JSON object"),
        ("a.zip", "PK no archive", "not complete JSON"),
        ("a.db", "SQLite format 3\0 damaged", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_is_written(
    cli: Cli, tmp_path: Path, name: str, text: str, words: str
) -> None:
    result = cli.run("import", str(write(tmp_path / "given" / name, text)))

    if result.exit_code:
        assert words in result.stderr.replace("\n", " ")
    else:
        assert "nothing" in result.stdout
    assert cli.json("status")["keys"] == 0


def test_another_database_is_not_taken_for_a_memory(cli: Cli, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.execute("CREATE TABLE memories (id INTEGER, fact TEXT)")
    connection.close()

    assert "not a database of" in cli.refused("import", str(tmp_path / "x.db"), code=2)


def test_a_folder_that_is_watched_is_imported_as_it_changes(tmp_path: Path) -> None:
    folder = claude_memory(tmp_path / "given")
    database = tmp_path / "memory.db"
    options = ("--db", str(database), "--embedder", "none", "--watch", "--every", "0.1", "--json")
    with forkserver.Process(
        [sys.executable, "-m", "stratagem", "import", str(folder), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watching:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        write(folder / "project_plan.md", "---\ntype: project\n---\nLaunch in May\n")
        second = json.loads(watching.stdout.readline())
        watching.send_signal(signal.SIGINT)
        _, said = watching.communicate(timeout=60)

    assert (first["created"], second["created"], second["unchanged"]) == (1, 1, 1)
    assert "Stopped watching" in said
    assert watching.returncode == 0
