"""Plain lines mean the same, whether they are read with or without the library for them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem.errors import StratagemError
from stratagem.surfaces.cli.app import root_command
from stratagem.surfaces.cli.command_names import COMMANDS
from stratagem.surfaces.cli.operation_commands import OperationRun, find_operation
from stratagem.surfaces.cli.plain_lines import read_plain_line, run_plain_line
from stratagem.surfaces.cli.session import Session
from tests.surfaces.cli.console import Cli

OF_TABLE = [name for name, module in COMMANDS.items() if module is None]
VALUES = {str: ("two words", "a=b"), int: ("007",)}
PLAIN = (
    "recall city",
    "recall city oslo",
    "recall city --as-of @1",
    "recall --as-of=@1 city",
    "--db other.db recall city",
    "--db=other.db --json recall city",
    "recall city --db other.db --branch main --namespace work --read-only --json",
    "--namespace work recall city --namespace other",
    "store city Oslo --tag a --tag b --tags=c",
    'store city {"a":1} --ttl 1h',
    "search what rains in oslo --k 3",
    "search rain --kinds entry,event --kind concept",
    "log note rain --session s",
    "list",
    "list us --limit 5",
    "events --limit 5",
    "history city",
    "status",
    "tags --json",
    "forget city",
    "store city",
)
NOT_PLAIN = (
    f"search city --k {'9' * 5_000}",
    "",
    "--help",
    "--version",
    "forget",
    "recall --help",
    "recall city -h",
    "recall city --raw",
    "recall city --as-o @1",
    "recall city --as-of",
    "recall city --as-of --json",
    "recall city --as-of @1 --as-of @2",
    "recall city --unknown",
    "recall city --json=yes",
    "recall -- city",
    "recall --key city",
    "log note",
    "store city -",
    "store city Oslo more",
    "list us --limit five",
    "list us --limit -1",
    "search rain -k 3",
    "-C folder recall city",
    "--durability fast recall city",
    "recall city --durability fast",
    "--db recall",
    "--unknown recall city",
    "text recall city",
    "nothing city",
    "mcp",
    "branch list",
    "ranked-solutions boom",
)


class Runs:
    """What operations were to be run with, in place of running them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self._root = root_command()

        def note(run: OperationRun, session: Session, given: Mapping[str, Any], extra: Any) -> None:
            try:
                arguments: Any = run.parameters.read(session, given)
            except StratagemError as error:
                arguments = error.envelope()
            self.seen.append((run.operation.name, session.options, arguments, dict(extra)))

        monkeypatch.setattr(OperationRun, "run", note)

    def by_library(self, words: Sequence[str]) -> tuple[Any, ...]:
        """Return what the library makes of a line."""
        with pytest.raises(SystemExit) as ended:
            self._root.main(list(words), prog_name="stratagem")
        assert ended.value.code == 0, words
        return self.seen.pop()

    def by_plain_line(self, words: Sequence[str]) -> tuple[Any, ...] | None:
        """Return what is read without it; None where that is left to the library."""
        code = run_plain_line(words)
        assert code in {0, None}
        return None if code is None else self.seen.pop()


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in list(os.environ):
        if name.startswith("STRATAGEM_"):
            monkeypatch.delenv(name)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(monkeypatch)


@pytest.mark.parametrize("line", PLAIN)
def test_a_plain_line_means_what_the_library_makes_of_it(runs: Runs, line: str) -> None:
    read = runs.by_plain_line(line.split())

    assert read is not None
    assert read == runs.by_library(line.split())


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_everything_else_is_left_to_the_library(line: str) -> None:
    assert read_plain_line(line.split(), {}) is None


