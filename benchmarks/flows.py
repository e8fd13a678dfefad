"""How much of the code a call goes through: functions, files and calls of each main flow.

`python -m benchmarks.flows`. The third call of each is traced, in every thread, so that what is
made once is not counted. A call begins at the table of operations, below the surfaces.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import stratagem
from benchmarks.upstream import SERVER

__all__ = ["main"]

_ROOT: Final = str(Path(stratagem.__file__).parent)
_WARM_UP: Final = 2
_ENVIRONMENT: Final = {"os": "linux", "python": "3.12"}


class Trace:
    """The functions of the package that were called while it was on.

    It is set before any thread starts, for Python 3.11 sets none for those that run already.
    """

    def __init__(self) -> None:
        self.is_on = False
        self.calls = 0
        self.codes: set[CodeType] = set()
        threading.setprofile(self)
        sys.setprofile(self)

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        if self.is_on and event == "call" and frame.f_code.co_filename.startswith(_ROOT):
            self.calls += 1
            self.codes.add(frame.f_code)

    def run(self, flow: Callable[[int], Any], turn: int) -> None:
        self.calls, self.codes, self.is_on = 0, set(), True
        flow(turn)
        self.is_on = False


def _flows(db: stratagem.Stratagem) -> dict[str, Callable[[int], Any]]:
    """Return each flow as a function of how often it ran before."""
    incident = db.call(
        "add_incident",
        {
            "title": "numpy is missing",
            "error_signature": "ModuleNotFoundError: No module named 'numpy'",
            "steps": "pip install numpy",
            "env": _ENVIRONMENT,
            "worked": True,
        },
    )
    one, other = (
        db.call("create_concept", {"name": name, "explanation": f"What {name} is."})["concept_id"]
        for name in ("Vectors", "Matrices")
    )

    def relate(turn: int) -> Any:
        kinds = ("prerequisite", "relates_to", "includes")
        given = {"source_id": one, "target_id": other, "relationship_type": kinds[turn]}
        return db.call("create_relationship", given)

    def merge(turn: int) -> Any:
        name = f"trial-{turn}"
        db.call("strata_store", {"key": f"trial/{turn}", "value": turn, "branch": name})
        return db.call("strata_branch", {"action": "merge", "source": name})

    for turn in range(_WARM_UP + 1):
        db.call("strata_branch", {"action": "fork", "name": f"trial-{turn}"})
    return {
        "recall": lambda _turn: db.call("strata_recall", {"key": "city"}),
        "store": lambda turn: db.call("strata_store", {"key": f"k{turn}", "value": "some words"}),
        "search": lambda _turn: db.call("strata_search", {"query": "some words"}),
        "corrected call of an upstream tool": lambda _turn: db.call(
            "tool_execute", {"toolName": "add", "arguments": {"a": "1", "b": "2"}}
        ),
        "record an outcome": lambda _turn: db.call(
            "record_outcome",
            {"solution_id": incident["solution_id"], "worked": True, "env": _ENVIRONMENT},
        ),
        "create a relationship": relate,
        "merge": merge,
    }


def main() -> int:
    """Trace each flow, and print what it went through."""
    trace = Trace()
    print(f"{'flow':36}{'calls':>8}{'functions':>11}{'files':>8}")
    with tempfile.TemporaryDirectory() as folder, stratagem.open(Path(folder) / "m.db") as db:
        db.call("strata_store", {"key": "city", "value": "Oslo"})
        db.call("server_add", {"name": "up", "command": sys.executable, "args": [SERVER]})
        for name, flow in _flows(db).items():
            for turn in range(_WARM_UP):
                flow(turn)
            trace.run(flow, _WARM_UP)
            files = {code.co_filename for code in trace.codes}
            print(f"{name:36}{trace.calls:8,}{len(trace.codes):11,}{len(files):8,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
