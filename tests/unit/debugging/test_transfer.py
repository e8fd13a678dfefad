"""Sharing debug memory: what goes out, what comes in, and what a bad file cannot do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from stratagem import Stratagem
from stratagem.debugging.models import RankedSolution
from stratagem.debugging.signatures import fingerprint
from stratagem.debugging.transfer import TransferResult, export_file, import_file
from stratagem.errors import ImportRefused
from stratagem.operation import Caller
from tests.contracts.samples import Clock
from tests.unit.debugging.test_kept import (
    ERROR,
    LINUX,
    TOKEN,
    YEAR_SECONDS,
    add,
    everything,
    fork,
    merge,
    ranked,
    stats,
)

Line = dict[str, Any]


def taken(db: Stratagem, path: Path, branch: str = "default") -> TransferResult:
    return import_file(db.runtime.foundation, Caller(branch=branch), path)


def written(db: Stratagem, path: Path, branch: str = "default") -> list[Line]:
    export_file(db.runtime.foundation, path, branch=branch)
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def rewritten(path: Path, lines: list[Line]) -> None:
    """Write a file as somebody would who edited it by hand."""
    lines = [*lines[:-1], {"type": "end", "lines": len(lines) - 1}]
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def counts(done: TransferResult) -> tuple[int, int, int, int]:
    return done.incidents, done.solutions, done.outcomes, done.known


@pytest.fixture
def file(db: Stratagem, clock: Clock, tmp_path: Path) -> Path:
    """An incident with two fixes and, from one lookup, three reports."""
    added = add(db)
    assert added.solution_id is not None
    db.debugging.add_solution(added.incident_id, "Pay by invoice", {"os": "macos"})
    lookup = db.debugging.ranked_solutions(ERROR, LINUX).lookup_id
    for _ in range(3):
        db.debugging.record_outcome(added.solution_id, True, LINUX, lookup_id=lookup)
    clock.advance(YEAR_SECONDS)
    path = tmp_path / "fixes.jsonl"
    written(db, path)
    return path


def test_what_comes_in_is_worth_what_it_was(db: Stratagem, other: Stratagem, file: Path) -> None:
    done = taken(other, file)

    assert counts(done) == (1, 2, 4, 0)
    one, two = ranked(db), ranked(other)
    assert one.solution_id == two.solution_id
    assert one.overall == two.overall
    assert one.reliability_score == two.reliability_score
    assert stats(other).outcomes == stats(db).outcomes


def test_a_file_taken_in_again_changes_nothing(other: Stratagem, file: Path) -> None:
    taken(other, file)
    head = other.call("strata_status")["head"]

    again = taken(other, file)

    assert counts(again) == (0, 0, 0, 7)
    assert other.call("strata_status")["head"] == head


def test_what_came_in_says_where_it_came_from_however_far(
    other: Stratagem, file: Path, tmp_path: Path
) -> None:
    source = orjson.loads(file.read_bytes().splitlines()[0])["source"]
    taken(other, file)

    lines = written(other, tmp_path / "again.jsonl")

    assert lines[0]["source"] != source
    assert {(line["origin"]["source"], line["origin"]["file"]) for line in lines[1:-1]} == {
        (source, "fixes.jsonl")
    }


def test_fixes_of_an_incident_that_is_known_join_those_that_are_there(
    other: Stratagem, file: Path
) -> None:
    own = add(other, steps="Reload the page")

    done, again = taken(other, file), taken(other, file)

    assert (done.joined, done.incidents, done.solutions) == (1, 0, 2)
    assert counts(again)[:3] == (0, 0, 0)
    found = other.debugging.ranked_solutions(ERROR, LINUX)
    assert {each.incident_id for each in found} == {own.incident_id}
    assert len(found) == 3


@pytest.mark.parametrize("between", [0, 600])
def test_incidents_that_were_told_apart_stay_apart(
    db: Stratagem, other: Stratagem, tmp_path: Path, between: int
) -> None:
    ids = {add(db).incident_id}
    for number in range(between):
        add(db, error_signature=None, title=f"another problem {number}")
    ids.add(add(db, distinct=True, title="Zero cards").incident_id)
    written(db, tmp_path / "f.jsonl")

    taken(other, tmp_path / "f.jsonl")
    taken(other, tmp_path / "f.jsonl")

    found = other.debugging.ranked_solutions(ERROR, LINUX).incidents
    assert {match.incident_id for match in found if match.exact} == ids


def test_a_branch_takes_a_file_for_itself_and_merging_doubles_nothing(
    other: Stratagem, file: Path
) -> None:
    fork(other, "trial")

    taken(other, file, "trial")
    unseen = other.debugging.ranked_solutions(ERROR, LINUX).incidents
    taken(other, file)
    conflicts = merge(other, "trial")["conflicts"]

    assert unseen == []
    assert conflicts == []
    assert ranked(other).overall == {"worked": 2, "failed": 0}
    assert stats(other).outcomes == 2


def test_what_a_stranger_left_unmasked_is_masked_here(
    other: Stratagem, file: Path, tmp_path: Path
) -> None:
    lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    for line in lines[1:-1]:
        line["env"] = {"os": "linux", "path": f"/home/ann/{TOKEN}"}
        line.pop("env_bucket", None)
    lines[1] |= {"title": f"with {TOKEN}", "summary": TOKEN, "tags": [TOKEN], "extra": TOKEN}
    lines[1]["error_signature"] += f" {TOKEN}"
    lines[2]["steps"] = [f"export TOKEN={TOKEN}"]
    lines[3]["notes"] = "password=hunter22"
    rewritten(tmp_path / "open.jsonl", lines)

    taken(other, tmp_path / "open.jsonl")

    kept = everything(other)
    assert TOKEN not in kept
    assert "hunter22" not in kept
    assert "/home/ann" not in kept


def test_what_follows_from_other_fields_is_not_believed(
    other: Stratagem, file: Path, tmp_path: Path
) -> None:
    lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    lines[1] |= {"fingerprint": fingerprint("KeyError: 'x'"), "signature_version": 99}
    lines[3]["at"] = 2**62
    rewritten(tmp_path / "wrong.jsonl", lines)

    taken(other, tmp_path / "wrong.jsonl")

    found: RankedSolution = ranked(other)
    assert found.relevance == 1.0
    assert not any(
        match.exact for match in other.debugging.ranked_solutions("KeyError: 'x'", LINUX).incidents
    )
    assert stats(other).outcomes == 2


def change(number: int, **fields: Any) -> Callable[[list[Line]], None]:
    def changed(lines: list[Line]) -> None:
        lines[number] |= fields

    return changed


def without(number: int, field: str) -> Callable[[list[Line]], None]:
    def changed(lines: list[Line]) -> None:
        del lines[number][field]

    return changed


def left_out(number: int) -> Callable[[list[Line]], None]:
    def changed(lines: list[Line]) -> None:
        del lines[number]

    return changed


# Header, incident, solution, its outcomes, solution, end.
@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (change(0, format="else"), 1),
        (change(0, version=2), 1),
        (change(1, title=5), 2),
        (change(1, title=" "), 2),
        (change(1, tags="deploy"), 2),
        (change(1, error_signature=["x"]), 2),
        (change(1, incident_id=None), 2),
        (change(2, steps=[]), 3),
        (change(2, steps=[5]), 3),
        (change(2, env="mars"), 3),
        (change(2, env=[1]), 3),
        (change(2, env_bucket="Not Canonical"), 3),
        (change(2, incident_id="inc_of_nobody"), 3),
        (change(3, worked=1), 4),
        (change(3, at="yesterday"), 4),
        (change(3, at=-5), 4),
        (change(3, at=2**64), 4),
        (change(3, lookup_id={}), 4),
        (change(3, solution_id="sol_of_nobody"), 4),
        (change(3, type="rumour"), 4),
        (change(3, type=["outcome"]), 4),
        (without(1, "title"), 2),
        (without(2, "steps"), 3),
        (without(3, "worked"), 4),
        (left_out(1), 2),
        (left_out(2), 3),
    ],
)
def test_a_wrong_line_is_named_and_nothing_comes_in(
    other: Stratagem, file: Path, damage: Callable[[list[Line]], None], line: int
) -> None:
    lines = [orjson.loads(each) for each in file.read_bytes().splitlines()]
    damage(lines)
    rewritten(file, lines)
    head = other.call("strata_status")["head"]

    with pytest.raises(ImportRefused) as refused:
        taken(other, file)

    assert refused.value.details["line"] == line
    assert other.call("strata_status")["head"] == head


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:0],
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b"Ask for a card", b"Ask for a cart"),
        lambda data: data.replace(b"\n", b"", 1),
        lambda data: data + b"{}\n",
        lambda data: b"\xff" + data,
        lambda data: b"[1]\n" + data,
    ],
)
def test_a_damaged_file_is_refused(
    other: Stratagem, file: Path, damage: Callable[[bytes], bytes]
) -> None:
    file.write_bytes(damage(file.read_bytes()))

    with pytest.raises(ImportRefused):
        taken(other, file)

    assert other.debugging.ranked_solutions(ERROR, LINUX).incidents == []


def test_a_fix_with_many_outcomes_comes_in_quickly(
    db: Stratagem, other: Stratagem, tmp_path: Path
) -> None:
    add(db)
    lines = written(db, tmp_path / "many.jsonl")
    many = [{**lines[3], "outcome_id": f"out_{number}"} for number in range(3_000)]
    rewritten(tmp_path / "many.jsonl", [*lines[:3], *many, many[0], lines[-1]])

    done = taken(other, tmp_path / "many.jsonl")

    assert counts(done) == (1, 1, 3_000, 1)
