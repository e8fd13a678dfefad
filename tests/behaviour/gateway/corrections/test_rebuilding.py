"""What corrections know is made from the log alone: on either store, on a branch, in a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.gateway.workshop import Answer, Workshop, workshop
from tests.manifest import proves
from tests.postgres import a_workspace

Places = tuple[str, str]
# Figures of time differ from run to run, and those of this process from start to start.
_VOLATILE = {
    "averageLatency", "averageCorrectionTime", "start", "end", "uptime", "lastRestart", "cache",
    "timestamp", "processingTime", "version", "teacher",
}  # fmt: skip


@pytest.fixture(params=["sqlite", "postgres"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    """Two workspaces of one server, or two files."""
    if request.param == "sqlite":
        return str(tmp_path / "one.db"), str(tmp_path / "two.db")
    address = request.getfixturevalue("postgres_address")
    return f"{address}#{a_workspace()}", f"{address}#{a_workspace()}"


def busy(shop: Workshop, branch: str) -> None:
    """Have corrections hold, fall and be refused on a branch, and something taught."""
    more: Any = {"branch": branch}
    for number in range(4):
        shop.run("send", {"recipient": "bob", "amount": f"{number}"}, **more)
        shop.fails("search", {"needle": f"the {number}"}, **more)
        shop.run("search", {"query": f"the {number}"}, **more)
        shop.settle()
    for number in range(4):
        shop.fails("search", {"query": f"unlucky {number}", "limit": "3"}, f"c{number}", **more)
        shop.settle()


def known(shop: Workshop, branch: str) -> Answer:
    """Return all that can be asked about corrections."""
    answers = {
        "status": shop.ask("auto_correction_status", branch=branch),
        "insights": shop.ask("auto_correction_insights", branch=branch, includeFailures=True),
        "patterns": shop.ask("auto_correction_patterns", branch=branch),
        "backup": shop.ask("auto_correction_patterns", action="backup", branch=branch),
        "profile": shop.ask(
            "auto_correction_patterns", action="profile", toolName="send", branch=branch
        ),
        "diagnosis": shop.ask(
            "error_diagnose",
            toolName="search",
            parameters={"needle": "x", "limit": "3"},
            branch=branch,
        ),
    }
    kept: Answer = _steady(answers)
    return kept


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _steady(each) for name, each in value.items() if name not in _VOLATILE}
    return [_steady(each) for each in value] if isinstance(value, list) else value


@proves("lesson:log")
def test_a_rebuild_and_a_restart_change_no_answer(places: Places) -> None:
    with workshop(places[0]) as first:
        first.ask("strata_branch", action="fork", name="trial")
        busy(first, "trial")
        first.ask(
            "auto_correction_configure",
            settings={"restrictedTools": ["switch"]},
            toolName="send",
            branch="trial",
        )
        before = known(first, "trial")
        untouched = known(first, "default")
        first.rebuild()
    with workshop(places[0]) as second:
        assert known(second, "trial") == before
        assert known(second, "default") == untouched
    with workshop(places[1]) as elsewhere:
        assert known(elsewhere, "default") == untouched

    assert before["insights"]["overallMetrics"]["failedCorrections"] >= 2
    assert before["insights"]["overallMetrics"]["successfulCorrections"] == 4
    assert before["patterns"]["total"] == 3
    assert before["status"]["toolSettings"]["send"]["restrictedTools"] == ["switch"]
    assert untouched["insights"]["overallMetrics"]["totalCorrections"] == 0
    assert untouched["patterns"]["total"] == 0


@proves("policy:log")
def test_a_policy_holds_at_once_for_all_who_have_the_database_open(places: Places) -> None:
    wrong = {"recipient": "bob", "amount": "12"}
    with workshop(places[0]) as one, workshop(places[0]) as other, workshop(places[1]) as elsewhere:
        for shop in (one, other, elsewhere):
            shop.run("send", wrong)
            shop.ask("error_diagnose", toolName="send", parameters=wrong)

        one.ask("auto_correction_configure", settings={"restrictedTools": ["send"]})

        found = other.ask("error_diagnose", toolName="send", parameters=wrong)
        assert found["autoCorrection"]["appliedCorrection"] is None
        one.ask("auto_correction_configure", reset=True)
        assert other.run("send", wrong)["result"]["amount"] == 12
        other.settle()
        other.ask("error_diagnose", toolName="send", parameters=wrong)
        one.ask("auto_correction_configure", settings={"restrictedTools": ["send"]})
        assert "not corrected" in other.fails("send", wrong).details["withheld"]
        assert elsewhere.run("send", wrong)["result"]["amount"] == 12
