"""What is measured in a process of its own: `python -m benchmarks.child JOB OURS PLAIN KEY`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Final

_QUERY: Final = "schedule"


def _open(ours: str, _plain: str, key: str) -> dict[str, float]:
    begin = perf_counter()
    from stratagem import open as open_database

    imported = perf_counter()
    with open_database(ours, durability="fast", embedder="none") as db:
        assert db.memory.recall(key) is not None
        return {"import": imported - begin, "open": perf_counter() - imported}


def _open_plain(_ours: str, plain: str, key: str) -> dict[str, float]:
    begin = perf_counter()
    from benchmarks.plain import PlainSqlite

    imported = perf_counter()
    PlainSqlite(Path(plain)).get(key)
    return {"import": imported - begin, "open": perf_counter() - imported}


def _memory(ours: str, _plain: str, _key: str) -> dict[str, float]:
    import stratagem

    with stratagem.open(ours, durability="fast") as db:
        assert db.memory.search(_QUERY).mode == "hybrid"
        return {"megabytes": _resident()}


def _memory_plain(_ours: str, plain: str, _key: str) -> dict[str, float]:
    from benchmarks.plain import PlainSqlite

    database = PlainSqlite(Path(plain))
    database.match(_QUERY)
    return {"megabytes": _resident()}


def _resident() -> float:
    import psutil  # type: ignore[import-untyped]

    return float(psutil.Process().memory_info().rss) / 1e6


_JOBS: Final[dict[str, Callable[[str, str, str], dict[str, float]]]] = {
    "open": _open,
    "open-plain": _open_plain,
    "memory": _memory,
    "memory-plain": _memory_plain,
}


if __name__ == "__main__":
    job, *arguments = sys.argv[1:]
    measured = _JOBS[job](*arguments)

    # Written without a library, so that nothing but the job is imported before it.
    print("{" + ", ".join(f'"{name}": {value!r}' for name, value in measured.items()) + "}")
