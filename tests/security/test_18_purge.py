"""18. What was purged stands nowhere any more: the bytes of the files are looked through."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem.bootstrap import Settings, start
from stratagem.engine.copies import PIECE_CHARS, Copies
from stratagem.errors import RequestReused, ValidationFailed
from stratagem.operation import Caller

MARKER = "zyxwvu-7719-marker"
TEXT = f"On Sunday {MARKER} leaves the house, and nobody is to know where it goes afterwards."
KEY = "plan-of-qqjj"
OPERATOR = Caller("cli", authority="operator")


def held(path: Path) -> dict[str, int]:
    """Return how often the marker and the key stand in each file of a database."""
    found = {}
    for file in sorted(path.parent.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            found[file.name] = sum(data.count(word.encode()) for word in (MARKER, KEY))
    return {name: count for name, count in found.items() if count}


def use_everywhere(db: stratagem.Stratagem) -> None:
    """Put a secret through whatever keeps something of what it is given."""
    gateway = db.gateway
    db.memory.store(KEY, TEXT, request_id="stored")
    db.memory.store(KEY, {"text": TEXT, "more": [MARKER]})
    db.memory.fork("trial")
    db.memory.switch("trial")
    db.memory.store(KEY, f"{TEXT} On a branch.")
    db.memory.switch("default")
    db.memory.search(MARKER)
    call(db, "tool_execute", toolName="strata_recall", arguments={"key": KEY}, requestId="r1")
    call(db, "tool_execute", toolName="strata_search", arguments={"query": MARKER})
    call(db, "tool_execute", toolName="strata_history", arguments={"key": KEY})
    call(db, "tools_batch", executions=[{"toolName": "strata_recall", "arguments": {"key": KEY}}])
    steps = [
        {"id": "a", "tool": "strata_recall", "arguments": {"key": KEY}},
        {
            "id": "b",
            "tool": "file_converter",
            "arguments": {"content": "${{ steps.a.result.value }}", "from": "json", "to": "yaml"},
        },
    ]
    call(db, "tools_pipeline", steps=steps)
    saved = {"name": "peek", "steps": steps[:1]}
    gateway.register(
        name="peek",
        description="Recalls.",
        input_schema={"type": "object"},
        handler={
            "type": "pipeline",
            "definition": {
                **saved,
                "steps": [
                    {"id": "a", "tool": "strata_recall", "arguments": {"key": "${{ input.key }}"}}
                ],
            },
        },
        configuration={"cache": True, "cacheTtl": 600},
    )
    call(db, "tool_execute", toolName="peek", arguments={"key": KEY})
    # A result that is kept apart because it is long.
    gateway.add(repeated)
    call(db, "tool_execute", toolName="repeated", arguments={"text": TEXT})
    with pytest.raises(stratagem.StratagemError):
        call(db, "tool_execute", toolName="calculator", arguments={"expression": f"{MARKER}("})
    call(db, "ranked_solutions", query_text=f"Error: {TEXT}", env={})
    call(db, "tools_recommend", intent=f"evaluate the arithmetic expression for {MARKER}")
    db.memory.forget(KEY)
    db.memory.store(KEY, f"{TEXT} Once more.")


def repeated(text: str) -> str:
    """Say something over and over."""
    return text * 2_000


def call(db: stratagem.Stratagem, name: str, **arguments: Any) -> dict[str, Any]:
    return db.call(name, arguments)


@pytest.mark.parametrize("way", ["purge", "tool_execute"])
def test_no_byte_of_what_was_purged_is_left(tmp_path: Path, way: str) -> None:
    path = tmp_path / "memory.db"
    embedder = "static" if way == "purge" else "none"
    with stratagem.open(str(path), embedder=embedder, redaction="none") as db:
        use_everywhere(db)
        db.runtime.gateway.recorder.settle()
        before = held(path)
        if way == "purge":
            answer = call(db, "strata_purge", key=KEY)
        else:
            asked = {"toolName": "strata_purge", "arguments": {"key": KEY}}
            answer = call(db, "tool_execute", **asked)["result"]
        again = call(db, "tool_execute", toolName="peek", arguments={"key": "nothing"})
        db.runtime.gateway.recorder.settle()
        while_open = held(path)
        healthy = db.runtime.foundation.store.examine(lambda *_: None, None)
        with pytest.raises(RequestReused, match="purged since"):
            call(
                db,
                "tool_execute",
                toolName="strata_recall",
                arguments={"key": KEY},
                requestId="r1",
            )
    after = held(path)

    assert sum(before.values()) > 20, before
    assert while_open == {}
    assert after == {}
    assert healthy == []
    assert again["result"]["found"] is False
    assert answer["erased"] == 5
    assert set(answer["copies"]) >= {
        "execution_ok",
        "execution_failed",
        "lookup",
        "pipeline_run",
        "pipeline_step",
        "recommendation",
        "result",
        "kept_result",
    }, answer


def test_the_record_of_a_call_that_had_nothing_to_do_with_it_stays(tmp_path: Path) -> None:
    with stratagem.open(str(tmp_path / "m.db"), embedder="none") as db:
        db.memory.store(KEY, TEXT)
        call(db, "tool_execute", toolName="calculator", arguments={"expression": "6*7"})
        call(db, "tool_execute", toolName="strata_recall", arguments={"key": KEY})

        db.memory.purge(KEY)

        left = db.gateway.executions()
    assert [each["tool"] for each in left] == ["calculator"]
    assert left[0]["result"]["result"] == 42


def test_what_callers_wrote_elsewhere_is_left_and_told(tmp_path: Path) -> None:
    with stratagem.open(str(tmp_path / "m.db"), embedder="none") as db:
        db.memory.store(KEY, TEXT)
        db.memory.store("copy", f"I wrote down: {TEXT}")
        db.memory.log("seen", {"text": TEXT})

        answer = call(db, "strata_purge", key=KEY)

        copy = db.memory.recall("copy")
    assert answer["elsewhere"] == {"entry": 1, "event": 1}
    assert copy is not None


def test_a_logged_event_is_purged_with_its_copies(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with stratagem.open(str(path), embedder="none") as db:
        logged = db.memory.log("said", {"text": TEXT})
        call(db, "tool_execute", toolName="strata_search", arguments={"query": MARKER})

        answer = call(db, "strata_purge", sequence=logged.sequence)

    assert answer["copies"] == {"execution_ok": 1}
    assert held(path) == {}


def test_no_object_of_the_process_refers_to_what_was_purged(tmp_path: Path) -> None:
    program = [sys.executable, str(Path(__file__).with_name("held_texts.py"))]
    run = subprocess.run(
        [*program, str(tmp_path / "memory.db")], capture_output=True, text=True, check=True
    )

    before, after = run.stdout.split("---\n")
    assert before.count("_lru_cache_wrapper: ") > 20, before
    assert before.count("FunctionCache: ") >= 2, before
    assert after == ""


def test_the_cache_of_another_process_is_not_asked_any_more(tmp_path: Path) -> None:
    path = str(tmp_path / "m.db")
    definition = {
        "name": "peek",
        "description": "Recalls.",
        "inputSchema": {"type": "object"},
        "handler": {
            "type": "pipeline",
            "definition": {
                "name": "peek",
                "steps": [{"id": "a", "tool": "strata_recall", "arguments": {"key": KEY}}],
            },
        },
        "configuration": {"cache": True, "cacheTtl": 600},
    }
    with (
        closing(start(Settings(path, embedder="none"))) as server,
        closing(start(Settings(path, embedder="none"))) as other,
    ):
        server.call("strata_store", {"key": KEY, "value": TEXT}, OPERATOR)
        server.call("tool_register", definition, OPERATOR)
        asked = {"toolName": "peek", "arguments": {}}
        first = server.call("tool_execute", asked, OPERATOR)
        kept = server.call("tool_execute", asked, OPERATOR)
        server.gateway.recorder.settle()

        other.call("strata_purge", {"key": KEY}, OPERATOR)

        after = server.call("tool_execute", asked, OPERATOR)
    assert MARKER in json.dumps(first)
    assert kept["metadata"]["cached"] is True
    assert after["metadata"]["cached"] is False
    assert MARKER not in json.dumps(after)


@pytest.mark.parametrize("by_another", [False, True])
def test_a_correction_that_was_offered_before_a_purge_is_offered_no_more(
    tmp_path: Path, by_another: bool
) -> None:
    settings = Settings(str(tmp_path / "m.db"), embedder="none")
    wrong = {"toolName": "strata_recall", "arguments": {"keyy": KEY}}

    with closing(start(settings)) as server, closing(start(settings)) as other:

        def confirm(arguments: Any) -> Any:
            asked = {**wrong, "arguments": arguments, "correctionId": offered, "confirm": True}
            return server.call("tool_execute", asked, OPERATOR)

        server.call("strata_store", {"key": KEY, "value": TEXT}, OPERATOR)
        with pytest.raises(ValidationFailed) as refused:
            server.call("tool_execute", wrong, OPERATOR)
        offered = refused.value.details["corrections"][0]["correctionId"]
        before = confirm({})["result"]["value"]
        server.gateway.recorder.settle()

        (other if by_another else server).call("strata_purge", {"key": KEY}, OPERATOR)

        with pytest.raises(ValidationFailed, match="There is no offer"):
            confirm({})
    assert before == TEXT


def test_a_run_whose_steps_may_be_gone_is_not_gone_on_with(tmp_path: Path) -> None:
    with stratagem.open(str(tmp_path / "m.db"), embedder="none") as db:
        from stratagem.engine.events import Draft
        from stratagem.gateway import names

        steps = [{"id": "a", "tool": "calculator", "arguments": {"expression": "1"}}]
        begun = {
            "runId": "run_1",
            "name": "p",
            "definition": {"name": "p", "steps": steps},
            "input": None,
            "caller": "sdk",
        }
        draft = Draft(names.PIPELINE_STARTED, begun, names.PIPELINE_RUNS, "run_1")
        foundation = db.runtime.foundation
        foundation.write(
            OPERATOR,
            lambda transaction: (
                transaction.append(foundation.views.view(transaction, "default").branch, [draft])
                and None
            ),
        )
        db.memory.store(KEY, TEXT)
        db.memory.purge(KEY)

        with pytest.raises(ValidationFailed, match="purged since"):
            call(db, "tools_pipeline", resume="run_1")


@pytest.mark.parametrize(
    ("value", "record", "quoted"),
    [
        (TEXT, {"snippet": TEXT[7 : 7 + PIECE_CHARS]}, True),
        (TEXT, {"snippet": TEXT[7:20]}, False),
        (TEXT, [f"before {TEXT} after"], True),
        ('say "hi" to me', {"body": json.dumps({"text": 'say "hi" to me'})}, True),
        ("Bergen", {"city": "Bergen"}, True),
        ("Bergen", {"city": "Bergen and Oslo"}, False),
        ("no", {"answer": "no"}, False),
        (4711, {"number": 4711}, True),
        (42, {"number": 42}, False),
        ({"deep": ["hidden-value"]}, {"x": [{"y": "a hidden-value b"}]}, True),
        ("x", {"key": "the key"}, True),
        ("x", {"the key": 1}, True),
        ("x", {"key": "the key and more"}, False),
    ],
)
def test_what_counts_as_a_copy(value: Any, record: Any, quoted: bool) -> None:
    assert Copies([value], ["the key"]).quoted_in(record) is quoted


@pytest.mark.parametrize("count", [3, 300])
def test_a_part_is_recognised_among_however_many(count: int) -> None:
    parts = [f"person-{number}@example" for number in range(count)]
    copies = Copies([parts])

    assert copies.quoted_at_length({"note": f"Ask person-{count - 1}@example about it."})
    assert copies.quoted_at_length([f"person-{count - 1}@example"])
    assert not copies.quoted_at_length({"note": f"Ask person-{count}@example about it."})
    assert not copies.quoted_at_length({"note": "person-"})
