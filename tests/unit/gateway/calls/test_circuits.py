"""What a breaker stands for: a tool, or one of the hosts that callers choose."""

from __future__ import annotations

import pytest

import stratagem
from stratagem import limits
from stratagem.errors import ExecutionFailed
from stratagem.gateway.calls.breakers import Breakers


def test_each_host_is_a_circuit_of_its_own() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        reader = db.runtime.foundation.store.reader()
        tool = db.runtime.gateway.registry.standard.tools(reader)["api_caller"]

    for url, circuit in {
        "https://slow.example/a?b": "api_caller slow.example",
        "https://u:p@SLOW.example/": "api_caller slow.example",
        "http://slow.example:8080/": "api_caller slow.example:8080",
        "https://other.example/": "api_caller other.example",
        "http://[": "api_caller ",
    }.items():
        assert tool.circuit({"url": url}) == circuit
    assert tool.circuit({"url": "https://" + "x" * 5_000}).startswith("api_caller x")
    assert len(tool.circuit({"url": "https://" + "x" * 5_000})) == limits.CIRCUIT_CHARS_MAX


def test_breakers_of_chosen_names_are_bounded_and_keep_those_that_are_open() -> None:
    breakers = Breakers(lambda: 0.0)
    for _ in range(limits.BREAKER_FAILURES):
        breakers.fail("open", "timeout")

    for at in range(limits.BREAKERS_MAX + 10):
        breakers.fail(f"host {at}", "timeout")

    assert len(breakers.list()) == limits.BREAKERS_MAX
    with pytest.raises(ExecutionFailed):
        breakers.enter("open")
