"""A log that stays readable, and limits of files that are told."""

from __future__ import annotations

import logging
import resource
import subprocess
import sys

from stratagem import limits
from stratagem.surfaces.server.connections import connection_capacity
from stratagem.surfaces.server.repeated_warnings import RepeatedWarnings


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def written(filtering: RepeatedWarnings, words: str, *given: object) -> str | None:
    """Return what is written of a warning, if it is."""
    record = logging.LogRecord("a", logging.WARNING, __file__, 1, words, given, None)
    return record.getMessage() if filtering.filter(record) else None


def test_a_warning_that_repeats_is_written_a_few_times_and_then_counted() -> None:
    clock = Clock()
    filtering = RepeatedWarnings(clock)

    lines = [written(filtering, "connection %s was refused", number) for number in range(1_000)]
    other = written(filtering, "something else")
    clock.now += limits.WARNINGS_ALIKE_SECONDS
    later = written(filtering, "connection %s was refused", 1_000)

    assert len([line for line in lines if line]) == limits.WARNINGS_ALIKE_MAX
    assert lines[0] == "connection 0 was refused"
    assert "only counted" in str(lines[limits.WARNINGS_ALIKE_MAX - 1])
    assert other == "something else"
    assert later == "connection 1000 was refused (and 995 more like it, in 30 seconds)"


def test_enough_files_are_asked_for() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))

        assert connection_capacity(500) == 500
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 628
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_where_there_are_not_enough_files_some_are_left_for_the_rest() -> None:
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))\n"
        "from stratagem.surfaces.server.connections import connection_capacity\n"
        "print(connection_capacity(2000))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "768"
    assert "1,024 files" in done.stderr
    assert "LimitNOFILE" in done.stderr
