"""The servers that errors name."""

from __future__ import annotations

import pytest

from stratagem.debugging.signatures.hosts import hosts


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Error 111 connecting to cache-01:6379. Connection refused.", ["cache-01"]),
        ("connect ECONNREFUSED 127.0.0.1:6379", ["localhost"]),
        ("dial tcp 10.0.0.7:5432: connect: connection refused", ["10.0.0.7"]),
        ("amqp://app:pw@queue.internal:5672/ refused", ["queue.internal"]),
        ("Cannot connect to ('db', 5432)", ["db"]),
        ("a.example.com:9092 and b.example.com:9092, a.example.com:9092", ["a.example.com"]),
        ("main.py:3306: note, port:5432, 10:53, Makefile:22, web:8123", []),
        ("address already in use :::5432", []),
    ],
)
def test_the_hosts_of_well_known_services_are_named(text: str, named: list[str]) -> None:
    found = hosts(text)

    assert found[: len(named)] == named
    assert bool(found) == bool(named)
