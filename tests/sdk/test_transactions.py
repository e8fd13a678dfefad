"""`with db.transaction():` stores all that its block did, in whichever system, or nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem import Stratagem
from stratagem.operation import Caller
from tests import forkserver
from tests.behaviour.surfaces import Wanted
from tests.contracts.samples import SECOND, Clock
from tests.postgres import a_workspace

TOOL: dict[str, Any] = {
    "name": "sum",
    "description": "Add two numbers.",
    "inputSchema": {"type": "object"},
    "handler": {"type": "builtin", "name": "calculator"},
}
ENV = {"os": "linux", "python": "3.12"}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db(tmp_path: Path, clock: Clock) -> Iterator[Stratagem]:
    wanted = Wanted(tmp_path / "a.db", clock)
    with closing(Stratagem(wanted.start(), Caller(authority="operator"))) as opened:
        yield opened


def elsewhere(work: Callable[[], object]) -> object:
    """Run something in a thread, which is in no transaction; return its result."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def value_of(db: Stratagem, key: str) -> object:
    entry = db.memory.recall(key)
    return entry and entry.value


def in_all_systems(db: Stratagem) -> None:
    db.memory.store("city", "Oslo")
    db.memory.log("moved", {"to": "Oslo"})
    incident = db.debugging.add_incident(
        "Boom", "Run", ENV, worked=False, error_signature="ValueError: boom in line 3"
    )
    assert incident.incident_id is not None
    fix = db.debugging.add_solution(incident.incident_id, "Cut the red wire", ENV)
    assert fix.solution_id is not None
    db.debugging.record_outcome(fix.solution_id, worked=True, env=ENV)
    one = db.knowledge.create_concept("Bombs", "Things that go boom when they are not defused")
    two = db.knowledge.create_concept("Wires", "Red and blue things within bombs, to be cut")
    db.knowledge.create_relationship(str(one.concept_id), str(two.concept_id), "PREREQUISITE")
    db.call("tool_register", TOOL)


def seen(db: Stratagem) -> list[bool]:
    """Say of each system whether it shows what was written."""
    return [
        value_of(db, "city") == "Oslo",
        len(db.memory.search("moved").results) > 0,
        bool(db.debugging.ranked_solutions("ValueError: boom in line 9", ENV).ranked_solutions),
        len(db.knowledge.search_concepts_exact(name="Bombs").results) == 1,
        has_tool(db),
    ]


def has_tool(db: Stratagem) -> bool:
    try:
        return bool(db.gateway.get("sum")["name"] == "sum")
    except stratagem.ToolNotFound:
        return False


def test_a_block_over_all_systems_is_stored_as_a_whole(db: Stratagem) -> None:
    with db.transaction() as transaction:
        in_all_systems(db)
        within, outside = seen(db), elsewhere(lambda: seen(db))

    assert within == [True] * 5
    assert outside == [False] * 5
    assert seen(db) == elsewhere(lambda: seen(db)) == [True] * 5
    assert transaction.result is not None
    assert transaction.result.records > 0
    assert db.runtime.foundation.store.examine(lambda *_told: None, None) == []


def test_outcomes_and_certainty_count_as_if_they_were_written_directly(
    db: Stratagem, tmp_path: Path
) -> None:
    wanted = Wanted(tmp_path / "direct.db", Clock())
    with closing(Stratagem(wanted.start(), Caller(authority="operator"))) as direct:
        in_all_systems(direct)
        with db.transaction():
            in_all_systems(db)

        assert evidence(db) == evidence(direct)


def evidence(db: Stratagem) -> object:
    """Return everything that is computed from several records, and the counts of two kinds."""
    status = db.memory.status()
    ranked = db.debugging.ranked_solutions("ValueError: boom", ENV).ranked_solutions
    certain = db.knowledge.get_concepts_by_certainty().results
    return (
        [(each.reliability_score, each.interval_90, each.overall) for each in ranked],
        [each.certainty_score for each in certain],
        (status.keys, status.events),
    )


def test_an_error_that_leaves_the_block_stores_nothing(db: Stratagem) -> None:
    def fail() -> None:
        with transaction:
            in_all_systems(db)
            raise ZeroDivisionError

    transaction = db.transaction()
    with pytest.raises(ZeroDivisionError):
        fail()

    assert seen(db) == [False] * 5
    assert transaction.result is None
    assert repr(transaction) == "<transaction: rolled back>"


def test_a_block_may_be_rolled_back_and_then_refuses_to_go_on(db: Stratagem) -> None:
    with db.transaction() as transaction:
        db.memory.store("city", "Oslo")
        transaction.rollback()
        with pytest.raises(stratagem.TransactionEnded):
            db.memory.store("city", "Bergen")

    assert value_of(db, "city") is None


