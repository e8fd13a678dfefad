"""The attack list, against each layer that runs here."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pytest

from stratagem.errors import ServiceUnavailable
from stratagem.gateway.sandbox import Permissions, Sandbox, trial
from stratagem.gateway.sandbox.bubblewrap import Bubblewrap
from stratagem.gateway.sandbox.diagnosis import diagnose
from stratagem.gateway.sandbox.folders import working_folder
from stratagem.gateway.sandbox.landlock import Landlock
from stratagem.gateway.sandbox.layers import Layer, Task
from stratagem.gateway.sandbox.processes import Launch
from stratagem.gateway.sandbox.results import Language
from tests.surfaces.serving import eventually
from tests.unit.gateway.sandbox.walls import (
    FULL,
    LAYERS,
    PAIRS,
    PYTHON,
    named,
    need,
    only,
    run_code,
)

SMALL_MEMORY = Permissions(memory_bytes=64 << 20, seconds=100)

MUST_BE_TRIED = {
    "python": {"tcp", "udp", "unix_socket", "abstract_socket", "datagram_pair", "read_secret", "read_by_link", "large_file", "large_allocation", "environment", "snoop", "forks", "signal_others", "new_namespaces", "other_calls"},
    "node": {"tcp", "udp", "unix_socket", "abstract_socket", "read_secret", "read_by_link", "large_file", "large_allocation", "environment", "snoop", "run_program", "signal_others", "native_code"},
    "monty": {"open_secret", "pathlib_secret", "environment", "sockets", "processes"},
    "quickjs": {"require", "process", "std", "os", "fetch", "large_allocation"},
}  # fmt: skip


def breaches(
    layer: Layer, language: Language, permissions: Permissions, **more: Any
) -> dict[str, str]:
    """Run the attacking code with wider permissions; return what got through."""
    need(layer, language)
    workdir = more.pop("workdir", None)
    with trial.plant_targets(**more) as targets, working_folder(permissions, workdir) as folder:
        mode = trial.MODES[layer.name, language]
        found = asyncio.run(
            trial.run_attacks(layer, mode, permissions, targets.attack_inputs, folder)
        )
        found["damage"] = targets.damage()
    assert len(found) > 5, found
    return {name: what for name, what in found.items() if what is not None}


@pytest.mark.parametrize(("layer", "language"), PAIRS, ids=named)
def test_no_attack_gets_through(layer: Layer, language: Language) -> None:
    need(layer, language)

    report = asyncio.run(trial.try_layer(layer, language))

    assert report.missing is None
    assert report.breach is None
    wanted = {"damage", "endless_loop", "flood"} | MUST_BE_TRIED[trial.MODES[layer.name, language]]
    assert wanted <= set(report.attacks)


@pytest.mark.parametrize(("layer", "language"), FULL, ids=named)
def test_a_directory_to_work_in_opens_nothing_else(
    layer: Layer, language: Language, tmp_path: Path
) -> None:
    folder = workdir_in(tmp_path)

    through = breaches(layer, language, replace(SMALL_MEMORY, filesystem="workdir"), workdir=folder)

    assert through == {}
    assert any(folder.iterdir()), "the links and files of the attacks"


@pytest.mark.parametrize(("layer", "language"), FULL, ids=named)
def test_the_network_opens_the_network_only(layer: Layer, language: Language) -> None:
    through = breaches(layer, language, replace(SMALL_MEMORY, network=True))

    assert through == {"tcp": "connected", "udp": "sent"}


@pytest.mark.parametrize("layer", PYTHON, ids=named)
def test_processes_are_counted(layer: Layer) -> None:
    permissions = replace(SMALL_MEMORY, process_execution=True)

    # The limit is one of a user: runs of other tests that end meanwhile leave room for a few more.
    through = breaches(layer, "python", permissions, processes_max=128)

    assert set(through) <= {"run_program"}, "programs may run, 200 forks may not"


@pytest.mark.parametrize(("layer", "language"), PAIRS, ids=named)
def test_memory_that_is_filled_bit_by_bit_ends_the_run(layer: Layer, language: Language) -> None:
    code = {
        "python": "kept = []\nwhile True: kept.append('x' * 100000 + str(len(kept)))",
        "javascript": "const kept = []; while (true) kept.push('x'.repeat(100000) + kept.length)",
    }[language]

    ended = run_code(layer, language, code, SMALL_MEMORY)

    assert ended.killed == "memory"
    assert not ended.succeeded


@pytest.mark.parametrize(("layer", "language"), PAIRS, ids=named)
def test_an_endless_loop_is_stopped_by_the_clock(layer: Layer, language: Language) -> None:
    code = {"python": "while True: pass", "javascript": "while (true);"}[language]

    ended = run_code(layer, language, code, Permissions(seconds=0.3))

    assert ended.killed == "time"
    assert 0.25 < ended.duration < 20


@pytest.mark.parametrize(
    "layer", [LAYERS["quickjs"], LAYERS["bubblewrap"], LAYERS["landlock"]], ids=named
)
def test_a_pattern_that_never_ends_is_stopped_by_the_clock(layer: Layer) -> None:
    code = "/(a+)+$/.test('a'.repeat(60) + 'b')"

    assert run_code(layer, "javascript", code, Permissions(seconds=0.3)).killed == "time"


@pytest.mark.parametrize(("layer", "language"), PAIRS, ids=named)
def test_a_flood_is_cut_off(layer: Layer, language: Language) -> None:
    code = {
        "python": "while True: print('x' * 10000)",
        "javascript": "while (true) console.log('x'.repeat(10000))",
    }[language]

    ended = run_code(layer, language, code)

    assert ended.killed == "output"
    assert len(ended.stdout) == 1024 * 1024


@pytest.mark.parametrize(("layer", "language"), PAIRS, ids=named)
def test_a_huge_result_is_cut_off(layer: Layer, language: Language) -> None:
    code = {"python": "'x' * (4 << 20)", "javascript": "'x'.repeat(4 << 20)"}[language]

    ended = run_code(layer, language, code)

    assert (ended.killed, ended.result) == ("output", None)


@pytest.mark.parametrize("layer", PYTHON, ids=named)
def test_death_by_a_signal_is_a_kill(layer: Layer) -> None:
    ended = run_code(layer, "python", "import os\nos.abort()")

    assert (ended.killed, ended.exit_code) == ("signal", 134)


@pytest.mark.parametrize("layer", PYTHON, ids=named)
def test_what_is_left_running_dies_with_the_run(layer: Layer, tmp_path: Path) -> None:
    folder = workdir_in(tmp_path)
    # Whoever has the file open holds its lock, and so does what it leaves running.
    code = """
