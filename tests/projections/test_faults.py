"""Whatever dies on the way, in the end every event is in effect once: `verify` proves it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from stratagem import limits
from stratagem.bootstrap import Settings, start
from stratagem.errors import ServiceUnavailable, ValidationFailed
from stratagem.operation import Caller
from stratagem.projections.bolt import Bolt
from stratagem.projections.settings import ExternalSettings
from stratagem.storage.relational.store import Adapters
from tests.contracts.samples import Clock, salts
from tests.faults.processes import Voice, child
from tests.postgres import a_workspace
from tests.projections.conftest import Fed, Opener
from tests.projections.proxy import Proxy
from tests.projections.servers import ChromaServer, Neo4jServer, Server, until


def write(db: Fed, dice: random.Random, ids: list[str], count: int) -> int:
    """Write at random, and return how many events that made for the read model."""
    before = written(db)
    for _ in range(count):
        live = [each for each in ids if not each.startswith("-")]
        chance = dice.random()
        if len(live) < 2 or chance < 0.5:
            ids.append(db.concept(f"Concept {len(ids)}", f"It is about {dice.choice(_WORDS)}."))
        elif chance < 0.65:
            db.knowledge.update_concept(dice.choice(live), explanation=f"Now {dice.random()}.")
        elif chance < 0.75:
            gone = dice.choice(live)
            db.knowledge.delete_concept(gone)
            ids[ids.index(gone)] = f"-{gone}"
        else:
            source, target = dice.sample(live, 2)
            label = dice.choice(("relates_to", "confirms", "includes"))
            with suppress(ValidationFailed):  # They may be so related already.
                db.relate(source, target, label)
    return written(db) - before


def written(db: Fed) -> int:
    reader = db.runtime.foundation.store.reader()
    (projection,) = reader.outbox.projections()
    return sum(reader.catalogue.version_count(kind) for kind in projection.kinds)


_WORDS = ("bread", "yeast", "loops", "lists", "stars", "rivers", "glass")


def deliver_all(db: Fed, name: str) -> None:
    """Deliver until nothing waits, however often the service fails meanwhile."""

    def done() -> bool:
        try:
            db.deliver(name)
        except ServiceUnavailable:
            return False
        return db.outbox()["pending"] == 0

    until(done)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for less than one would in earnest."""
    monkeypatch.setattr(limits, "OUTBOX_DELAY_SECONDS", 0.02)
    monkeypatch.setattr(limits, "OUTBOX_DELAY_SECONDS_MAX", 0.1)
    monkeypatch.setattr(limits, "OUTBOX_BLOCKED_SECONDS", 0.02)
    monkeypatch.setattr(limits, "OUTBOX_POLL_SECONDS", 0.05)
    monkeypatch.setattr(limits, "OUTBOX_ATTEMPTS_MAX", 100)


@pytest.fixture(params=["chroma", "neo4j"])
def service(request: pytest.FixtureRequest) -> tuple[str, Server]:
    name: str = request.param
    return name, request.getfixturevalue(name)


def chosen(name: str, port: int) -> dict[str, Any]:
    if name == "chroma":
        return {"vectors": "chroma", "chroma": f"http://127.0.0.1:{port}"}
    return {"graph": "neo4j", "neo4j_uri": f"bolt://127.0.0.1:{port}"}


@pytest.fixture
def proxy(service: tuple[str, Server]) -> Iterator[Proxy]:
    way = Proxy(service[1].port)
    yield way
    way.close()


