"""Corners that a caller meets rarely and must not be surprised by."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

import stratagem
from stratagem import Stratagem, StratagemError
from stratagem.errors import BranchNotFound, MergeConflict, RequestReused, ValidationFailed
from stratagem.operation import Caller
from stratagem.places import local_zone


@pytest.fixture
def db() -> Iterator[Stratagem]:
    with stratagem.open(":memory:", durability="fast", embedder="none") as opened:
        yield opened


def test_a_request_id_belongs_to_the_namespace_it_wrote_to(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    with stratagem.open(path, namespace="one", embedder="none") as one:
        one.memory.store("goal", "ship it", request_id="1")
        again = one.memory.store("goal", "ship it", namespace="one", request_id="1")

    with (
        stratagem.open(path, namespace="two", embedder="none") as two,
        pytest.raises(RequestReused),
    ):
        two.memory.store("goal", "ship it", request_id="1")

    assert again.status == "created"


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationFailed, match="durability"):
        stratagem.open(str(tmp_path / "memory.db"), durability="Full")  # type: ignore[arg-type]


def test_a_parameter_that_an_action_would_pass_over_is_refused(db: Stratagem) -> None:
    db.memory.fork("trial")

    for arguments in (
        {"action": "delete", "name": "trial", "preview": True},
        {"action": "merge", "source": "trial", "as_of": "@1"},
        {"action": "fork", "name": "x", "source": "trial"},
    ):
        with pytest.raises(StratagemError, match="takes no"):
            db.call("strata_branch", arguments)

    assert [branch.name for branch in db.memory.branches()] == ["default", "trial"]


def test_conflicts_of_names_that_look_alike_are_decided_apart(db: Stratagem) -> None:
    memory = db.memory
    places = [("a", "b/c"), ("a/b", "c")]
    for namespace, key in places:
        memory.store(key, "base", namespace=namespace)
    memory.fork("trial")
    for namespace, key in places:
        memory.store(key, "ours", namespace=namespace)
        memory.store(key, "theirs", namespace=namespace, branch="trial")
    with pytest.raises(MergeConflict) as refused:
        memory.merge("trial")
    ids = [conflict["id"] for conflict in refused.value.details["conflicts"]]

    memory.merge("trial", decisions={ids[0]: "source", ids[1]: "target"})

    found = [memory.recall(key, namespace=namespace) for namespace, key in places]
    assert len(set(ids)) == 2
    assert sorted(entry.value for entry in found if entry) == ["ours", "theirs"]


def test_a_word_that_is_common_elsewhere_is_found_where_it_is_all_there_is(db: Stratagem) -> None:
    db.memory.fork("work")
    db.memory.store("real", "alpha checklist", branch="work")
    db.memory.store(items=[{"key": f"n{n}", "value": f"alpha {n}"} for n in range(300)])
    db.memory.store("b", "bravo")

    found = db.memory.search("alpha bravo", branch="work")

    assert [hit.key for hit in found] == ["real"]


def test_options_of_the_wrong_type_are_refused_by_name(db: Stratagem) -> None:
    for item, field in (
        ({"key": "k", "value": 1, "tags": {"x": 1}}, "tags"),
        ({"key": "k", "value": 1, "index": "sometimes"}, "index"),
    ):
        with pytest.raises(ValidationFailed) as refused:
            db.call("strata_store", {"items": [item]})
        assert refused.value.details["path"] == f"items[0].{field}"
    with pytest.raises(ValidationFailed, match="ttl"):
        db.call("strata_store", {"key": "k", "value": 1, "ttl": True})

    assert db.memory.recall("k") is None


def test_the_local_zone_has_its_summer_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Oslo")

    zone = local_zone()

    offsets = [datetime(2026, month, 1, tzinfo=zone).utcoffset() for month in (1, 7)]
    assert [str(offset) for offset in offsets] == ["1:00:00", "2:00:00"]


def test_who_works_on_a_branch_that_was_deleted_elsewhere_writes_nowhere_until_it_chooses(
    db: Stratagem,
) -> None:
    other = Stratagem(db.runtime, Caller())
    db.memory.fork("trial")
    db.memory.switch("trial")
    db.memory.store("k", 1)
    other.memory.delete("trial")

    status = db.memory.status()
    with pytest.raises(BranchNotFound, match="trial") as refused:
        db.memory.store("k", 2)

    assert (status.branch, status.keys) == ("trial", 1)
    assert "was deleted" in (status.note or "")
    assert "restore" in refused.value.hint
    assert "switch" in refused.value.hint
    assert db.branch == "trial"
    assert other.memory.recall("k") is None
    db.memory.switch("default")
    assert (db.memory.status().note, db.memory.status().keys) == (None, 0)


def test_a_status_on_a_branch_that_never_was_says_so_and_counts_nothing(db: Stratagem) -> None:
    lost = Stratagem(db.runtime, Caller(branch="nope"))

    status = lost.memory.status()

    assert (status.branch, status.keys, status.events) == ("nope", 0, 0)
    assert "no branch 'nope'" in (status.note or "")


def test_missing_keys_are_named_within_the_budget(db: Stratagem) -> None:
    keys = [f"nothing-under-{number:04}" for number in range(1_000)]

    answer = db.call("strata_recall", {"keys": keys, "max_chars": 1_000})

    assert answer["missing_count"] == 1_000
    assert len(str(answer)) < 1_500
