"""The SDK takes `datetime` for moments and `timedelta` for durations."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

import stratagem
from stratagem import Stratagem
from stratagem.sdk.remote import Client
from tests.contracts.samples import START

NOW = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=START)


@pytest.fixture(params=["embedded", "remote"])
def db(request: pytest.FixtureRequest) -> Stratagem | Client:
    found: Stratagem | Client = request.getfixturevalue(request.param)
    return found


def test_a_moment_may_be_a_datetime_of_any_zone(db: Stratagem | Client) -> None:
    first = db.memory.store("city", "Oslo")
    db.memory.store("city", "Bergen")
    then = datetime.fromisoformat(first.timestamp)

    for moment in (then, then.astimezone(timezone(timedelta(hours=9)))):
        entry = db.memory.recall("city", as_of=moment)
        assert entry is not None
        assert entry.value == "Oslo"
    assert db.memory.recall("city", as_of=then - timedelta(microseconds=1)) is None


def test_a_datetime_without_a_zone_is_refused_with_what_to_write(db: Stratagem | Client) -> None:
    db.memory.store("city", "Oslo")

    with pytest.raises(stratagem.ValidationFailed) as refused:
        db.memory.recall("city", as_of=NOW.replace(tzinfo=None))

    assert refused.value.details["field"] == "as_of"
    assert "datetime.now(UTC)" in refused.value.hint


def test_a_ttl_may_be_a_timedelta_also_of_items(db: Stratagem | Client) -> None:
    db.memory.store("a", 1, ttl=timedelta(hours=1, microseconds=5))
    db.memory.store(
        items=[{"key": "b", "value": 1, "ttl": timedelta(days=1)}, {"key": "c", "value": 1}]
    )

    ends = [entry.expires for key in "abc" if (entry := db.memory.recall(key))]

    assert ends[0] == (NOW + timedelta(hours=1, microseconds=5)).isoformat().replace("+00:00", "Z")
    assert ends[1] is not None
    assert datetime.fromisoformat(ends[1]) == NOW + timedelta(days=1)
    assert ends[2] is None


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(seconds=-1)])
def test_a_timedelta_that_is_no_length_is_refused(db: Stratagem | Client, ttl: timedelta) -> None:
    with pytest.raises(stratagem.ValidationFailed) as refused:
        db.memory.store("a", 1, ttl=ttl)

    assert refused.value.details["field"] == "ttl"


def test_every_system_takes_a_datetime(embedded: Stratagem) -> None:
    stored = embedded.memory.store("city", "Oslo")
    then = datetime.fromisoformat(stored.timestamp)

    assert embedded.knowledge.get_recent_concepts(as_of=then).results == []
    assert embedded.debugging.ranked_solutions("boom", {"os": "a"}, as_of=then).incidents == []
    assert embedded.gateway.executions(from_=NOW, to=NOW + timedelta(0)) == []
    assert len(embedded.memory.search("Oslo", as_of=then)) == 1


def test_a_moment_without_a_time_in_utc_is_refused(embedded: Stratagem) -> None:
    west = timezone(timedelta(hours=-12))

    with pytest.raises(stratagem.ValidationFailed) as refused:
        embedded.memory.recall("city", as_of=datetime.max.replace(tzinfo=west))

    assert refused.value.details["field"] == "as_of"


def test_a_period_of_validity_may_be_of_dates(db: Stratagem | Client) -> None:
    knowledge = db.knowledge
    ann = knowledge.create_concept(
        "Ann leads", "Ann leads Acme.", valid_from=date(2015, 1, 1), valid_to=NOW
    )
    knowledge.create_concepts(
        [{"name": "Bo leads", "explanation": "Bo leads Acme.", "valid_from": date(2021, 1, 1)}],
        relationships=[
            {
                "source": "Bo leads",
                "target": "Ann leads",
                "type": "supersedes",
                "valid_from": NOW,
            }
        ],
    )

    found = knowledge.get_recent_concepts(valid_at=date(2019, 1, 1)).results
    assert [each.name for each in found] == ["Ann leads"]
    knowledge.update_concept(ann.concept_id, valid_to=date(2018, 1, 1))
    assert knowledge.get_recent_concepts(valid_at=date(2019, 1, 1)).results == []


def test_a_time_of_an_item_is_named_where_it_is_wrong(db: Stratagem | Client) -> None:
    fine = {"name": "Ann", "explanation": "Ann leads Acme."}
    naive = {"name": "Bo", "explanation": "Bo leads.", "valid_from": datetime(2021, 1, 1)}  # noqa: DTZ001

    with pytest.raises(stratagem.ValidationFailed) as refused:
        db.call("create_concepts", {"concepts": [fine, naive]})

    assert refused.value.details["field"] == "concepts[1].valid_from"
