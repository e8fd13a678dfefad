"""Calls of the default tools as models really make them, and what became of one.

`wrong_calls.json` was written before anything was corrected. A call with `means` must do and answer
exactly what those arguments do, on a database that is equal to the byte, and say what it corrected;
a call with `refused` must write nothing. The test prints how many succeed.
"""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple

from stratagem.bootstrap import Runtime, Settings, start
from stratagem.errors import StratagemError
from stratagem.operation import CORRECTION, Caller
from stratagem.operations import DEFAULT_TOOLSETS, find, of_toolsets
from stratagem.parameters import check
from stratagem.storage.relational.store import Adapters
from tests.contracts.samples import Clock, salts

CALLS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("wrong_calls.json").read_text("utf-8")
)
DEFAULT_TOOLS = {each.name for each in of_toolsets(DEFAULT_TOOLSETS)}


class Seeded:
    """A database with something in it, the same each time: clock and salts are fixed."""

    def __init__(self) -> None:
        adapters = Adapters(Clock(), salts())
        settings = Settings(":memory:", embedder="none", adapters=adapters, zone=UTC)
        self.runtime: Runtime = start(settings)
        self.caller = Caller("model", authority="agent")
        self._ids: dict[str, str] = {}
        self.call("strata_store", {"key": "user/name", "value": "Ada of London"})
        city = {"key": "user/city", "value": {"city": "London"}, "tags": ["place"]}
        self.call("strata_store", city)
        self.call("strata_store", {**city, "value": {"city": "London", "since": 1843}})
        self.call("strata_store", {"key": "draft", "value": "to be thrown away"})
        self.call("strata_branch", {"action": "fork", "name": "risky"})
        self.call("strata_store", {"key": "draft", "value": "better", "branch": "risky"})
        incident = self.call(
            "add_incident",
            {
                "title": "No numpy",
                "error_signature": "ModuleNotFoundError: No module named 'numpy'",
                "steps": "pip install numpy",
                "env": {"os": "linux"},
                "worked": True,
            },
        )
        self._ids = {
            "$incident": incident["incident_id"],
            "$solution": incident["solution_id"],
        }

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.runtime.call(tool, self.fill(arguments), self.caller)

    def call_as_operator(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.runtime.call(tool, arguments, Caller("cli", authority="operator"))

    def fill(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {
            name: self._ids.get(each, each) if isinstance(each, str) else each
            for name, each in arguments.items()
        }

    def head(self) -> str:
        head: str = self.call("strata_status", {})["head"]
        return head


class Outcome(NamedTuple):
    """What became of a wrong call: `fault` is empty where it is as it must be."""

    succeeded: bool
    fault: str = ""


def outcome_of(wrong: dict[str, Any]) -> Outcome:
    sent = Seeded()
    with closing(sent.runtime):
        before = sent.head()
        try:
            answer = sent.call(wrong["tool"], wrong["sent"])
        except StratagemError as error:
            return Outcome(False, fault_of_refusal(wrong, error, before, sent.head()))
        return Outcome(True, fault_of_answer(wrong, answer, sent))


def fault_of_refusal(wrong: dict[str, Any], error: StratagemError, before: str, after: str) -> str:
    if before != after:
        return "something was written"
    if "means" in wrong:
        return f"refused: {error.message} {error.hint}"
    named = error.details["field"] == wrong["refused"]["field"]
    said = wrong["refused"]["says"] in f"{error.message} {error.hint}"
    return "" if named and said else f"says nothing that helps: {error.envelope()}"


def fault_of_answer(wrong: dict[str, Any], answer: dict[str, Any], sent: Seeded) -> str:
    if "means" not in wrong:
        return "was guessed"
    tool, meant = wrong["tool"], Seeded()
    with closing(meant.runtime):
        said = answer.pop(CORRECTION, "")
        if answer != meant.call(tool, wrong["means"]) or sent.head() != meant.head():
            return "is silently wrong"
    text = find(tool).describe({**answer, CORRECTION: said})
    if said:
        return "" if text.endswith(f"({said})") and "\n" not in said else "is not said in a line"
    # Only what every call may send goes without a word: a number as text.
    check(find(tool).parameters, sent.fill(wrong["sent"]), tool)
    return ""
