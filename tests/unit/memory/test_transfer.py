"""A branch out into a file, and files of several forms in."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stratagem
from stratagem import Stratagem, limits
from stratagem.bootstrap import Settings, start
from stratagem.errors import (
    BranchNotFound,
    ImportRefused,
    ReadOnly,
    StorageUnavailable,
    ValidationFailed,
)
from stratagem.memory.markdown import read_note
from stratagem.memory.transfer import BranchExport, BranchImport, export_branch, import_from
from stratagem.operation import Caller
from stratagem.storage.relational.store import Adapters

Opener = Callable[..., Stratagem]


def silent(_done: int, _total: int, _what: str) -> None:
    pass


def export(db: Stratagem, path: Path, branch: str = "default", **options: Any) -> BranchExport:
    return export_branch(db.runtime.foundation, path, branch=branch, progress=silent, **options)


def load(db: Stratagem, path: Path, branch: str = "default", **options: Any) -> BranchImport:
    caller = Caller("tests", branch=branch)
    return import_from(db.runtime.foundation, caller, path, progress=silent, **options)


def counts(done: BranchImport) -> dict[str, int]:
    """Return what an import did, without what it did not do."""
    names = ("created", "updated", "unchanged", "logged", "known")
    return {name: getattr(done, name) for name in names if getattr(done, name)}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def sealed(path: Path, records: list[dict[str, Any]]) -> Path:
    """Write records as an export would, with an end that fits them."""
    body = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    digest = hashlib.sha256(body).hexdigest()
    end = {"type": "end", "lines": len(records), "sha256": digest}
    path.write_bytes(body + json.dumps(end).encode())
    return path


def header(**options: Any) -> dict[str, Any]:
    return {"format": "stratagem-branch", "version": 1, "entries": 0, "events": 0, **options}


@pytest.fixture
def opened() -> Iterator[Opener]:
    databases: list[Stratagem] = []

    def open_one(path: str = ":memory:", **options: Any) -> Stratagem:
        databases.append(stratagem.open(path, **{"embedder": "none", **options}))
        return databases[-1]

    yield open_one
    for database in databases:
        database.close()


@pytest.fixture
def db(opened: Opener) -> Stratagem:
    return opened()


@pytest.fixture
def filled(db: Stratagem) -> Stratagem:
    db.memory.store("city", "Oslo", tags=["north", "capital"])
    db.memory.store("count", 3, index=False, namespace="work")
    db.memory.store("note", {"deep": [1, None]}, ttl="7d", session="s1")
    db.memory.log("message", {"text": "hello"}, session="s1", tags=["chat"])
    db.memory.log("message", "again", namespace="work")
    return db


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "branch.jsonl"


# --- out and in again


def test_what_goes_out_comes_in(filled: Stratagem, opened: Opener, file: Path) -> None:
    other = opened()

    written = export(filled, file)
    done = load(other, file)

    assert (written.entries, written.events) == (3, 2)
    assert written.bytes == file.stat().st_size
    assert counts(done) == {"created": 3, "logged": 2}
    assert (done.format, done.branch, done.preview) == ("stratagem", "default", False)
    for key, namespace in (("city", None), ("count", "work"), ("note", None)):
        ours = filled.memory.recall(key, namespace=namespace)
        theirs = other.memory.recall(key, namespace=namespace)
        assert ours is not None
        assert theirs is not None
        assert (theirs.value, theirs.tags, theirs.expires) == (ours.value, ours.tags, ours.expires)
    assert [hit.key for hit in other.memory.search("count")] == []
    assert other.memory.search("hello")[0].session == "s1"


def test_an_export_of_an_import_is_the_same_but_for_versions(
    filled: Stratagem, opened: Opener, tmp_path: Path
) -> None:
    other = opened()
    export(filled, tmp_path / "one.jsonl")
    load(other, tmp_path / "one.jsonl")

    export(other, tmp_path / "two.jsonl")

    one, two = lines(tmp_path / "one.jsonl")[1:-1], lines(tmp_path / "two.jsonl")[1:-1]
    for record in (*one, *two):
        if record["type"] == "entry":
            del record["version"], record["timestamp"]
    assert one == two


def test_the_file_says_what_it_holds(filled: Stratagem, file: Path) -> None:
    done = export(filled, file)

    first, *records, last = lines(file)
    assert first == {
        "format": "stratagem-branch",
        "version": 1,
        "branch": "default",
        "as_of": None,
        "sequence": 6,
        "entries": 3,
        "events": 2,
        "records": 0,
    }
    assert last == {"type": "end", "lines": 6, "sha256": done.sha256}
    assert [record["type"] for record in records] == ["entry"] * 3 + ["event"] * 2
    assert file.stat().st_mode & 0o077 == 0


def test_importing_again_changes_nothing(filled: Stratagem, opened: Opener, file: Path) -> None:
    other = opened()
    export(filled, file)
    load(other, file)
    head = other.memory.status().head

    again = load(other, file)

    assert counts(again) == {"unchanged": 3, "known": 2}
    assert other.memory.status().head == head


def test_importing_what_was_exported_here_changes_nothing(filled: Stratagem, file: Path) -> None:
    export(filled, file)

    assert counts(load(filled, file)) == {"unchanged": 3, "known": 2}


def test_a_later_export_adds_only_what_is_new(
    filled: Stratagem, opened: Opener, file: Path
) -> None:
    other = opened()
    export(filled, file)
    load(other, file)
    filled.memory.store("city", "Bergen")
    filled.memory.log("message", "third")
    export(filled, file, overwrite=True)

    done = load(other, file)

    assert counts(done) == {"updated": 1, "unchanged": 2, "logged": 1, "known": 2}


def test_an_entry_that_was_changed_since_is_restored(filled: Stratagem, file: Path) -> None:
    export(filled, file)
    filled.memory.store("city", "Rome")
    filled.memory.forget("note")

    done = load(filled, file)

    assert counts(done) == {"updated": 1, "created": 1, "unchanged": 1, "known": 2}
    entry = filled.memory.recall("city")
    assert entry is not None
    assert entry.value == "Oslo"


def test_a_preview_says_what_would_be_done_and_writes_nothing(
    filled: Stratagem, opened: Opener, file: Path
) -> None:
    other = opened()
    export(filled, file)

    done = load(other, file, preview=True)

    assert done.preview
    assert counts(done) == {"created": 3, "logged": 2}
    assert other.memory.status().keys == 0


def test_only_what_the_view_shows_is_exported(filled: Stratagem, file: Path) -> None:
    filled.memory.fork("trial")
    filled.memory.store("city", "Bergen", branch="trial")
    filled.memory.forget("note", branch="trial")

    export(filled, file, branch="trial")
    trial = {record["key"]: record["value"] for record in lines(file) if "key" in record}
    export(filled, file, branch="trial", as_of="@3", overwrite=True)
    past = {record["key"]: record["value"] for record in lines(file) if "key" in record}

    assert trial == {"city": "Bergen", "count": 3}
    assert past == {"city": "Oslo", "count": 3}


def test_what_has_expired_is_not_exported(file: Path) -> None:
    now = [1_000_000_000_000_000]
    adapters = Adapters(lambda: now[0], os.urandom)
    runtime = start(Settings(":memory:", embedder="none", adapters=adapters))
    with Stratagem(runtime, Caller()) as db:
        db.memory.store("gone", 1, ttl="1s")
        db.memory.store("there", 1)

        now[0] += 2_000_000

        assert export(db, file).entries == 1


def test_it_goes_into_the_branch_and_namespace_that_are_named(
    filled: Stratagem, file: Path
) -> None:
    export(filled, file)
    filled.memory.create("copy")

    done = load(filled, file, branch="copy", namespace="all")

    assert counts(done) == {"created": 3, "logged": 2}
    assert filled.memory.recall("count", namespace="all", branch="copy") is not None
    assert filled.memory.recall("count", namespace="all") is None


def test_a_branch_that_is_not_there_is_refused_before_anything_is_read(
    filled: Stratagem, file: Path
) -> None:
    export(filled, file)

    with pytest.raises(BranchNotFound):
        load(filled, file, branch="nope")
    with pytest.raises(BranchNotFound):
        export(filled, file.with_name("other"), branch="nope")


def test_many_records_go_in_several_transactions_and_an_interrupted_import_goes_on(
    db: Stratagem, opened: Opener, file: Path
) -> None:
    total = 2 * limits.ITEMS_MAX + 10
    for begin in range(0, total, limits.ITEMS_MAX):
        numbers = range(begin, min(begin + limits.ITEMS_MAX, total))
        db.memory.store(items=[{"key": f"{number:05}", "value": number} for number in numbers])
    db.memory.log("last", "event")
    export(db, file)
    other = opened()

    def interrupting(done: int, _total: int, what: str) -> None:
        if what == "importing" and done >= limits.ITEMS_MAX:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_from(other.runtime.foundation, Caller(), file, progress=interrupting)
    done = load(other, file)

    assert counts(done) == {
        "created": limits.ITEMS_MAX + 10,
        "unchanged": limits.ITEMS_MAX,
        "logged": 1,
    }
    assert other.memory.status().keys == total


def test_progress_is_reported(filled: Stratagem, opened: Opener, file: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    foundation = filled.runtime.foundation

    export_branch(foundation, file, branch="default", progress=lambda *report: seen.append(report))
    import_from(
        opened().runtime.foundation, Caller(), file, progress=lambda *report: seen.append(report)
    )

    assert (5, 5, "exporting") in seen
    assert (5, 5, "importing") in seen


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(contents=st.lists(values, min_size=1, max_size=5))
def test_any_value_survives_the_way(tmp_path: Path, contents: list[Any]) -> None:
    file = tmp_path / "any.jsonl"
    with (
        stratagem.open(":memory:", embedder="none") as one,
        stratagem.open(":memory:", embedder="none") as two,
    ):
        for number, value in enumerate(contents):
            one.memory.store(f"key-{number}", value)
            one.memory.log("event", value)

        export(one, file, overwrite=True)
        load(two, file)

        for number in range(len(contents)):
            assert two.memory.recall(f"key-{number}") is not None
        assert counts(load(two, file)) == {"unchanged": len(contents), "known": len(contents)}


# --- what is refused


def test_a_file_that_was_cut_anywhere_is_refused(
    filled: Stratagem, opened: Opener, file: Path
) -> None:
    other = opened()
    export(filled, file)
    whole = file.read_bytes()
    head = other.memory.status().head

    for length in range(0, len(whole) - 1, 7):
        file.write_bytes(whole[:length])
        with pytest.raises(ImportRefused):
            load(other, file)

    assert other.memory.status().head == head


def test_a_file_that_was_altered_anywhere_is_refused(
    filled: Stratagem, opened: Opener, file: Path
) -> None:
    other = opened()
    export(filled, file)
    whole = file.read_bytes()
    head = other.memory.status().head

    # Changing the case of a letter keeps most lines valid JSON.
    letters = [at for at in range(0, len(whole) - 90, 3) if chr(whole[at]).isalpha()]
    for at in letters:
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x20]) + whole[at + 1 :])
        with pytest.raises(ImportRefused):
            load(other, file)

    assert other.memory.status().head == head


def test_lines_that_were_swapped_doubled_or_removed_are_refused(
    filled: Stratagem, opened: Opener, file: Path
) -> None:
    other = opened()
    export(filled, file)
    first, second, *rest = file.read_bytes().splitlines(keepends=True)

    for wrong in (
        [second, first, *rest],
        [first, second, second, *rest],
        [first, *rest],
        [first, second, *rest, second],
        [first, b"\n", second, *rest],
    ):
        file.write_bytes(b"".join(wrong))
        with pytest.raises(ImportRefused):
            load(other, file, form="stratagem")


GOOD = {"type": "entry", "key": "a", "namespace": "default", "value": 1}
EVENT = {
    "type": "event",
    "event": "e",
    "data": 1,
    "namespace": "default",
    "timestamp": "2026-01-01T00:00:00Z",
    "sequence": 2,
}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({**GOOD, "key": ""}, "empty"),
        ({**GOOD, "key": "k" * 513}, "512"),
        ({**GOOD, "key": 1}, "key"),
        ({**GOOD, "namespace": None}, "namespace"),
        ({**GOOD, "tags": "north"}, "not a list"),
        ({**GOOD, "tags": [1]}, "tags"),
        ({**GOOD, "session": ""}, "session"),
        ({**GOOD, "expires": "soon"}, "not a time"),
        ({**GOOD, "expires": "2026-01-01T00:00:00"}, "offset"),
        ({**GOOD, "value": "x" * (limits.VALUE_BYTES_MAX + 1)}, "bytes"),
        ({"type": "entry", "key": "a", "namespace": "default"}, "no value"),
        ({**GOOD, "value": {"ids": [1, 2**64]}}, "$.ids[1] is an integer beyond 64 bits"),
        ({**GOOD, "imported": {"id": -(2**63) - 1}}, "`imported` cannot be stored: $.id"),
        ({**EVENT, "data": 10**30}, "`data` cannot be stored: $ is an integer"),
        ({**EVENT, "sequence": 2**70}, "`sequence` cannot be stored"),
        ({**EVENT, "event": None}, "event"),
        ({**EVENT, "timestamp": None}, "not a time"),
        ({**EVENT, "sequence": 0}, "sequence"),
        ({**EVENT, "sequence": True}, "sequence"),
        ({"type": "thing"}, "'thing'"),
    ],
)
def test_a_record_that_no_write_would_take_is_refused_with_its_line(
    db: Stratagem, file: Path, record: dict[str, Any], reason: str
) -> None:
    good = {**GOOD, "key": "before"}
    kinds = [good["type"], record["type"]]
    top = header(entries=kinds.count("entry"), events=kinds.count("event"))
    sealed(file, [top, good, record])

    with pytest.raises(ImportRefused) as refusal:
        load(db, file)

    assert refusal.value.details["line"] == 3
    assert refusal.value.details["file"] == str(file)
    assert reason in refusal.value.message
    assert db.memory.status().keys == 0


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([header(version=2)], "version 2"),
        ([header(entries=2), GOOD], "as many"),
        ([header(), {"type": "end", "lines": 1, "sha256": "0"}], "were altered"),
        ([header(), {"type": "end", "lines": 9, "sha256": "0"}], "9 lines were exported"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(
    db: Stratagem, file: Path, records: list[dict[str, Any]], reason: str
) -> None:
    sealed(file, records)

    with pytest.raises(ImportRefused, match=reason):
        load(db, file)


def test_an_integer_beyond_64_bits_is_refused_with_its_field_and_what_to_do(
    db: Stratagem, file: Path
) -> None:
    sealed(file, [header(entries=1), {**GOOD, "value": {"id": 2**64}}])

    with pytest.raises(ImportRefused) as refusal:
        load(db, file)

    found = {name: refusal.value.details[name] for name in ("line", "field", "place")}
    assert found == {"line": 2, "field": "value", "place": "$.id"}
    assert str(limits.INTEGER_MAX) in refusal.value.message
    assert refusal.value.hint == "Nothing was imported. Send it as text."


@pytest.mark.parametrize("text", ["", "\n\n", "hello", "[1]", '{"some": "json"}'])
def test_a_file_of_no_known_form_is_refused(db: Stratagem, file: Path, text: str) -> None:
    file.write_text(text)

    with pytest.raises(ImportRefused):
        load(db, file)


def test_a_file_that_is_not_there_is_refused(db: Stratagem, tmp_path: Path) -> None:
    for form in (None, "stratagem", "mcp-memory", "markdown"):
        with pytest.raises(ImportRefused):
            load(db, tmp_path / "nothing", form=form)


def test_an_unknown_form_is_refused(db: Stratagem, file: Path) -> None:
    file.write_text("{}")

    with pytest.raises(ValidationFailed):
        load(db, file, form="word")


def test_an_export_does_not_replace_a_file_unasked(filled: Stratagem, file: Path) -> None:
    file.write_text("mine")

    with pytest.raises(ValidationFailed):
        export(filled, file)

    assert file.read_text() == "mine"
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_an_export_that_fails_leaves_nothing_behind(filled: Stratagem, file: Path) -> None:
    def failing(_done: int, _total: int, _what: str) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        export_branch(filled.runtime.foundation, file, branch="default", progress=failing)
    with pytest.raises(StorageUnavailable):
        export(filled, file.parent / "no" / "folder")

    assert list(file.parent.iterdir()) == []


def test_a_database_for_reading_only_is_exported_and_not_imported_into(
    opened: Opener, tmp_path: Path, file: Path
) -> None:
    path = str(tmp_path / "memory.db")
    opened(path).memory.store("city", "Oslo")
    reading = opened(path, read_only=True)

    assert export(reading, file).entries == 1
    assert counts(load(reading, file, preview=True)) == {"unchanged": 1}
    with pytest.raises(ReadOnly):
        load(reading, file)


# --- the file of the MCP memory server


def graph(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("\n".join(json.dumps(record) for record in records))
    return path


ADA = {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes tea"]}
KNOWS = {"type": "relation", "from": "Ada", "to": "Charles", "relationType": "knows"}


def test_entities_become_entries_with_their_relations(db: Stratagem, file: Path) -> None:
    graph(file, ADA, KNOWS, KNOWS)

    done = load(db, file)

    entry = db.memory.recall("Ada")
    assert (done.format, counts(done)) == ("mcp-memory", {"created": 1})
    assert entry is not None
    assert entry.tags == ["person"]
    assert entry.value == {
        "type": "person",
        "observations": ["likes tea"],
        "relations": [{"to": "Charles", "type": "knows"}],
    }
    assert [hit.key for hit in db.memory.search("tea", tags=["person"])] == ["Ada"]
    assert counts(load(db, file)) == {"unchanged": 1}


def test_a_relation_from_nowhere_is_kept(db: Stratagem, file: Path) -> None:
    graph(file, KNOWS)

    load(db, file, namespace="graph")

    entry = db.memory.recall("Ada", namespace="graph")
    assert entry is not None
    assert entry.value["relations"] == [{"to": "Charles", "type": "knows"}]


def test_an_entity_that_occurs_twice_keeps_all_observations(db: Stratagem, file: Path) -> None:
    graph(file, ADA, {**ADA, "observations": ["likes tea", "writes"]})

    load(db, file)

    entry = db.memory.recall("Ada")
    assert entry is not None
    assert entry.value["observations"] == ["likes tea", "writes"]


@pytest.mark.parametrize(
    "record",
    [
        {"type": "entity", "name": 1},
        {**ADA, "entityType": None},
        {**ADA, "observations": "tea"},
        {**ADA, "name": ""},
        {**ADA, "name": "n" * 513},
        {"type": "relation", "from": "Ada"},
        {"type": "other"},
    ],
)
def test_a_record_of_another_form_is_refused_with_its_line(
    db: Stratagem, file: Path, record: dict[str, Any]
) -> None:
    graph(file, ADA, record)

    with pytest.raises(ImportRefused, match="line 2"):
        load(db, file)

    assert db.memory.status().keys == 0


# --- Markdown


def test_a_folder_of_markdown_becomes_entries(db: Stratagem, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    for name, text in {
        "top.md": "# Top\n\nWords.",
        "deep/er/note.MD": "---\ntags: [a, b]\n---\nText",
        "read.txt": "not this",
        ".obsidian/hidden.md": "not this either",
    }.items():
        (notes / name).parent.mkdir(parents=True, exist_ok=True)
        (notes / name).write_text(text)

    done = load(db, notes)

    note = db.memory.recall("deep/er/note")
    assert (done.format, counts(done)) == ("markdown", {"created": 2})
    assert note is not None
    assert (note.value, note.tags) == ("Text", ["a", "b"])


def test_a_single_markdown_file_is_an_entry(db: Stratagem, tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text("Do it.")

    load(db, tmp_path / "plan.md", namespace="plans")

    entry = db.memory.recall("plan", namespace="plans")
    assert entry is not None
    assert entry.value == "Do it."


@pytest.mark.parametrize(
    ("text", "expected", "tags"),
    [
        ("plain", "plain", []),
        ("---\nno end", "---\nno end", []),
        ("---\ntags: a\n---\nbody", "body", ["a"]),
        ("---\ntags: a, 'b c'\n---\n\nbody", "body", ["a", "b c"]),
        ("---\ntags: ['x', \"y\"]\n---\nbody", "body", ["x", "y"]),
        ("---\ntags:\n  - '#one'\n- two\n---\nbody", "body", ["one", "two"]),
        ("---\r\ntags: a\r\n---\r\nbody", "body", ["a"]),
        ("---\ntitle: Hi: there\n---\nbody", "# Hi: there\n\nbody", []),
        ("---\ntitle: Hi\n---\n# Hi\n\nbody", "# Hi\n\nbody", []),
        ("---\n# comment\ntag: a\n...\nbody", "body", ["a"]),
        ("---\ntags: a\ndate: 2026\n---\nbody", "---\ntags: a\ndate: 2026\n---\nbody", ["a"]),
        ("---\nnested:\n  deep: 1\n---\nb", "---\nnested:\n  deep: 1\n---\nb", []),
        ("---\ntags:\n---\nbody", "body", []),
    ],
)
def test_front_matter_gives_tags_and_title(text: str, expected: str, tags: list[str]) -> None:
    note = read_note(text)

    assert (note.text, note.tags) == (expected, tags)


def test_markdown_that_cannot_be_taken_is_refused(db: Stratagem, tmp_path: Path) -> None:
    (tmp_path / "ok.md").write_text("fine")
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\xfa")
    (tmp_path / "empty").mkdir()

    with pytest.raises(ImportRefused, match=r"bad\.md"):
        load(db, tmp_path)
    with pytest.raises(ImportRefused, match="no Markdown"):
        load(db, tmp_path / "empty")
    assert db.memory.status().keys == 0


def test_two_files_of_one_name_are_refused(db: Stratagem, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one")
    (tmp_path / "a.MD").write_text("two")

    with pytest.raises(ImportRefused, match="same entry"):
        load(db, tmp_path)