import fcntl, os, time
held = open('held', 'w')
fcntl.flock(held, fcntl.LOCK_EX)
if os.fork() == 0:
    try: os.setsid()
    except OSError: pass
    time.sleep(600)
"""
    permissions = Permissions(seconds=60, process_execution=True, filesystem="workdir")

    ended = run_code(layer, "python", code, permissions, workdir=folder)

    assert ended.succeeded, ended.stderr
    with (folder / "held").open() as held:
        eventually(lambda: _lock(held))


def _lock(file: IO[str]) -> bool:
    """Take the lock of a file, unless somebody holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@pytest.mark.parametrize("layer", PYTHON, ids=named)
def test_a_link_in_the_directory_leads_nowhere(layer: Layer, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the secret", "utf-8")
    folder = workdir_in(tmp_path)
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to("..")
    permissions = Permissions(seconds=10, filesystem="workdir")

    for path in ("link", "up/secret", "../secret", str(tmp_path / "secret")):
        ended = run_code(layer, "python", f"open({path!r}).read()", permissions, workdir=folder)
        assert ended.exit_code == 1, path
        assert "the secret" not in ended.stdout + str(ended.result), path


class WithoutFilter(Landlock):
    """A wall with a hole: every system call is let through."""

    def launch(self, task: Task) -> Launch:
        whole = super().launch(task)
        return replace(whole, instructions=lambda pid: without("filter", whole.instructions(pid)))


class WithoutRules(Landlock):
    """A wall with a hole: every file can be reached."""

    def launch(self, task: Task) -> Launch:
        whole = super().launch(task)
        return replace(whole, instructions=lambda pid: without("landlock", whole.instructions(pid)))


class Broken(Bubblewrap):
    """A wall that cannot even be put up."""

    def launch(self, task: Task) -> Launch:
        whole = super().launch(task)
        return replace(whole, argv=[whole.argv[0], "--no-such-option", *whole.argv[1:]])


class Absent(Bubblewrap):
    """A wall that this machine does not have."""

    def missing_requirement(self, language: Language) -> str | None:
        return f"it is nowhere to be found for {language}"


def without(part: str, instructions: Mapping[str, Any]) -> dict[str, Any]:
    return {**instructions, "harden": {**instructions["harden"], part: None}}


@pytest.mark.parametrize(
    ("wall", "what"),
    [
        (WithoutFilter(), "other_calls"),
        (WithoutRules(), "read_secret"),
        (Broken(), "no-such-option"),
    ],
    ids=["no filter", "no rules", "not started"],
)
def test_a_wall_with_a_hole_is_found_out_and_refused(wall: Layer, what: str) -> None:
    need(wall, "python")
    sandbox = only(wall)

    with pytest.raises(ServiceUnavailable) as caught:
        asyncio.run(sandbox.run_code("python", "1", permissions=Permissions(), engine="full"))

    assert what in caught.value.message
    assert set(caught.value.details["layers"]) == {wall.name}


def test_a_diagnosis_tells_holes_and_what_is_missing() -> None:
    wall = WithoutRules()
    need(wall, "python")

    found = diagnose(Sandbox(small=[], full=[wall, Absent()]), network=False).as_json()

    assert not found["works"]
    assert found["languages"]["python"] == {"snippet": None, "full": None}
    assert any("read_secret" in said and "not used" in said for said in found["advice"])
    assert "bubblewrap: it is nowhere to be found for python" in found["advice"]


def test_without_any_wall_nothing_runs() -> None:
    with pytest.raises(ServiceUnavailable):
        asyncio.run(Sandbox(small=[], full=[]).run_code("python", "1", permissions=Permissions()))


def test_the_self_test_is_quick_and_remembered() -> None:
    sandbox = Sandbox()

    first = sandbox.self_test()
    again = sandbox.self_test()

    assert {report.layer for report in first} == {"monty", "quickjs", "bubblewrap", "landlock"}
    assert all(report.holds or report.missing for report in first), first
    assert again == first
    assert all(set(report.as_json()) >= {"layer", "holds", "breach"} for report in first)


def workdir_in(tmp_path: Path) -> Path:
    """A directory that code of another user can reach, as a server would keep one."""
    for part in (tmp_path, *tmp_path.parents):
        if part.stat().st_uid == os.geteuid() and part != Path("/"):
            part.chmod(part.stat().st_mode | 0o011)
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