# Starting Neo4j once more takes seconds of processor time.
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "service", ["chroma", pytest.param("neo4j", marks=pytest.mark.slow)], indirect=True
)
def test_the_external_database_is_killed_and_started_again(
    opened: Opener, service: tuple[str, Server]
) -> None:
    name, server = service
    db = opened(**chosen(name, server.port), deliver=True)
    dice, ids = random.Random(1), []  # type: tuple[random.Random, list[str]]
    events = write(db, dice, ids, 20)
    until(lambda: db.outbox()["processed"] > 0)

    server.kill()
    events += write(db, dice, ids, 20)
    waiting = db.outbox()
    server.start()
    until(lambda: db.outbox()["pending"] == 0)

    assert waiting["pending"] > 0
    assert waiting["failed"] == 0
    assert db.outbox() == {"pending": 0, "processed": events, "failed": 0}
    assert db.verify(name).different == 0
    assert db.verify(name).items > 0


@pytest.mark.usefixtures("quick")
def test_replies_are_lost(opened: Opener, service: tuple[str, Server], proxy: Proxy) -> None:
    name, _ = service
    db = opened(**chosen(name, proxy.port))
    dice, ids = random.Random(2), []  # type: tuple[random.Random, list[str]]
    db.deliver(name)
    events = 0

    for spare in range(12):
        events += write(db, dice, ids, 4)
        proxy.spare, proxy.mode = spare % 6, "cut"
        with suppress(ServiceUnavailable):
            db.deliver(name)
        proxy.mode = "pass"
        if spare % 3 == 2:
            deliver_all(db, name)
    deliver_all(db, name)

    assert proxy.lost >= 2
    assert db.outbox() == {"pending": 0, "processed": events, "failed": 0}
    assert db.verify(name).different == 0


