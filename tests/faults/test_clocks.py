"""A clock that is set back or forth never turns the log's time around."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import pytest

import stratagem
from stratagem.access.kinds import TOKEN_CREATED, TOKENS
from stratagem.access.service import Access
from stratagem.access.tokens import Token
from stratagem.bootstrap import Settings, start
from stratagem.engine import moments
from stratagem.engine.events import Draft
from stratagem.errors import PermissionDenied, StratagemError, ValidationFailed
from stratagem.gateway import names
from stratagem.operation import Caller
from stratagem.projections.leases import Lease
from stratagem.storage.contract import Transaction, WriteRequest
from stratagem.storage.relational.store import Adapters
from stratagem.storage.views import find_branch
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings
from tests.faults.opening import examine, open_with, read_clock
from tests.surfaces.cli.console import Cli

MICROSECONDS = 1_000_000
HOUR = 3600 * MICROSECONDS
NOON = 1_800_000_000 * MICROSECONDS
CENTURY = 100 * 365 * 24 * HOUR


class Clock:
    """A clock that somebody sets."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> int:
        return self.now


def times(db: stratagem.Stratagem) -> list[int]:
    return [event.at for event in db.runtime.foundation.store.log()]


def test_times_go_forwards_whatever_the_clock_does(tmp_path: Path, seed: int) -> None:
    clock, draw = Clock(), random.Random(seed)
    for _ in range(5):
        with open_with(tmp_path / "clock.db", clock=clock) as db:
            for number in range(20):
                clock.now += draw.choice([0, 0, 1, MICROSECONDS, HOUR, -1, -MICROSECONDS, -HOUR])
                before = times(db)[-1]
                stored = db.memory.store(f"key {number}", number)

                assert times(db)[-1] == max(clock.now, before + 1)
                assert stored.timestamp == moments.iso(times(db)[-1])
            assert times(db) == sorted(set(times(db)))
            assert examine(db) == []


def test_status_says_how_far_the_log_is_ahead_of_the_clock(tmp_path: Path) -> None:
    clock = Clock()
    with open_with(tmp_path / "clock.db", clock=clock) as db:
        db.memory.store("city", "Oslo")
        assert db.memory.status().clock_ahead_seconds is None

        clock.now -= HOUR
        assert db.memory.status().clock_ahead_seconds == 3600
        db.memory.store("city", "Bergen")
        assert db.memory.status().clock_ahead_seconds == 3600

        clock.now += 2 * HOUR
        assert db.memory.status().clock_ahead_seconds is None


def test_each_write_can_be_seen_as_of_its_own_time_after_the_clock_was_set_back(
    tmp_path: Path,
) -> None:
    clock = Clock()
    with open_with(tmp_path / "clock.db", clock=clock) as db:
        written = []
        for number in range(10):
            clock.now -= HOUR
            written.append((db.memory.store("city", number).timestamp, number))

        for timestamp, number in written:
            entry = db.memory.recall("city", as_of=timestamp)
            assert entry is not None
            assert entry.value == number


def test_two_processes_with_different_clocks_agree_on_the_order(tmp_path: Path) -> None:
    early, late = Clock(), Clock()
    late.now += HOUR
    path = tmp_path / "clock.db"
    with open_with(path, clock=early) as one, open_with(path, clock=late) as other:
        for number in range(20):
            (one if number % 2 else other).memory.store("city", number)

        assert times(one) == sorted(set(times(one)))
        entry = one.memory.recall("city")
        assert entry is not None
        assert entry.value == 19
        assert one.memory.status().clock_ahead_seconds == 3600
        assert other.memory.status().clock_ahead_seconds is None
        assert examine(one) == []


@pytest.fixture
def clock() -> Clock:
    return Clock()


def jumped(db: stratagem.Stratagem, clock: Clock, by: int = CENTURY) -> int:
    """Write once while the clock is far ahead; return the version."""
    clock.now += by
    version = db.memory.store("far", "ahead").version
    clock.now -= by
    return version


