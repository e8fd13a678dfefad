"""15. Administrators' acts and refusals are events of the chain, which shows what was tampered with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import apsw
import orjson
import pytest

from stratagem.access.service import Access
from stratagem.operation import Caller
from tests.security.house import SURFACES, House, make_token, opened, revoke, serving
from tests.surfaces.cli.console import Cli
from tests.surfaces.serving import eventually


def audit(path: Path) -> list[dict[str, Any]]:
    with opened(path) as runtime:
        return Access(runtime.foundation, Caller("test"), os.urandom).audit(1000)


def doctor(path: Path) -> dict[str, Any]:
    done = Cli(path).run("--json", "doctor")
    told: dict[str, Any] = orjson.loads(done.stdout)
    assert (done.exit_code == 0) is told["healthy"]
    return told


def await_refusals(path: Path, count: int) -> None:
    """Wait until so many are written; a server counts them for a second first."""
    eventually(lambda: sum(each["count"] for each in refusals(path)) == count)


def refusals(path: Path) -> list[dict[str, Any]]:
    return [each for each in audit(path) if each["event"] == "AuthenticationRefused"]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a database whose server has seen acts and refusals."""
    path = tmp_path_factory.mktemp("audited") / "memory.db"
    secret = make_token(path, "boss", "*:admin")
    make_token(path, "gone", "*:read")
    revoke(path, "gone")
    with serving(path) as house:
        house.tokens = {"boss": secret, "wrong": "strat_wrong"}
        house.call("rest", "boss", "strata_store", {"key": "k", "value": "v"})
        for surface in SURFACES:
            house.call(surface, "wrong", "strata_status", {})
            house.call(surface, "boss", "cache_configure", {"enabled": True})
            house.call(surface, "boss", "strata_purge", {"key": f"k {surface}"})
        await_refusals(path, 3)
    with opened(path) as runtime:
        # A log that was cut short is whole as far as it goes; that takes `doctor --expect`.
        runtime.call("strata_store", {"key": "last", "value": 1}, Caller("test"))
    return path


def test_every_refusal_is_an_event_and_holds_no_token(audited: Path) -> None:
    parts = [each for event in refusals(audited) for each in event["refusals"]]

    assert sum(each["count"] for each in parts) == 3
    assert {each["reason"] for each in parts} == {"unknown"}
    assert {each["way"] for each in parts} == {
        "POST /mcp",
        "POST /api/memory/strata_status",
        "socket connect",
    }
    assert "strat_wrong" not in str(parts)


def test_every_administrative_act_is_an_event(audited: Path) -> None:
    acts = [each for each in audit(audited) if each["event"] == "ActPerformed"]

    assert {(each["operation"], each["actor"]) for each in acts} == {
        ("cache_configure", "token:boss"),
        ("strata_purge", "token:boss"),
    }
    assert len(acts) == 6


def test_making_and_ending_tokens_are_events(audited: Path) -> None:
    made = [(each["event"], each["name"]) for each in audit(audited) if "name" in each]

    assert made == [("TokenRevoked", "gone"), ("TokenCreated", "gone"), ("TokenCreated", "boss")]
    assert "hash" not in str(audit(audited))


def test_a_flood_of_wrong_tokens_is_counted_and_not_written_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    make_token(path, "boss", "*:admin")
    with serving(path) as house:
        client = house.client()
        statuses = [
            client.get("/api/mcp/tools", headers={"authorization": f"Bearer strat_{n}"}).status_code
            for n in range(64)
        ]
        await_refusals(path, 64)

    events = refusals(path)
    assert sum(each["count"] for each in events) == 64
    assert len(events) <= 6
    assert set(statuses) == {401, 429}


TAMPERING = {
    "changed": "UPDATE events SET actor = 'somebody' WHERE seq = ?",
    "removed": "DELETE FROM events WHERE seq = ?",
}


@pytest.mark.parametrize("what", TAMPERING)
@pytest.mark.parametrize("kind", ["TokenRevoked", "AuthenticationRefused", "ActPerformed"])
def test_tampering_is_shown_by_the_doctor(
    audited: Path, tmp_path: Path, what: str, kind: str
) -> None:
    copy = tmp_path / "copy.db"
    with opened(audited, read_only=True) as runtime:
        sequence = next(e.sequence for e in runtime.foundation.store.log() if e.kind == kind)
    source, target = apsw.Connection(str(audited)), apsw.Connection(str(copy))
    with target.backup("main", source, "main") as backup:
        backup.step()
    source.close()
    target.execute("PRAGMA foreign_keys = OFF")
    target.execute(TAMPERING[what], (sequence,))
    target.close()

    told = doctor(copy)

    assert not told["healthy"]
    assert not all(each["repairable"] for each in told["findings"])


def test_the_untouched_log_is_healthy(audited: Path, house: House) -> None:
    assert house.tools("admin")
    assert doctor(audited)["healthy"]