def test_two_that_count_at_once_do_not_lose_one(db: Stratagem) -> None:
    db.memory.store("count", 1)

    def count() -> None:
        with db.transaction():
            db.memory.store("count", 2)
            elsewhere(lambda: db.memory.store("count", 2))

    with pytest.raises(stratagem.TransactionConflict) as refused:
        count()

    assert refused.value.details["records"] == [
        {"kind": "entry", "namespace": "default", "key": "count"}
    ]
    assert db.call("strata_history", {"key": "count"})["results"][0]["value"] == 2
    assert value_of(db, "count") == 2


def test_a_block_keeps_seeing_the_moment_at_which_it_began(db: Stratagem) -> None:
    db.memory.store("city", "Oslo")

    with db.transaction(read_only=True):
        elsewhere(lambda: db.memory.store("city", "Bergen"))
        within = value_of(db, "city")

    assert (within, value_of(db, "city")) == ("Oslo", "Bergen")


def test_a_block_that_only_reads_refuses_writes_of_every_system(db: Stratagem) -> None:
    with db.transaction(read_only=True):
        for write in (
            lambda: db.memory.store("a", 1),
            lambda: db.knowledge.create_concept("Bombs", "Things that go boom"),
            lambda: db.call("tool_register", TOOL),
        ):
            with pytest.raises(stratagem.ReadOnly):
                write()
        assert db.debugging.ranked_solutions("boom", ENV).lookup_id is None


def test_a_transaction_within_another_is_refused(db: Stratagem) -> None:
    with db.transaction():
        db.memory.store("a", 1)
        with pytest.raises(stratagem.NotInTransaction), db.transaction():
            pass

    assert value_of(db, "a") == 1


def test_its_own_branch_may_be_named_and_no_other(db: Stratagem) -> None:
    db.memory.fork("trial")

    with db.transaction():
        db.memory.store("a", 1, branch="default")
        db.call("strata_store", {"key": "b", "value": 2, "branch": "default"})
        with pytest.raises(stratagem.NotInTransaction):
            db.memory.store("a", 1, branch="trial")
        assert db.memory.status().branch == db.branch == "default"
        assert elsewhere(lambda: value_of(db, "a")) is None

    assert (value_of(db, "a"), value_of(db, "b")) == (1, 2)


def test_what_could_not_be_undone_is_refused(db: Stratagem) -> None:
    db.memory.fork("trial")
    db.memory.store("a", 1)

    with db.transaction():
        for refused in (
            lambda: db.memory.fork("other"),
            lambda: db.memory.create("other"),
            lambda: db.memory.switch("trial"),
            lambda: db.memory.delete("trial"),
            lambda: db.memory.restore("trial"),
            lambda: db.memory.merge("trial"),
            lambda: db.memory.purge("a"),
            lambda: db.call("strata_purge", {"key": "a"}),
            lambda: db.gateway.execute("calculator", {"expression": "1+1"}),
        ):
            with pytest.raises(stratagem.NotInTransaction):
                refused()

    assert value_of(db, "a") == 1


def test_a_request_id_is_known_to_its_transaction_alone(db: Stratagem) -> None:
    with db.transaction() as transaction:
        first = db.memory.store("a", 1, request_id="r")
        assert db.memory.store("a", 1, request_id="r") == first
        transaction.rollback()

    with db.transaction():
        db.memory.store("a", 1, request_id="r")

    assert value_of(db, "a") == 1


def test_a_transaction_ends_by_its_time_limit(db: Stratagem, clock: Clock) -> None:
    def dawdle(limit: timedelta | float, after: Callable[[], object]) -> None:
        with db.transaction(time_limit=limit):
            db.memory.store("a", 1)
            clock.advance(6)
            after()

    with pytest.raises(stratagem.TransactionEnded):
        dawdle(timedelta(seconds=5), lambda: db.memory.store("b", 1))
    with pytest.raises(stratagem.TransactionEnded):
        dawdle(5, lambda: None)

    assert (value_of(db, "a"), value_of(db, "b")) == (None, None)
    assert db.runtime.foundation.store.reader().branches.transactions() == []


@pytest.mark.parametrize("limit", [0, -1, 3_601, timedelta(hours=2)])
def test_a_time_limit_has_its_bounds(db: Stratagem, limit: float | timedelta) -> None:
    with pytest.raises(stratagem.ValidationFailed) as refused, db.transaction(time_limit=limit):
        pass

    assert refused.value.details["field"] == "time_limit"


