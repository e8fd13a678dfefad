"""Run the official conformance suite and the official inspector; print a table.

`python -m tests.conformance.checks NODE_MODULES`; `run.sh` installs what it needs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.conformance.scenarios import NOT_RUN, SCENARIOS_2025, SCENARIOS_2026

SUITES = {"conformance-2025": SCENARIOS_2025, "conformance-2026": SCENARIOS_2026}
SECONDS_MAX = 60

# Each tool once, over stdio, in one database; then a resource, a prompt, and an error.
CALLS: list[tuple[str, list[str], str]] = [
    ("strata_store", ["key=city", "value=Oslo"], '"status": "created"'),
    ("strata_recall", ["key=city"], '"value": "Oslo"'),
    ("strata_search", ["query=Oslo"], '"key": "city"'),
    ("strata_log", ["event=note", "data=moved"], '"sequence"'),
    ("strata_branch", ["action=fork", "name=trial"], '"name": "trial"'),
    ("strata_history", ["key=city"], '"results"'),
    ("strata_forget", ["key=city"], '"deleted": true'),
    ("strata_status", [], '"branches": 2'),
]
REQUESTS: list[tuple[str, list[str], str]] = [
    ("tools/list", ["--strict"], '"strata_status"'),
    ("resources/list", [], "stratagem://status"),
    ("resources/read", ["--uri", "stratagem://history/default/city"], "Oslo"),
    ("prompts/get", ["--prompt-name", "recall_context", "--prompt-args", "topic=a"], "strata_s"),
]
FAILING = ("strata_recall", ["key=city", "branch=nowhere"], '"error": "branch_not_found"')


class Row(NamedTuple):
    """What came of one check."""

    group: str
    name: str
    passed: int
    failed: int
    not_run: int = 0
    words: str = ""


def main(modules: Path) -> int:
    """Run everything; return the exit status."""
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder) / "http.db") as url:
        rows = [row for suite in SUITES for row in _suite(modules / suite, suite, url, folder)]
        rows += _inspections(str(Path(folder) / "stdio.db"))
    sys.stdout.write(_table(rows) + "\n")
    return 1 if any(row.failed for row in rows) else 0


@contextmanager
def _server(database: Path) -> Iterator[str]:
    """Give the address of `stratagem serve` on a database of its own."""
    command = ["stratagem", "serve", "--db", str(database), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found is not None
            yield found[0].replace("127.0.0.1", "localhost")
        finally:
            server.terminate()


def _suite(package: Path, suite: str, url: str, folder: str) -> Iterator[Row]:
    entry = ["node", str(package / "dist" / "index.js")]
    known = _run([*entry, "list"]).stdout.partition("Client scenarios")[0]
    names = re.findall(r"^\s+- (\S+)", known, re.MULTILINE)
    for name in names:
        if name not in SUITES[suite]:
            reason = next((NOT_RUN[each] for each in NOT_RUN if name.startswith(each)), None)
            # A scenario that nobody has judged yet fails, so that somebody will.
            yield Row(suite, name, 0, int(reason is None), int(reason is not None), reason or "new")
            continue
        results = Path(folder) / suite / name
        done = _run([*entry, "server", "--url", url, "--scenario", name, "-o", str(results)])
        yield _judge(suite, name, results, done)


def _judge(suite: str, name: str, results: Path, done: subprocess.CompletedProcess[str]) -> Row:
    checks: list[dict[str, Any]] = [
        check for file in results.rglob("checks.json") for check in json.loads(file.read_text())
    ]
    passed = sum(check["status"] == "SUCCESS" for check in checks)
    failures = [check for check in checks if check["status"] == "FAILURE"]
    failed = [check for check in failures if not (check.get("details") or {}).get("untestable")]
    words = "; ".join(str(check.get("errorMessage")) for check in failed)
    if not checks:
        return Row(suite, name, 0, 1, 0, (done.stdout + done.stderr)[-300:])
    return Row(suite, name, passed, len(failed), len(checks) - passed - len(failed), words)


def _inspections(database: str) -> Iterator[Row]:
    for name, pairs, expected in CALLS:
        yield _inspect(database, name, _call(name, pairs), expected)
    for name, arguments, expected in REQUESTS:
        yield _inspect(database, name, ["--method", name, *arguments], expected)
    name, pairs, expected = FAILING
    yield _inspect(database, f"{name}, failing", _call(name, pairs), expected, fails=True)


def _call(name: str, pairs: list[str]) -> list[str]:
    arguments = [part for pair in pairs for part in ("--tool-arg", pair)]
    return ["--method", "tools/call", "--tool-name", name, *arguments]


def _inspect(
    database: str, name: str, arguments: list[str], expected: str, *, fails: bool = False
) -> Row:
    server = ["stratagem", "mcp", "--db", database]
    done = _run(["mcp-inspector", "--cli", *arguments, "--", *server])
    good = expected in done.stdout and (done.returncode != 0) == fails
    words = "" if good else (done.stdout + done.stderr)[-300:]
    return Row("inspector, stdio", name, int(good), int(not good), 0, words)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


def _table(rows: list[Row]) -> str:
    """Return what was run line by line, and what was not by its reason."""
    run = [row for row in rows if row.passed or row.failed]
    left_out: dict[str, set[str]] = {}
    for row in rows:
        if row not in run:
            left_out.setdefault(row.words, set()).add(row.name)
    lines = [f"{'':18} {'':44} {'passed':>6} {'failed':>6} {'not run':>7}"]
    lines += [
        f"{row.group:18} {row.name:44} {row.passed:6} {row.failed:6} {row.not_run:7}  {row.words}"
        for row in run
    ]
    total = [sum(column) for column in zip(*(row[2:5] for row in run), strict=True)]
    lines += [f"{'total':63} {total[0]:6} {total[1]:6} {total[2]:7}", "", "Scenarios not run:"]
    return "\n".join(
        [*lines, *(f"  {why}: {', '.join(sorted(left_out[why]))}" for why in left_out)]
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
