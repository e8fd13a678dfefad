from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem.demo import make_demo
from stratagem.errors import ValidationFailed
from tests.manifest import proves

END = 1_790_000_000_000_000


def told(path: Path) -> dict[str, Any]:
    """Return what a database says of itself."""
    with stratagem.open(str(path)) as db:
        return {
            "entries": db.call(
                "strata_list", {"namespace": "harbor", "order": "key", "limit": 500}
            )["results"],
            "problems": [
                each["title"] for each in db.call("list_incidents", {"limit": 100})["results"]
            ],
            "graph": db.call("strata_branch_graph", {})["merges"],
            "waiting": [each["tool"] for each in db.call("approvals_list", {})["approvals"]],
        }


@proves("demo:month")
def test_it_is_the_same_month_each_time(tmp_path: Path) -> None:
    days: list[tuple[int, int]] = []

    make_demo(str(tmp_path / "one.db"), END, lambda done, of: days.append((done, of)))
    make_demo(str(tmp_path / "two.db"), END)

    one, two = told(tmp_path / "one.db"), told(tmp_path / "two.db")
    times = (
        [entry.pop("timestamp") for entry in one["entries"]],
        [entry.pop("timestamp") for entry in two["entries"]],
    )
    assert [each[:13] for each in times[0]] == [each[:13] for each in times[1]]
    assert [entry["value"] for entry in one["entries"]] == [
        entry["value"] for entry in two["entries"]
    ]
    assert (one["problems"], one["waiting"]) == (two["problems"], two["waiting"])
    assert one["waiting"] == ["free_berths"]
    assert len(one["graph"]) == 1
    assert days[-1] == (30, 30)


@proves("demo:month")
def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.db"
    path.write_text("mine", "utf-8")

    with pytest.raises(ValidationFailed, match="exists already"):
        make_demo(str(path), END)

    assert path.read_text("utf-8") == "mine"


@proves("demo:month")
def test_nothing_but_the_database_is_left_behind(tmp_path: Path) -> None:
    make_demo(str(tmp_path / "demo.db"), END)

    assert not list(tmp_path.glob("*port*"))
    with stratagem.open(str(tmp_path / "demo.db")) as db:
        answer = db.call(
            "tool_execute",
            {"toolName": "estimate_arrival", "arguments": {"nautical_miles": 90, "knots": 9}},
        )
    assert answer["result"] == {"hours": 10.0}


def test_a_month_that_was_cut_short_leaves_nothing(tmp_path: Path) -> None:
    def stop(done: int, _of: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_demo(str(tmp_path / "one.db"), END, stop)

    assert list(tmp_path.iterdir()) == []