@pytest.mark.parametrize("by", [CENTURY, HOUR])
def test_what_is_written_after_a_jump_expires_by_the_clock(
    tmp_path: Path, clock: Clock, by: int
) -> None:
    with open_with(tmp_path / "clock.db", clock=clock) as db:
        jumped(db, clock, by)
        stored = db.memory.store("brief", "fjord", ttl="2s")
        during = (db.memory.recall("brief"), len(list(db.memory.search("fjord"))))
        keys_during = db.memory.status().keys

        clock.now += 3 * MICROSECONDS

        assert during[0] is not None
        assert during[0].expires == moments.iso(NOON + 2 * MICROSECONDS)
        assert during[1] == 1
        assert db.memory.recall("brief") is None
        assert list(db.memory.search("fjord")) == []
        assert db.memory.status().keys == keys_during - 1
        for moment in (f"@{stored.version}", stored.timestamp, "2 seconds ago"):
            seen = db.memory.recall("brief", as_of=moment)
            assert seen is not None, moment
            assert [hit.key for hit in db.memory.search("fjord", as_of=moment)] == ["brief"]
        assert db.memory.recall("brief", as_of="1 second ago") is None
        assert examine(db) == []


def test_what_is_written_after_the_clock_was_set_back_expires_by_the_clock(
    tmp_path: Path, clock: Clock
) -> None:
    with open_with(tmp_path / "clock.db", clock=clock) as db:
        db.memory.store("city", "Oslo")
        clock.now -= 5 * HOUR
        db.memory.store("brief", 1, ttl="2s")
        there = db.memory.recall("brief")

        clock.now += 3 * MICROSECONDS

        assert there is not None
        assert db.memory.recall("brief") is None
        assert db.memory.store("brief", 2).status == "created"
        assert db.memory.forget("brief").deleted


def test_an_expired_entry_is_neither_expected_forgotten_nor_merged_after_a_jump(
    tmp_path: Path, clock: Clock
) -> None:
    with open_with(tmp_path / "clock.db", clock=clock) as db:
        jumped(db, clock)
        db.memory.fork("trial")
        version = db.memory.store("brief", 1, ttl="2s").version
        db.memory.store("brief", 2, ttl="2s", branch="trial")
        clock.now += 3 * MICROSECONDS

        assert not db.memory.forget("brief").deleted
        with pytest.raises(stratagem.StratagemError, match="no entry"):
            db.memory.store("brief", 3, expected_version=version)
        assert list(db.memory.merge("trial").results) == []
        assert db.memory.recall("brief") is None


def test_words_for_a_time_count_from_the_clock_after_a_jump(tmp_path: Path, clock: Clock) -> None:
    with open_with(tmp_path / "clock.db", clock=clock) as db:
        db.memory.store("city", "before")
        clock.now += HOUR
        jumped(db, clock)
        written = {}
        for hour in range(1, 6):
            clock.now += HOUR
            written[hour] = db.memory.store("city", hour)
        clock.now += HOUR // 2

        def seen(as_of: str) -> object:
            entry = db.memory.recall("city", as_of=as_of)
            return entry and entry.value

        assert [seen(f"{hours}h ago") for hours in range(6)] == [5, 4, 3, 2, 1, "before"]
        assert seen(moments.iso(clock.now - 2 * HOUR)) == 3
        for hour, stored in written.items():
            assert seen(stored.timestamp) == hour
            assert seen(f"@{stored.version}") == hour
        db.memory.fork("earlier", as_of="2h ago")
        forked = db.memory.recall("city", branch="earlier")
        assert forked is not None
        assert forked.value == 3
        with pytest.raises(ValidationFailed, match="future"):
            seen(moments.iso(clock.now + 2 * CENTURY))


def test_words_for_a_time_still_find_their_place_once_the_clock_caught_up(
    tmp_path: Path, clock: Clock
) -> None:
    with open_with(tmp_path / "clock.db", clock=clock) as db:
        jumped(db, clock, 10 * HOUR)
        clock.now += HOUR
        db.memory.store("city", "Oslo")
        clock.now += 20 * HOUR
        db.memory.store("city", "Bergen")

        entry = db.memory.recall("city", as_of="15h ago")

        assert db.memory.status().clock_ahead_seconds is None
        assert entry is not None
        assert entry.value == "Oslo"


