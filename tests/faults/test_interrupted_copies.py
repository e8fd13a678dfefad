"""A copy or a restore that was interrupted is never taken for a whole database.

The quick tests interrupt it in this process, at a step of it; the slow ones kill its process there.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import psycopg
import pytest

import stratagem
from stratagem import backups, errors
from stratagem.access.workspaces import place_within
from stratagem.bootstrap import workspaces
from stratagem.errors import (
    CopyUnfinished,
    ImportRefused,
    InvalidInput,
    StorageBusy,
    StorageUnavailable,
    StratagemError,
)
from stratagem.memory.entries import Item
from tests.postgres import a_workspace
from tests.surfaces.cli.console import Cli

# Runs a command of `backups` and stands still when a step of it has been told for the nth time.
STANDING_STILL = """
import sys, time
from pathlib import Path
from stratagem import backups
command, source, target, step, count = sys.argv[1:]
seen = 0
def report(_done, _total, what):
    global seen
    seen += what.endswith(step)
    if seen == int(count):
        print("here", flush=True)
        time.sleep(600)
if command == "restore":
    backups.restore(Path(source), target, (), report)
elif command == "backup":
    backups.backup(source, Path(target), (), report)
else:
    backups.copy_all(source, target, report)
"""


def quiet(_done: int, _total: int, _what: str) -> None:
    pass


@contextmanager
def standing_still(
    command: str, source: object, target: object, *, step: str = "copying events", count: int = 1
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command up to a step, and kill it without a warning at the end."""
    given = [command, str(source), str(target), step, str(count)]
    process = subprocess.Popen(
        [sys.executable, "-c", STANDING_STILL, *given], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        yield process
    finally:
        process.kill()
        process.communicate()


class Interrupted(BaseException):
    """Ends a command in the middle, with no chance to clean up."""


def killed(command: str, source: object, target: object, *, step: str, count: int) -> None:
    with standing_still(command, source, target, step=step, count=count):
        pass


def cut_off(command: str, source: object, target: object, *, step: str, count: int) -> None:
    seen = 0

    def report(_done: int, _total: int, what: str) -> None:
        nonlocal seen
        seen += what.endswith(step)
        if seen == count:
            raise Interrupted

    commands: dict[str, Callable[[], object]] = {
        "restore": lambda: backups.restore(Path(str(source)), str(target), (), report),
        "backup": lambda: backups.backup(str(source), Path(str(target)), (), report),
        "copy": lambda: backups.copy_all(str(source), str(target), report),
    }
    with pytest.raises(Interrupted):
        commands[command]()


class Interrupt(Protocol):
    def __call__(
        self,
        command: str,
        source: object,
        target: object,
        *,
        step: str = "copying events",
        count: int = 1,
    ) -> None: ...


@pytest.fixture(params=["cut off", pytest.param("killed", marks=pytest.mark.slow)])
def interrupt(request: pytest.FixtureRequest) -> Interrupt:
    """Begin a command, and end it when a step of it has been told for the nth time."""
    end = killed if request.param == "killed" else cut_off

    def begin(
        command: str,
        source: object,
        target: object,
        *,
        step: str = "copying events",
        count: int = 1,
    ) -> None:
        end(command, source, target, step=step, count=count)

    return begin


def filled(place: str, word: str = "red") -> None:
    """Write more than one page of a copy."""
    with stratagem.open(place, embedder="none", durability="fast") as db:
        for number in range(3):
            items: list[Item] = [
                {"key": f"{number}-{at}", "value": word, "index": False} for at in range(400)
            ]
            db.memory.store(items=items, request_id=f"{word}{number}")


def events(place: str) -> int:
    with stratagem.open(place, embedder="none", read_only=True) as db:
        return int(db.memory.status().head.partition(":")[0])


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("source") / "source.db")
    filled(place)
    return place


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "target.db")
    return f"{request.getfixturevalue('postgres_address')}#{a_workspace()}"