def lines_of(command: str) -> Iterator[list[str]]:
    """Yield lines with each option of a command, in each way to write it."""
    found = find_operation(command)
    assert found is not None
    run = OperationRun(*found)
    words = [f"word{place}" for place, _ in enumerate(run.hint.positional)]
    yield [command, *words]
    yield [command, *words, "more"]
    yield [command, *words[:-1]]
    for described in run.parameters.described.values():
        for flag in "/".join(run.parameters.flags_of(described)).split("/"):
            yield [command, flag, *words]
            yield [command, *words, flag]
            yield [command, *words, flag, flag]
            for value in VALUES.get(described.type, VALUES[str]):
                yield [command, *words, flag, value]
                yield [command, f"{flag}={value}", *words]
                yield [command, flag, value, *words, flag, "again"]


@pytest.mark.parametrize("command", OF_TABLE)
def test_each_option_of_a_command_is_read_alike(runs: Runs, command: str) -> None:
    plain = 0
    for words in lines_of(command):
        if (read := runs.by_plain_line(words)) is not None:
            plain += 1
            assert read == runs.by_library(words), words

    assert plain > 0


@pytest.mark.parametrize("before", [[], ["--namespace", "root"], ["--db", "root.db"]])
@pytest.mark.parametrize("after", [[], ["--namespace", "line"], ["--branch=line", "--json"]])
@pytest.mark.parametrize(
    "environment",
    [{}, {"STRATAGEM_NAMESPACE": "env"}, {"STRATAGEM_DB": "env.db", "STRATAGEM_BRANCH": "env"},
     {"STRATAGEM_DB": ""}],
)  # fmt: skip
def test_the_nearest_of_line_and_environment_wins(
    runs: Runs,
    monkeypatch: pytest.MonkeyPatch,
    before: list[str],
    after: list[str],
    environment: dict[str, str],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    words = [*before, "search", "rain", *after]

    read = runs.by_plain_line(words)

    assert read is not None
    assert read == runs.by_library(words)


@pytest.mark.parametrize(
    "environment",
    [{"STRATAGEM_JSON": "1"}, {"STRATAGEM_READ_ONLY": "0"}, {"STRATAGEM_DURABILITY": "fast"},
     {"_STRATAGEM_COMPLETE": "complete_bash"}],
)  # fmt: skip
def test_other_options_of_the_environment_are_left_to_the_library(
    environment: dict[str, str],
) -> None:
    assert read_plain_line(["recall", "city"], {}) is not None
    assert read_plain_line(["recall", "city"], environment) is None


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a folder that a process is in")
def test_a_folder_that_is_gone_is_left_to_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert read_plain_line(["recall", "city"], {}) is None


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [('branch = "other"', False), ('toolsets = "memory"', True), ("no toml", False)],
)
def test_options_of_a_file_are_left_to_the_library(text: str, *, is_plain: bool) -> None:
    Path(".stratagem").mkdir()
    Path(".stratagem/config.toml").write_text(text)

    assert (read_plain_line(["recall", "city"], {}) is not None) == is_plain


@pytest.mark.parametrize(
    "line",
    [
        "recall city",
        "recall town",
        "recall city --json",
        "recall town --json",
        "recall city --as-of never",
        "recall city --as-of never --json",
        "recall city --branch other",
        "--db missing.db recall city",
        "search Oslo",
        "list",
        "history city",
        "status --json",
        "forget nothing",
        "events",
    ],
)
def test_both_answer_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], line: str
) -> None:
    database = tmp_path / "a.db"
    with stratagem.open(database) as db:
        db.memory.store("city", "Oslo")
    by_library = Cli(database).run(*line.split())
    monkeypatch.setenv("STRATAGEM_DB", str(database))
    monkeypatch.setenv("COLUMNS", "100")

    code = run_plain_line(line.split())

    said = capfd.readouterr()
    assert (code, said.out) == (by_library.exit_code, by_library.stdout)
    assert said.err == by_library.stderr


def test_an_interrupted_command_ends_with_the_code_of_its_signal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(OperationRun, "run", interrupt)

    assert run_plain_line(["recall", "city"]) == 130
    with pytest.raises(SystemExit) as ended:
        root_command().main(["recall", "city"], prog_name="stratagem")
    assert ended.value.code == 130