@pytest.mark.usefixtures("quick")
def test_an_answer_that_never_comes_is_not_waited_for(
    opened: Opener, service: tuple[str, Server], proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SERVICE_TIMEOUT_SECONDS", 1.0)
    name, _ = service
    db = opened(**chosen(name, proxy.port))
    one, two = db.concept("One"), db.concept("Two")
    db.relate(one, two)
    deliver_all(db, name)
    db.concept("Three")

    proxy.mode = "swallow"
    begun = time.monotonic()
    with pytest.raises(ServiceUnavailable):
        db.deliver(name)
    took = time.monotonic() - begun
    proxy.mode = "pass"
    deliver_all(db, name)

    assert took < 60
    assert db.verify(name).different == 0


def deliver_until_killed(voice: Voice, path: str, given: dict[str, Any], seed: int) -> None:
    """Write and deliver without end, telling of every concept that was acknowledged."""
    for name in ("OUTBOX_LEASE_SECONDS", "OUTBOX_DELAY_SECONDS"):
        setattr(limits, name, 0.3)
    settings = Settings(
        path,
        durability="fast",
        embedder="static",
        deliver=False,
        external=ExternalSettings(**given),
    )
    db = Fed(start(settings), Caller())
    dice = random.Random(seed)
    ids: list[str] = []
    name = "chroma" if "chroma" in given else "neo4j"
    while True:
        write(db, dice, ids, 5)
        voice(len(ids))
        db.deliver(name)
        voice("delivered")


@pytest.mark.parametrize("rounds", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_our_own_process_is_killed_while_it_delivers(
    opened: Opener,
    service: tuple[str, Server],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rounds: int,
) -> None:
    monkeypatch.setattr(limits, "OUTBOX_LEASE_SECONDS", 0.3)
    name, server = service
    given = chosen(name, server.port)
    dice = random.Random(3)
    for round_ in range(rounds):
        with child(deliver_until_killed, str(tmp_path / "log.db"), given, round_) as worker:
            for _ in range(3):
                worker.hear()
            # In the middle of the next batch, as often as not.
            time.sleep(dice.random() * 0.05)
            worker.kill()

    db = opened(**given)
    until(lambda: _drained(db, name))

    assert db.outbox()["failed"] == 0
    assert db.verify(name).items > 0
    assert db.verify(name).different == 0


def _drained(db: Fed, name: str) -> bool:
    db.deliver(name)
    return db.outbox()["pending"] == 0


@pytest.mark.usefixtures("quick")
def test_several_workers_deliver_everything_once(opened: Opener, chroma: ChromaServer) -> None:
    given = chosen("chroma", chroma.port)
    databases = [opened(**given, deliver=True) for _ in range(3)]
    dice = random.Random(4)
    lists: list[list[str]] = [[] for _ in databases]

    events = 0
    for _ in range(5):
        for db, ids in zip(databases, lists, strict=True):
            events += write(db, dice, ids, 4)
    until(lambda: databases[0].outbox()["processed"] >= events)

    assert databases[0].outbox()["processed"] == events
    assert databases[0].outbox()["pending"] == 0
    assert databases[0].verify("chroma").different == 0


@pytest.mark.parametrize("kept", ["SQLite", "PostgreSQL"])
def test_what_another_process_writes_is_delivered_without_being_looked_for(
    kept: str,
    opened: Opener,
    chroma: ChromaServer,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place: dict[str, Any] = {"path": "log.db"}
    if kept == "PostgreSQL":
        address = request.getfixturevalue("postgres_address")
        place = {"path": address, "workspace": a_workspace()}
    monkeypatch.setattr(limits, "OUTBOX_POLL_SECONDS", 0.05)
    delivering = opened(**place, **chosen("chroma", chroma.port), deliver=True)
    delivering.concept("Ohm", certainty_score=50)
    until(lambda: delivering.outbox()["processed"] == 1)
    # From now on it would look for itself after a minute.
    monkeypatch.setattr(limits, "OUTBOX_POLL_SECONDS", 60.0)
    delivering.concept("Ampere", certainty_score=50)
    until(lambda: delivering.outbox()["processed"] == 2)

    opened(**place).concept("Volt", certainty_score=50)

    until(lambda: delivering.outbox()["processed"] == 3, seconds=10)


def test_a_refused_concept_holds_up_only_what_hangs_on_it_and_is_given_up(
    opened: Opener, neo4j: Neo4jServer
) -> None:
    clock = Clock(time.time_ns() // 1000)  # noqa: TID251 -- it goes on from now
    bolt = Bolt(neo4j.uri, "", "")
    db = opened(**chosen("neo4j", neo4j.port), adapters=Adapters(clock, salts(9)))
    db.deliver("neo4j")
    bolt.alone("CREATE CONSTRAINT taken FOR (c:Concept) REQUIRE c.topic IS UNIQUE")
    try:
        one = db.concept("One", topic="Taken", certainty_score=50)
        two = db.concept("Two", topic="Taken", certainty_score=50)
        three = db.concept("Three", certainty_score=50)
        db.relate(one, three)
        db.relate(two, three)
        db.deliver("neo4j")
        first = db.outbox()
        for _ in range(limits.OUTBOX_ATTEMPTS_MAX):
            clock.advance(limits.OUTBOX_DELAY_SECONDS_MAX * 2)
            db.deliver("neo4j")
        given_up = db.outbox()
        figures = db.knowledge.get_server_stats()
        (state,) = db.runtime.projections.status()
        differences = {each.what for each in db.verify("neo4j").differences}
    finally:
        bolt.alone("DROP CONSTRAINT taken")
        bolt.close()
    retried = db.runtime.projections.retry()
    db.deliver("neo4j")

    assert first == {"pending": 2, "processed": 3, "failed": 0}
    assert given_up == {"pending": 1, "processed": 3, "failed": 1}
    assert figures.status == "error"
    assert db.knowledge.get_server_stats().status == "healthy"
    assert state["rows"][0]["status"] == "failed"
    assert state["rows"][0]["attempts"] == limits.OUTBOX_ATTEMPTS_MAX
    assert "neo4j_error" in state["rows"][0]["error"]
    assert differences == {"missing"}
    assert retried == {"neo4j": 1}
    assert db.outbox() == {"pending": 0, "processed": 5, "failed": 0}
    assert db.verify("neo4j").different == 0