@pytest.mark.parametrize(
    "step",
    [
        "copying events",
        pytest.param("copying remembered requests", marks=pytest.mark.slow),
        pytest.param("replaying the log", marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_copy_cannot_be_opened_and_goes_on_when_repeated(
    source: str, target: str, step: str, interrupt: Interrupt
) -> None:
    interrupt("copy", source, target, step=step)

    for read_only in (False, True):
        with pytest.raises(CopyUnfinished) as refused:
            stratagem.open(target, embedder="none", read_only=read_only)
        assert refused.value.details["source"] == source
        assert "--discard" in refused.value.hint
    backups.copy_all(source, target, quiet)

    assert events(target) == events(source)


def test_an_interrupted_copy_is_told_by_every_command(
    source: str, tmp_path: Path, interrupt: Interrupt
) -> None:
    target = tmp_path / "target.db"
    interrupt("copy", source, target)
    cli = Cli(target)

    for command in (("doctor",), ("store", "k", "v"), ("recall", "0-0"), ("status",)):
        told = " ".join(
            cli.refused(*command, code=errors.TABLE["copy_unfinished"].exit_code).split()
        )
        assert "unfinished copy of" in told
        assert "--discard" in told


def test_an_interrupted_copy_is_thrown_away_and_nothing_else_is(
    source: str, target: str, interrupt: Interrupt
) -> None:
    interrupt("copy", source, target)

    discarded = backups.discard(target)
    with pytest.raises(InvalidInput, match="unfinished"):
        backups.discard(target)
    backups.copy_all(source, target, quiet)

    assert len(discarded) == 1
    assert events(target) == events(source)


def test_nothing_of_a_copy_in_files_is_left_once_it_is_thrown_away(
    source: str, tmp_path: Path, interrupt: Interrupt
) -> None:
    target = tmp_path / "target.db"
    (tmp_path / "target.db.txt").write_text("mine")
    interrupt("copy", source, target)

    Cli(target)("copy", source, str(target), "--discard")

    assert [path.name for path in tmp_path.iterdir()] == ["target.db.txt"]


def test_a_program_that_had_the_empty_target_open_cannot_write_into_half_a_copy(
    source: str, target: str, interrupt: Interrupt
) -> None:
    with stratagem.open(target, embedder="none") as db:
        interrupt("copy", source, target)

        with pytest.raises(CopyUnfinished):
            db.memory.store("mine", 1)

    backups.discard(target)
    with stratagem.open(target, embedder="none") as db:
        assert db.memory.status().keys == 0
        db.memory.store("mine", 1)


@pytest.mark.slow
def test_a_copy_that_is_still_being_made_is_not_thrown_away(source: str, target: str) -> None:
    with (
        standing_still("copy", source, target),
        pytest.raises(StorageBusy, match="still copying"),
    ):
        backups.discard(target)


def test_what_a_target_held_before_is_not_thrown_away(tmp_path: Path, interrupt: Interrupt) -> None:
    here, there = str(tmp_path / "here.db"), str(tmp_path / "there.db")
    filled(here)
    backups.copy_all(here, there, quiet)
    held = events(there)
    filled(here, "blue")
    interrupt("copy", here, there)

    with pytest.raises(InvalidInput, match=f"held {held:,} events"):
        backups.discard(there)
    backups.copy_all(here, there, quiet)

    assert events(there) == events(here)


@pytest.fixture
def server_database(postgres_address: str) -> Iterator[str]:
    """Make a database on the server, for all workspaces of a test."""
    name = f"copies_{a_workspace()[:20]}".replace("-", "_")
    with psycopg.connect(postgres_address, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        yield postgres_address.rpartition("/")[0] + f"/{name}"
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.mark.slow
@pytest.mark.parametrize("command", ["copy", "restore"])
def test_a_copy_killed_at_any_moment_is_whole_or_refused(
    source: str, target: str, command: str, tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    backup = tmp_path / "whole.backup"
    backups.backup(source, backup, (), quiet)
    given = [command, source if command == "copy" else str(backup), target, "nowhere", "1"]
    begun = [sys.executable, "-c", STANDING_STILL, *given]
    outcomes = []
    for _ in range(8):
        with subprocess.Popen(begun, stdout=subprocess.DEVNULL) as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(draw.uniform(0.3, 3.0))
            process.kill()
        try:
            outcomes.append("whole" if events(target) in {1, events(source)} else "half")
        except CopyUnfinished:
            outcomes.append("refused")
            if draw.random() < 0.5:
                _discard(target, was_whole="whole" in outcomes)
        except StorageUnavailable:
            outcomes.append("not begun")
    if command == "copy":
        backups.copy_all(source, target, quiet)
    else:
        backups.restore(backup, target, (), quiet)

    assert "half" not in outcomes
    assert events(target) == events(source)
    assert list(tmp_path.glob(".stratagem-*")) == []


def _discard(target: str, *, was_whole: bool) -> None:
    """Throw an unfinished copy away; what was whole before it began again is kept."""
    try:
        backups.discard(target)
    except InvalidInput:
        assert was_whole


class TestSeveralWorkspaces:
    """All of them are unfinished until the last one is copied."""

    @pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
    def places(
        self, request: pytest.FixtureRequest, tmp_path: Path
    ) -> Callable[[str], tuple[str, list[str]]]:
        def made(name: str) -> tuple[str, list[str]]:
            database = str(tmp_path / f"{name}.db")
            if request.param == "postgres" and name == "target":
                database = request.getfixturevalue("server_database")
            return database, [place_within(database, each) for each in ("default", "blue", "red")]

        return made

    def test_each_refuses_until_all_are_there(
        self, places: Callable[[str], tuple[str, list[str]]], interrupt: Interrupt
    ) -> None:
        (source, here), (target, there) = places("source"), places("target")
        for place in here:
            filled(place)
        # Two pages each: the first is whole, the second has begun, the third is empty.
        interrupt("copy", source, target, count=3)

        for place in there:
            with pytest.raises(CopyUnfinished):
                stratagem.open(place, embedder="none")
        backups.copy_all(source, target, quiet)

        assert [events(place) for place in there] == [events(place) for place in here]

    @pytest.mark.parametrize("command", ["copy", "restore"])
    def test_one_that_is_refused_leaves_none_unfinished(
        self, places: Callable[[str], tuple[str, list[str]]], tmp_path: Path, command: str
    ) -> None:
        (source, here), (target, there) = places("source"), places("target")
        for place in here:
            filled(place)
        backups.backup(source, tmp_path / "all.backup", (), quiet)
        with stratagem.open(there[0], embedder="none") as db:
            db.memory.store("mine", 1)
        steps: list[str] = []

        def report(_done: int, _total: int, what: str) -> None:
            steps.append(what)

        def copy() -> object:
            if command == "copy":
                return backups.copy_all(source, target, report)
            return backups.restore(tmp_path / "all.backup", target, (), report)

        with pytest.raises(ImportRefused):
            copy()

        assert steps == []
        assert workspaces(target) == ["default"]
        assert events(there[0]) == 2

    def test_all_are_thrown_away_but_not_what_was_there_before(
        self, places: Callable[[str], tuple[str, list[str]]], interrupt: Interrupt
    ) -> None:
        (source, here), (target, there) = places("source"), places("target")
        for place in here:
            filled(place)
        own = place_within(target, "own")
        with stratagem.open(own, embedder="none") as db:
            db.memory.store("mine", 1)
        interrupt("copy", source, target, count=3)

        discarded = backups.discard(target)

        assert sorted(discarded) == ["blue", "default", "red"]
        assert events(own) == 2
        for place in there:
            with pytest.raises(StratagemError) as refused:
                stratagem.open(place, embedder="none", read_only=True)
            assert refused.value.code == "storage_unavailable"


def test_an_interrupted_restore_goes_on_and_leaves_nothing_behind(
    source: str, tmp_path: Path, interrupt: Interrupt
) -> None:
    backup, target = tmp_path / "whole.backup", tmp_path / "home" / "target.db"
    backups.backup(source, backup, (), quiet)
    interrupt("restore", backup, target)

    with pytest.raises(CopyUnfinished, match=r"whole\.backup"):
        stratagem.open(str(target), embedder="none")
    backups.restore(backup, str(target), (), quiet)

    assert list(target.parent.glob(".stratagem-*")) == []
    assert events(str(target)) == events(source)


def test_an_interrupted_backup_goes_on_and_leaves_nothing_behind(
    source: str, tmp_path: Path, interrupt: Interrupt
) -> None:
    backup = tmp_path / "whole.backup"
    interrupt("backup", source, backup)

    backups.backup(source, backup, (), quiet)

    assert [path.name for path in tmp_path.iterdir()] == ["whole.backup"]


@pytest.mark.slow
def test_a_killed_doctor_is_cleaned_up_by_the_next_and_a_living_one_is_left(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    foreign = tmp_path / "stratagem-doctor-mine"
    foreign.mkdir()
    (foreign / "note").write_text("mine")
    examined = [sys.executable, "-c", EXAMINING, source]

    def found() -> set[str]:
        return {path.name for path in tmp_path.iterdir()} - {foreign.name}

    with subprocess.Popen(examined, stdout=subprocess.PIPE) as living:
        assert living.stdout is not None
        assert living.stdout.readline() == b"here\n"
        kept = found()
        with subprocess.Popen(examined, stdout=subprocess.PIPE) as dying:
            assert dying.stdout is not None
            assert dying.stdout.readline() == b"here\n"
            assert len(found()) == 2
            dying.kill()
        assert len(found()) == 2

        with stratagem.open(source, embedder="none", read_only=True) as db:
            assert db.runtime.foundation.store.examine(quiet, None) == []

        assert found() == kept
        living.kill()
    with stratagem.open(source, embedder="none", read_only=True) as db:
        db.runtime.foundation.store.examine(quiet, None)
    assert found() == set()
    assert (foreign / "note").read_text() == "mine"


EXAMINING = """
import sys, time, stratagem
def report(_done, _total, what):
    if what == "replaying the log":
        print("here", flush=True)
        time.sleep(600)
with stratagem.open(sys.argv[1], embedder="none", read_only=True) as db:
    db.runtime.foundation.store.examine(report, None)
"""


def test_folders_that_only_look_like_ours_are_left(tmp_path: Path) -> None:
    from stratagem.storage.scratch import scratch_folder

    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "stratagem-owner").write_text("somebody else's")
    (tmp_path / ".ours-file").write_text("no folder")
    (tmp_path / ".ours-link").symlink_to(outside)
    (tmp_path / ".ours-empty").mkdir()
    (tmp_path / ".ours-other").mkdir()
    (tmp_path / ".ours-other" / "stratagem-owner").write_text("somebody else's")
    before = sorted(path.name for path in tmp_path.rglob("*"))

    with scratch_folder(".ours-", tmp_path) as folder:
        (folder / "x").touch()

    assert sorted(path.name for path in tmp_path.rglob("*")) == before
