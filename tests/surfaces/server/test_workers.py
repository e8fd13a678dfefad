"""Two processes on one database: every acknowledged write is there, whoever dies meanwhile."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import psutil  # type: ignore[import-untyped]
import pytest
from mcp import Client
from typer.testing import CliRunner

import stratagem
from stratagem import connect
from stratagem.errors import BranchNotFound, SwitchUnavailable, ToolNotFound, Unauthenticated
from stratagem.sdk import remote
from stratagem.surfaces.cli.app import app
from stratagem.surfaces.server.workers import listen_for_each
from tests.sdk.reading import logged
from tests.surfaces.server.conftest import Team
from tests.surfaces.serving import Service, eventually, serving

SUM = [{"tool": "calculator", "arguments": {"expression": "${{ input.a }} + 1"}}]


def test_a_worker_that_is_killed_under_load_loses_no_acknowledged_write(team: Team) -> None:
    acknowledged: list[tuple[str, Any]] = []
    before = {each.pid for each in team.settled()}

    def write(mark: int) -> None:
        # Not kept open, so that each request may meet either process.
        for number in range(12):
            with connect(team.url, patience=30) as db:
                db.memory.log(f"load{mark}", number)
            acknowledged.append((f"load{mark}", number))

    with ThreadPoolExecutor(6) as threads:
        writing = [threads.submit(write, mark) for mark in range(6)]
        eventually(lambda: len(acknowledged) > 15, 30)
        killed = psutil.Process(team.answered("/api/memory")[-1])
        killed.kill()
        for each in writing:
            each.result(60)

    found = [each for each in logged(team.place) if each[0].startswith("load")]
    assert sorted(found) == sorted(acknowledged)
    assert len(acknowledged) == 72
    after = {each.pid for each in team.settled()}
    assert after & before == before - {killed.pid}
    assert len(after) == 2, "another one was started"
    assert len(set(team.answered("/api/memory"))) >= 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shares connections out")
def test_connections_that_came_before_the_workers_are_shared_out_among_them() -> None:
    with ExitStack() as opened:
        first = opened.enter_context(socket.socket())
        first.bind(("127.0.0.1", 0))
        address = first.getsockname()
        listeners = [*map(opened.enter_context, listen_for_each(first, 2))]
        for _ in range(64):
            opened.enter_context(socket.create_connection(address))
        waiting = [len(accept_waiting(listener, opened)) for listener in listeners]
        other = opened.enter_context(socket.socket())
        with pytest.raises(OSError, match="in use"):
            other.bind(address)

    assert sum(waiting) == 64
    assert min(waiting) > 0


@pytest.mark.parametrize("workers", [1, 2])
def test_of_two_servers_that_are_bound_at_once_the_second_is_refused(workers: int) -> None:
    with ExitStack() as opened:
        first, second = (opened.enter_context(socket.socket()) for _ in range(2))
        for each in (first, second):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        first.bind(("127.0.0.1", 0))
        second.bind(first.getsockname())
        [*map(opened.enter_context, listen_for_each(first, workers))]

        with pytest.raises(OSError, match="in use"):
            listen_for_each(second, workers)


def accept_waiting(listener: socket.socket, opened: ExitStack) -> list[socket.socket]:
    accepted = []
    listener.settimeout(0)
    with suppress(BlockingIOError):
        while True:
            accepted.append(opened.enter_context(listener.accept()[0]))
    return accepted


def fresh(team: Team, ask: Callable[[remote.Client], Any]) -> list[Any]:
    """Ask several times, each on a connection of its own: both processes are met."""
    answers = []
    for _ in range(6):
        with connect(team.url, patience=5) as db:
            answers.append(ask(db))
    return answers


def raises(error: type[Exception], ask: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def asked(db: Any) -> bool:
        try:
            ask(db)
        except error:
            return True
        return False

    return asked


def test_what_another_process_did_to_branches_is_seen_at_once(team: Team) -> None:
    with closing(stratagem.open(team.place, embedder="none")) as other:
        other.memory.store("city", "Oslo")
        other.memory.fork("trial")
        seen = fresh(team, lambda db: db.memory.recall("city", branch="trial"))
        other.memory.delete("trial")
        gone = fresh(
            team, raises(BranchNotFound, lambda db: db.memory.recall("city", branch="trial"))
        )
        other.memory.create("trial")
        empty = fresh(team, lambda db: db.memory.recall("city", branch="trial"))
        with connect(team.url) as db:
            db.memory.store("back", 1, branch="trial")
        back = other.memory.recall("back", branch="trial")

    assert {entry.value for entry in seen} == {"Oslo"}
    assert all(gone)
    assert set(empty) == {None}
    assert back is not None


def test_a_tool_that_another_process_registered_can_be_called_at_once(team: Team) -> None:
    def call(db: Any) -> Any:
        return db.gateway.execute("increment", {"a": 41})["result"]["result"]

    with closing(stratagem.open(team.place, embedder="none")) as other:
        other.gateway.pipeline(
            name="increment", steps=SUM, save_as="increment", description="Adds 1."
        )
        called = fresh(team, call)
        other.gateway.update("increment", status="disabled")
        disabled = fresh(team, raises(stratagem.StratagemError, call))
        other.gateway.remove("increment")
        removed = fresh(team, raises(ToolNotFound, call))

    assert set(called) == {42}
    assert all(disabled)
    assert all(removed)


def test_a_policy_that_another_process_changed_holds_at_once(team: Team) -> None:
    def enabled(db: Any) -> Any:
        return db.call("auto_correction_status")["systemStatus"]["enabled"]

    assert set(fresh(team, enabled)) == {True}
    with closing(stratagem.open(team.place, embedder="none")) as other:
        other.call("auto_correction_configure", {"settings": {"enabled": False}})
        try:
            assert set(fresh(team, enabled)) == {False}
        finally:
            other.call("auto_correction_configure", {"settings": {"enabled": True}})


def test_agents_of_either_protocol_work_with_several_processes(team: Team) -> None:
    async def talk(mode: Any) -> list[Any]:
        async with Client(f"{team.url}/mcp", mode=mode) as client:
            await client.call_tool("strata_store", {"key": f"agent-{mode}", "value": mode})
            found = [
                await client.call_tool("strata_recall", {"key": f"agent-{mode}"}) for _ in range(5)
            ]
            switched = await client.call_tool(
                "strata_branch", {"action": "switch", "name": "default"}
            )
        return [*(each.structured_content for each in found), switched.structured_content]

    for mode in ("auto", "legacy"):
        *found, switched = anyio.run(talk, mode)
        assert {each["value"] for each in found} == {mode}
        # Another process would not know of it.
        assert switched["error"] == SwitchUnavailable.code


def test_tokens_are_needed_and_refused_in_every_process(team: Team) -> None:
    """The last of this server: from the first token on everybody needs one."""

    def token(*words: str) -> dict[str, Any]:
        done = CliRunner().invoke(app, ["--db", team.place, "token", *words, "--json"])
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    made = token("create", "ada", "--admin")
    eventually(lambda: all(fresh(team, raises(Unauthenticated, lambda db: db.memory.status()))), 60)

    def known(_db: Any) -> bool:
        with connect(team.url, token=made["token"], patience=0) as db:
            return bool(db.memory.status())

    assert all(fresh(team, known))
    token("revoke", "ada")
    eventually(lambda: all(fresh(team, raises(Unauthenticated, known))), 60)


def test_workers_end_with_the_process_that_started_them(team: Team) -> None:
    workers = team.settled()
    team.served.kill()
    _, alive = psutil.wait_procs(workers, timeout=60)

    assert alive == []


@pytest.mark.parametrize("workers", ["2", pytest.param("1", marks=pytest.mark.slow)])
def test_a_server_that_is_told_to_end_finishes_what_it_began(tmp_path: Path, workers: str) -> None:
    told_to_end = threading.Event()

    def slowly(_said: Any) -> tuple[int, str, bytes]:
        assert told_to_end.wait(60)
        # A moment in which they begin to end.
        time.sleep(0.2)
        return 200, "application/json", b'{"done": true}'

    answers: list[httpx2.Response] = []
    with Service() as service:
        service.answers["/slow"] = slowly
        options = ("--workers", workers, "--allow-host", service.host)
        with serving(tmp_path / "ending.db", *options) as server:
            definition = {
                "name": "slow",
                "description": "Takes its time.",
                "inputSchema": {"type": "object"},
                "handler": {"type": "webhook", "url": service.url("/slow")},
            }
            server.call("POST", "/api/mcp/tools", definition, 201)
            path = f"{server.url}/api/mcp/tools/slow/execute"
            asking = threading.Thread(
                target=lambda: answers.append(
                    httpx2.post(path, json={"arguments": {}}, timeout=60, trust_env=False)
                )
            )
            asking.start()
            eventually(lambda: service.count("/slow"))
            # A service manager tells all of them, and the first one tells the others again.
            for each in psutil.Process(server.process.pid).children():
                each.terminate()
            server.process.terminate()
            told_to_end.set()
            asking.join(60)
            status = server.process.wait(60)
    with closing(stratagem.open(str(tmp_path / "ending.db"), embedder="none")) as db:
        kept = db.gateway.executions(tool_id="slow")

    assert [answer.status_code for answer in answers] == [200]
    assert status == 0
    assert [each["status"] for each in kept] == ["success"]