def test_a_rebuild_after_a_jump_changes_nothing(tmp_path: Path, clock: Clock) -> None:
    with open_with(tmp_path / "clock.db", clock=clock) as db:
        jumped(db, clock)
        db.memory.store("brief", "fjord", ttl="10s")
        db.memory.store("gone", "fjord", ttl="1s")
        clock.now += 3 * MICROSECONDS
        before = (db.memory.status().keys, [hit.key for hit in db.memory.search("fjord")])

        db.runtime.foundation.store.rebuild(lambda *_: None)

        after = (db.memory.status().keys, [hit.key for hit in db.memory.search("fjord")])
        assert before == after == (2, ["brief"])


def test_a_jump_is_told_by_status_with_where_it_began(tmp_path: Path, clock: Clock) -> None:
    with open_with(tmp_path / "clock.db", clock=clock) as db:
        db.memory.store("city", "Oslo")
        since = jumped(db, clock)
        db.memory.store("city", "Bergen")

        status = db.memory.status()

        assert status.clock_ahead_seconds == CENTURY / MICROSECONDS
        assert status.clock_ahead_since == since
        assert status.clock_warning is not None
        assert f"100 years ahead of this machine's clock since @{since}" in status.clock_warning
        clock.now += CENTURY + HOUR
        assert db.memory.status().clock_warning is None