def test_what_a_killed_process_left_open_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    code = (
        "import os, stratagem\n"
        f"db = stratagem.open({str(path)!r}, embedder='none')\n"
        "db.memory.store('a', 1)\n"
        "with db.transaction(time_limit=0.001):\n"
        "    os.kill(os.getpid(), 9)\n"
    )

    ended = forkserver.run([sys.executable, "-c", code], check=False, timeout=60)
    with stratagem.open(path, embedder="none") as db:
        shown = [each.name for each in db.memory.branches()]
        left = db.runtime.foundation.store.reader().branches.transactions()

    assert ended.returncode == -9
    assert (shown, left) == (["default"], [])


_KILLED = """
import os, stratagem
db = stratagem.open({path!r}, embedder="none")
db.memory.store("a", 1)
id = db.call("strata_txn_begin", {{"time_limit": 60}})["transaction"]
db.call("strata_kv_put", {{"key": "a", "value": 2, "transaction": id}})
db.call("strata_event_append", {{"event_type": "moved", "payload": {{}}, "transaction": id}})
print(id, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return where a database is: a file, or a workspace of a server."""
    if request.param == "sqlite":
        return str(tmp_path / "a.db")
    return f"{request.getfixturevalue('postgres_address')}#{a_workspace()}"


def _begin_and_be_killed(place: str) -> str:
    code = _KILLED.format(path=place)
    ended = forkserver.run(
        [sys.executable, "-c", code], check=False, timeout=60, stdout=subprocess.PIPE, text=True
    )
    assert ended.returncode == -9
    return ended.stdout.strip()


def test_a_transaction_with_an_id_outlives_the_process_that_began_it(place: str) -> None:
    within = {"transaction": _begin_and_be_killed(place)}

    with stratagem.open(place, embedder="none") as db:
        before = value_of(db, "a")
        inside = db.call("strata_kv_get", {"key": "a", **within})["value"]
        committed = db.call("strata_txn_commit", within)
        after = value_of(db, "a")

    assert (before, inside, after) == (1, 2, 2)
    assert (committed["records"], committed["events"]) == (1, 1)


def test_a_transaction_of_a_killed_process_ends_by_its_time_limit(
    place: str, tmp_path: Path
) -> None:
    within = {"transaction": _begin_and_be_killed(place)}
    # The id begins with the moment at which the time limit is over.
    later = Clock(int(within["transaction"].partition("-")[0]) + SECOND)

    wanted = Wanted(tmp_path / "a.db", later, address=place if "://" in place else None)
    with closing(Stratagem(wanted.start(), Caller(authority="operator"))) as db:
        with pytest.raises(stratagem.TransactionEnded):
            db.call("strata_txn_commit", within)
        left = db.runtime.foundation.store.reader().branches.transactions()
        counted = db.memory.status().events
        value = value_of(db, "a")
        erased = db.retention.apply(keep=1).by_kind
        content = [event.payload or b"" for event in db.runtime.foundation.store.log()]

    assert (value, counted, left) == (1, 0, [])
    assert erased == {"entry": 1, "event": 1}
    assert not any(b"moved" in each for each in content)


def test_a_transaction_can_be_gone_on_with_by_its_id(db: Stratagem) -> None:
    transactions = db.runtime.transactions
    ann, bob = Caller(actor="ann"), Caller(actor="bob")
    within = transactions.begin(ann)
    assert within.transaction is not None
    db.runtime.call("strata_store", {"key": "a", "value": 1}, within)

    again = transactions.resume(ann, within.transaction.id)
    with pytest.raises(stratagem.PermissionDenied):
        transactions.resume(bob, within.transaction.id)
    db.runtime.call("strata_store", {"key": "b", "value": 2}, again)
    transactions.commit(again)

    assert (value_of(db, "a"), value_of(db, "b")) == (1, 2)
    with pytest.raises(stratagem.TransactionEnded):
        transactions.resume(ann, within.transaction.id)


def test_no_caller_can_name_the_branch_of_a_transaction(db: Stratagem) -> None:
    with db.transaction() as transaction:
        db.memory.store("a", "mine")
        hidden = f"\x02{transaction.id}"
        for ask in (
            lambda: db.memory.recall("a", branch=hidden),
            lambda: db.memory.diff(hidden),
            lambda: db.call("strata_recall", {"key": "a", "branch": hidden}),
            lambda: db.gateway.list(branch=hidden),
        ):
            with pytest.raises(stratagem.StratagemError):
                elsewhere_raising(ask)


def elsewhere_raising(work: Callable[[], object]) -> None:
    """Run something in a thread, and raise what it raises here."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 -- raised again below
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
