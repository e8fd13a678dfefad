"""The parts that need no server: waiting, health, settings, leases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stratagem import limits
from stratagem.errors import ServiceUnavailable, StorageBusy, ValidationFailed
from stratagem.projections.backoff import delay
from stratagem.projections.health import Health
from stratagem.projections.leases import Lease
from stratagem.projections.settings import ExternalSettings
from stratagem.storage.contract import Store, WriteRequest
from tests.contracts.backends import open_sqlite_file
from tests.contracts.samples import NOTE, Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Store:
    store = open_sqlite_file(tmp_path, clock)
    store.write(lambda t: t.outbox.register("elsewhere", (NOTE,)), WriteRequest("test"))
    return store


def test_waits_double_up_to_a_bound_and_are_spread() -> None:
    middle = [delay(attempts, lambda: 0.5) / 1e6 for attempts in range(1, 12)]

    assert middle[:4] == [0.5, 1.0, 2.0, 4.0]
    assert middle[-1] == limits.OUTBOX_DELAY_SECONDS_MAX
    assert delay(1, lambda: 0.0) / 1e6 == 0.25
    assert delay(1, lambda: 0.999) / 1e6 == pytest.approx(0.75, abs=0.01)
    assert delay(10_000, lambda: 0.5) / 1e6 == limits.OUTBOX_DELAY_SECONDS_MAX


def test_health_asks_only_now_and_then() -> None:
    asked: list[float] = []
    now = [0.0]
    down = [False]

    def probe() -> None:
        asked.append(now[0])
        if down[0]:
            raise ServiceUnavailable("gone")

    health = Health(probe, lambda: now[0])

    def at(moment: float) -> str | None:
        now[0] = moment
        return health.trouble()

    assert [at(0), at(1), at(4.9)] == [None, None, None]
    down[0] = True
    assert [at(5), at(5.5)] == ["gone", "gone"]
    down[0] = False
    assert at(6) is None
    assert asked == [0, 5, 6]
    health.learn(ServiceUnavailable("seen by another"))
    assert at(6.5) == "seen by another"
    assert at(7.5) is None


def test_only_two_settings_choose_anything() -> None:
    read = ExternalSettings.from_environment

    assert read({"NEO4J_URI": "bolt://x", "CHROMA_PERSIST_DIRECTORY": "/y"}).graph == "built-in"
    assert read({"STRATAGEM_GRAPH": "Neo4j", "NEO4J_PASSWORD": "s"}).graph == "neo4j"
    assert read({"STRATAGEM_VECTORS": "chroma"}).vectors == "chroma"
    aura = {"NEO4J_USERNAME": "aura", "NEO4J_DATABASE": "facts"}
    assert (read(aura).neo4j_user, read(aura).neo4j_database) == ("aura", "facts")
    assert read(aura | {"NEO4J_USER": "own"}).neo4j_user == "own"
    assert read({"EMBEDDING_MODEL": "nomic-embed"}).unknown_embedder == "nomic-embed"
    assert read({"EMBEDDING_MODEL": "static"}).unknown_embedder is None
    assert "s3cret" not in repr(read({"NEO4J_PASSWORD": "s3cret"}))
    assert read({"CHROMA_PERSIST_DIRECTORY": "/y"}).chroma == "/y"
    assert read({"CHROMA_URL": "http://z", "CHROMA_PERSIST_DIRECTORY": "/y"}).chroma == "http://z"
    with pytest.raises(ValidationFailed, match="STRATAGEM_VECTORS"):
        read({"STRATAGEM_VECTORS": "neo4j"})


@pytest.mark.parametrize(
    ("model", "embedder"),
    [
        ("sentence-transformers/all-MiniLM-L6-v2", "minilm"),
        ("all-MiniLM-L6-v2", "minilm"),
        ("static", "static"),
        ("text-embedding-3-small", None),
        ("", None),
    ],
)
def test_the_name_of_a_model_is_understood_or_left_alone(model: str, embedder: str | None) -> None:
    assert ExternalSettings.from_environment({"EMBEDDING_MODEL": model}).embedder == embedder


def test_a_lease_is_waited_for_and_ends_by_itself(store: Store, clock: Clock) -> None:
    one, two = Lease(store, "elsewhere", "one"), Lease(store, "elsewhere", "two")
    assert one.take()

    slept: list[float] = []
    with pytest.raises(StorageBusy):
        two.wait(1, sleep=slept.append)
    two.wait(60, sleep=_passing(clock, slept))

    assert not one.take()
    two.give_back()
    assert one.take()
    assert sum(slept[4:]) == pytest.approx(limits.OUTBOX_LEASE_SECONDS, abs=1)


def _passing(clock: Clock, slept: list[float]) -> Callable[[float], None]:
    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.advance(seconds)

    return sleep