def test_a_jump_is_told_once_in_the_log_of_the_process(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    def warnings() -> int:
        return sum("ahead of this machine's clock" in each.message for each in caplog.records)

    with (
        caplog.at_level(logging.WARNING),
        open_with(tmp_path / "clock.db", clock=clock) as db,
    ):
        db.memory.store("city", 0)
        assert warnings() == 0
        jumped(db, clock)
        for number in range(5):
            clock.now += 10 * MICROSECONDS
            db.memory.store("city", number)
        assert warnings() == 1

        clock.now -= HOUR
        for number in range(5):
            db.memory.store("city", number)
        assert warnings() == 2


def test_a_lease_of_a_clock_that_was_ahead_does_not_outlast_it(
    tmp_path: Path, clock: Clock
) -> None:
    with open_with(tmp_path / "clock.db", clock=clock) as db:
        store = db.runtime.foundation.store
        store.write(lambda t: t.outbox.register("mirror", ["entry"]), WriteRequest("tester"))
        clock.now += CENTURY
        assert Lease(store, "mirror", "first").take()
        clock.now -= CENTURY

        assert Lease(store, "mirror", "second").take()
        assert not Lease(store, "mirror", "third").take()
        clock.now += 31 * MICROSECONDS
        assert Lease(store, "mirror", "third").take()


def tokens(db: stratagem.Stratagem) -> Access:
    return Access(db.runtime.foundation, Caller(), random.randbytes)


def test_an_approval_and_work_of_a_clock_that_was_ahead_count_for_nothing(
    tmp_path: Path, clock: Clock
) -> None:
    person, agent = Caller("root", authority="operator"), Caller("mcp", authority="agent")
    tool = {
        "name": "meta",
        "description": "A tool of the tests.",
        "inputSchema": {"type": "object"},
        "handler": {"type": "builtin", "name": "calculator"},
        "rights": {"approval": True},
    }
    call = {"toolName": "meta", "arguments": {"expression": "6 * 7"}}
    with open_with(tmp_path / "clock.db", clock=clock) as db:
        runtime = db.runtime

        def ask() -> StratagemError:
            with pytest.raises(PermissionDenied) as caught:
                runtime.call("tool_execute", call, agent)
            assert caught.value.details["reason"] == "approval_needed"
            return caught.value

        runtime.call("tool_register", tool, person)
        decision = {"id": ask().details["approvalId"], "decision": "approve"}
        clock.now += CENTURY
        runtime.call("approval_decide", decision, person)
        note = {
            "executionId": "exec_1",
            "kind": "call",
            "name": "meta",
            "caller": "mcp",
            "startedAt": clock.now,
            "seenAt": clock.now,
            "requestIds": [],
            "parent": None,
            "detached": True,
            "process": "another",
        }

        def keep(transaction: Transaction) -> None:
            draft = Draft(names.WORK_NOTED, note, names.WORK, "exec_1")
            transaction.append(find_branch(transaction.branches, "default"), [draft])

        runtime.foundation.write(agent, keep)
        (running,) = runtime.call("work_list", {}, person)["work"]
        clock.now -= CENTURY
        clock.now += 30 * 24 * HOUR

        ask()
        (lost,) = runtime.call("work_list", {}, person)["work"]
        runtime.call("approval_decide", decision, person)
        clock.now += HOUR

        assert (running["state"], lost["state"]) == ("running", "lost")
        assert runtime.call("tool_execute", call, agent)["result"]["result"] == 42


def test_a_token_ends_by_the_clock_after_a_jump(tmp_path: Path, clock: Clock) -> None:
    with open_every(tmp_path / "clock.db", clock) as db:
        jumped(db, clock)

        made, _secret = tokens(db).create("t1", ["memory:read"], {"default": "reader"}, seconds=8)
        clock.now += 7 * MICROSECONDS
        during = [token.state(clock.now) for token in tokens(db).every()]
        clock.now += 2 * MICROSECONDS

        assert made.expires_at == NOON + 8 * MICROSECONDS
        assert during == ["active"]
        assert [token.state(clock.now) for token in tokens(db).every()] == ["expired"]


def test_a_token_that_the_first_release_counted_from_the_recorded_time_ends_by_the_clock(
    tmp_path: Path, clock: Clock
) -> None:
    with open_every(tmp_path / "clock.db", clock) as db:
        jumped(db, clock)

        def as_it_was(transaction: Transaction) -> None:
            ends = transaction.at + 8 * MICROSECONDS
            token = Token("id", "old", "hash", frozenset(), {}, transaction.at, ends)
            branch = transaction.branches.by_name("default")
            assert branch is not None
            draft = Draft(TOKEN_CREATED, token.content(), TOKENS, token.id)
            transaction.append(branch, [draft])

        db.runtime.foundation.store.write(as_it_was, WriteRequest("tester"))
        during = [token.state(clock.now) for token in tokens(db).every()]
        clock.now += 9 * MICROSECONDS

        assert during == ["active"]
        assert [token.state(clock.now) for token in tokens(db).every()] == ["expired"]


def open_every(path: Path, clock: Clock) -> stratagem.Stratagem:
    """Open a database with every system, by a clock that somebody sets."""
    adapters = Adapters(clock, random.randbytes)
    return stratagem.Stratagem(
        start(Settings(str(path), embedder="none", adapters=adapters)), Caller()
    )


@pytest.fixture
def ahead(tmp_path: Path) -> tuple[Path, int]:
    """Give a database that a clock wrote to which was a century ahead, and the version it wrote."""
    path = tmp_path / "ahead.db"
    with open_with(path) as db:
        db.memory.store("city", "Oslo")
    with open_with(path, clock=lambda: read_clock() + CENTURY) as db:
        return path, db.memory.store("far", "ahead").version


def test_doctor_and_status_tell_a_jump_at_the_command_line(ahead: tuple[Path, int]) -> None:
    path, since = ahead
    cli = Cli(path)

    report = cli.json("doctor")

    assert report["healthy"]
    (warning,) = report["warnings"]
    assert f"100 years ahead of this machine's clock since @{since}" in warning
    assert "Check the clock" in " ".join(cli("doctor").split())
    assert cli.json("status")["clock_ahead_since"] == since
    assert "Check the clock" in " ".join(cli("status").split())


def test_a_server_tells_a_jump_in_its_log_when_it_opens_the_database(
    ahead: tuple[Path, int], caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(ServerSettings(str(ahead[0]), embedder="none"))

    with caplog.at_level(logging.WARNING):
        runtime = database.runtime()
        runtime.call("strata_store", {"key": "city", "value": 1}, Caller())
        runtime.call("strata_store", {"key": "city", "value": 2}, Caller())
    database.close()

    told = [each.message for each in caplog.records if "this machine's clock" in each.message]
    assert len(told) == 1
    assert str(ahead[0]) in told[0]


def test_a_token_made_after_a_jump_ends_by_the_clock_at_the_command_line(
    ahead: tuple[Path, int],
) -> None:
    made = Cli(ahead[0]).json("token", "create", "t1", "--expires", "8s")

    assert made["expires"] < moments.iso(read_clock() + HOUR)
